/* Copies: what events say of the copies of one process, by line and kind.
 *
 *     COPY_LINE ─▶ place: sums so far
 *     GPU_COPY  ─▶ what operations launched (gpu/gpu_work.h) ─▶ places without a line
 *
 * Memory follows the number of places.
 */
#ifndef RLS_COPIES_H
#define RLS_COPIES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "analysis/base/text_hash.h"
#include "analysis/event/event.h"

/* Places of one process; more are left out. */
#define RLS_COPY_PLACES_MAX 65536

struct rls_copy_place {
	struct rls_copy_place *next;
	struct rls_copy_place *same_hash;
	struct rls_memory_line of; /* source and device mean nothing */
	enum rls_copy_kind kind;
	uint64_t copies;
	uint64_t bytes; /* that were written */
};

/* Zeroed: none yet. */
struct rls_copies {
	struct rls_copy_place *places;
	struct rls_index_map map; /* hash of the place -> place */
	struct rls_text_seed seed;
	size_t count;
};

void rls_copies_free(struct rls_copies *copies);

/* NULL: there is none. */
struct rls_copy_place *rls_copies_find(const struct rls_copies *copies,
				       const struct rls_memory_line *of, enum rls_copy_kind kind);

/* The same, made if it is not there. 0, -ENOSPC: there are too many; -ENOMEM. */
int rls_copies_get(struct rls_copies *copies, const struct rls_memory_line *of,
		   enum rls_copy_kind kind, struct rls_copy_place **out);

/* Adds to a place. As rls_copies_get. */
int rls_copies_add(struct rls_copies *copies, const struct rls_memory_line *of,
		   enum rls_copy_kind kind, uint64_t count, uint64_t bytes);

#endif
