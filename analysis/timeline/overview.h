/* Overview: what a thread did over time, in bounded memory however long the trace.
 *
 * Time is cut into buckets of 2^shift ns that begin at multiples of their width, so that
 * buckets of different threads and traces fit together. A bucket has a cell for each
 * (scope, category) the thread was in; the cells of a bucket sum to the thread's life in it.
 * When there are too many buckets or cells, neighbouring buckets become one, as often as
 * needed: a short trace is shown finely, a long one coarsely.
 *
 *     shift 3   | a a b | a a a | b b b |  ...  |        full: fold
 *     shift 4   |   a 5 b 1     |  b 3  |  ...
 */
#ifndef RLS_OVERVIEW_H
#define RLS_OVERVIEW_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/event/category.h"

#define RLS_OVERVIEW_BUCKETS_MAX 2048
#define RLS_OVERVIEW_CELLS_MAX 8192
/* Scopes and categories distinguished in one bucket; time beyond goes to a cell without scope. */
#define RLS_OVERVIEW_BUCKET_CELLS_MAX 64

struct rls_scope;

struct rls_overview_cell {
	uint64_t bucket; /* covers [bucket << shift, bucket + 1 << shift) */
	const struct rls_scope *scope; /* borrowed; NULL: others */
	enum rls_category category;
	uint64_t wall_ns;
	uint64_t gpu_ns; /* of wall_ns, with the GPU busy; a span that goes on into the
				     * next bucket gives each its share by length */
};

/* Zeroed: nothing yet. */
struct rls_overview {
	struct rls_overview_cell *cells; /* by bucket */
	size_t count;
	size_t capacity;
	size_t last_begin; /* first cell of the last bucket */
	unsigned int shift;

	/* Threads go to and fro in one operation: its cells of the last bucket, 1 + index. */
	const struct rls_scope *recent_scope;
	uint32_t recent[RLS_CATEGORY_MAX];
};

void rls_overview_free(struct rls_overview *overview);

/* Adds the span [start_ns, end_ns), gpu_ns of it with the GPU busy. Spans come in order of
 * time. 0, or -ENOMEM. */
int rls_overview_add(struct rls_overview *overview, const struct rls_scope *scope,
		     enum rls_category category, uint64_t start_ns, uint64_t end_ns,
		     uint64_t gpu_ns);

/* Folds until there are at most so many cells, which is RLS_OVERVIEW_CELLS_MIN or more. */
#define RLS_OVERVIEW_CELLS_MIN (RLS_OVERVIEW_BUCKET_CELLS_MAX + RLS_CATEGORY_MAX)
void rls_overview_shrink(struct rls_overview *overview, size_t cells);

#endif
