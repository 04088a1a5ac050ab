#include "analysis/memory/copies.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/event/bounded.h"

void rls_copies_free(struct rls_copies *copies)
{
	while (copies->places) {
		struct rls_copy_place *place = copies->places;

		copies->places = place->next;
		free(place);
	}
	rls_index_map_free(&copies->map);
	*copies = (struct rls_copies){0};
}

static uint64_t hash_of(const struct rls_copies *copies, const struct rls_memory_line *of,
			enum rls_copy_kind kind)
{
	const uint32_t words[] = {of->file, of->function, of->line, of->operation, of->phase, kind};

	return rls_text_hash(copies->seed, (const char *)words, sizeof(words));
}

static bool is_same(const struct rls_copy_place *place, const struct rls_memory_line *of,
		    enum rls_copy_kind kind)
{
	return place->kind == kind && place->of.file == of->file &&
	       place->of.function == of->function && place->of.line == of->line &&
	       place->of.operation == of->operation && place->of.phase == of->phase;
}

struct rls_copy_place *rls_copies_find(const struct rls_copies *copies,
				       const struct rls_memory_line *of, enum rls_copy_kind kind)
{
	struct rls_copy_place *place =
		rls_index_map_get(&copies->map, 0, hash_of(copies, of, kind));

	while (place && !is_same(place, of, kind))
		place = place->same_hash;
	return place;
}

int rls_copies_get(struct rls_copies *copies, const struct rls_memory_line *of,
		   enum rls_copy_kind kind, struct rls_copy_place **out)
{
	struct rls_copy_place *place;
	uint64_t hash;
	int err;

	if (!copies->count)
		copies->seed = rls_text_seed_draw(copies);
	place = rls_copies_find(copies, of, kind);
	if (!place) {
		if (copies->count >= RLS_COPY_PLACES_MAX)
			return -ENOSPC;
		place = calloc(1, sizeof(*place));
		if (!place)
			return -ENOMEM;
		hash = hash_of(copies, of, kind);
		place->same_hash = rls_index_map_get(&copies->map, 0, hash);
		err = rls_index_map_put(&copies->map, 0, hash, place);
		if (err) {
			free(place);
			return err;
		}
		place->of = *of;
		place->kind = kind;
		place->next = copies->places;
		copies->places = place;
		copies->count++;
	}
	*out = place;
	return 0;
}

int rls_copies_add(struct rls_copies *copies, const struct rls_memory_line *of,
		   enum rls_copy_kind kind, uint64_t count, uint64_t bytes)
{
	struct rls_copy_place *place;
	int err = rls_copies_get(copies, of, kind, &place);

	if (err)
		return err;
	rls_add_bounded(&place->copies, count);
	rls_add_bounded(&place->bytes, bytes);
	return 0;
}
