/* Index map: from a pair of 64-bit keys to a pointer. Open addressing, linear probing.
 *
 * Small on purpose: it answers "which thread is that" at every event. Values are borrowed;
 * NULL means absent and cannot be stored. Keys may come from a hostile trace, so the hash
 * is seeded per map.
 */
#ifndef RLS_INDEX_MAP_H
#define RLS_INDEX_MAP_H

#include <stddef.h>
#include <stdint.h>

struct rls_index_entry {
	uint64_t a, b;
	void *value; /* NULL: free */
};

struct rls_index_map {
	struct rls_index_entry *entries;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
	uint64_t seed;
};

/* A zeroed map is an empty one. */
void rls_index_map_free(struct rls_index_map *map);

void *rls_index_map_get(const struct rls_index_map *map, uint64_t a, uint64_t b);

/* Adds or replaces. 0, or -ENOMEM (map unchanged). */
int rls_index_map_put(struct rls_index_map *map, uint64_t a, uint64_t b, void *value);

/* Removes what is there, if anything. */
void rls_index_map_remove(struct rls_index_map *map, uint64_t a, uint64_t b);

#endif
