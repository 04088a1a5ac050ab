#include "analysis/base/index_map.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define CAPACITY_MIN 16

/* Finaliser of MurmurHash3 (Austin Appleby, public domain), over both words. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	x ^= x >> 33;
	return x;
}

static size_t home(const struct rls_index_map *map, uint64_t a, uint64_t b)
{
	return mix(a ^ mix(b ^ map->seed)) & (map->capacity - 1);
}

/* The slot that holds the key, or the free one where it belongs. */
static struct rls_index_entry *slot(const struct rls_index_map *map, uint64_t a, uint64_t b)
{
	size_t i = home(map, a, b);

	while (map->entries[i].value && (map->entries[i].a != a || map->entries[i].b != b))
		i = (i + 1) & (map->capacity - 1);
	return &map->entries[i];
}

static int index_map_grow(struct rls_index_map *map)
{
	struct rls_index_map bigger = {
		.capacity = map->capacity ? 2 * map->capacity : CAPACITY_MIN,
		.count = map->count,
		.seed = map->seed,
	};

	/* No entropy so early in boot only makes the hash guessable. */
	if (!map->capacity && getrandom(&bigger.seed, sizeof(bigger.seed), GRND_NONBLOCK) < 0)
		bigger.seed = (uintptr_t)map;
	bigger.entries = calloc(bigger.capacity, sizeof(*bigger.entries));
	if (!bigger.entries)
		return -ENOMEM;
	for (size_t i = 0; i < map->capacity; i++) {
		const struct rls_index_entry *entry = &map->entries[i];

		if (entry->value)
			*slot(&bigger, entry->a, entry->b) = *entry;
	}
	free(map->entries);
	*map = bigger;
	return 0;
}

void rls_index_map_free(struct rls_index_map *map)
{
	free(map->entries);
	*map = (struct rls_index_map){0};
}

void *rls_index_map_get(const struct rls_index_map *map, uint64_t a, uint64_t b)
{
	return map->capacity ? slot(map, a, b)->value : NULL;
}

int rls_index_map_put(struct rls_index_map *map, uint64_t a, uint64_t b, void *value)
{
	struct rls_index_entry *entry;

	/* Half full at most: probes stay short. */
	if (2 * (map->count + 1) > map->capacity) {
		int err = index_map_grow(map);

		if (err)
			return err;
	}
	entry = slot(map, a, b);
	map->count += !entry->value;
	*entry = (struct rls_index_entry){.a = a, .b = b, .value = value};
	return 0;
}

void rls_index_map_remove(struct rls_index_map *map, uint64_t a, uint64_t b)
{
	size_t mask = map->capacity - 1;
	size_t hole, i;

	if (!map->capacity)
		return;
	hole = (size_t)(slot(map, a, b) - map->entries);
	if (!map->entries[hole].value)
		return;
	/* Shift back what probed past the hole, so that no tombstones are needed. */
	for (i = (hole + 1) & mask; map->entries[i].value; i = (i + 1) & mask) {
		size_t wanted = home(map, map->entries[i].a, map->entries[i].b);

		if (((i - wanted) & mask) < ((i - hole) & mask))
			continue;
		map->entries[hole] = map->entries[i];
		hole = i;
	}
	map->entries[hole].value = NULL;
	map->count--;
}
