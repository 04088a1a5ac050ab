#include "analysis/timeline/overview.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CELLS_FIRST 64

void rls_overview_free(struct rls_overview *overview)
{
	free(overview->cells);
	*overview = (struct rls_overview){0};
}

/* The cell of the last bucket, or NULL. Latest first: threads go to and fro. */
static struct rls_overview_cell *overview_find(const struct rls_overview *overview, uint64_t bucket,
					       const struct rls_scope *scope,
					       enum rls_category category)
{
	for (size_t i = overview->count; i-- > overview->last_begin;) {
		struct rls_overview_cell *cell = &overview->cells[i];

		if (cell->bucket != bucket)
			return NULL;
		if (cell->scope == scope && cell->category == category)
			return cell;
	}
	return NULL;
}

static struct rls_overview_cell *overview_append(struct rls_overview *overview, uint64_t bucket,
						 const struct rls_scope *scope,
						 enum rls_category category)
{
	size_t at = overview->count++;

	if (at && overview->cells[at - 1].bucket != bucket) {
		overview->last_begin = at;
		memset(overview->recent, 0, sizeof(overview->recent));
	}
	overview->cells[at] =
		(struct rls_overview_cell){.bucket = bucket, .scope = scope, .category = category};
	return &overview->cells[at];
}

static void overview_record(struct rls_overview *overview, const struct rls_scope *scope,
			    enum rls_category category, const struct rls_overview_cell *cell)
{
	if (overview->recent_scope != scope) {
		memset(overview->recent, 0, sizeof(overview->recent));
		overview->recent_scope = scope;
	}
	overview->recent[category] = (uint32_t)(cell - overview->cells) + 1;
}

/* There must be room for one cell more. */
static void overview_add_cell(struct rls_overview *overview, const struct rls_overview_cell *what)
{
	const struct rls_scope *scope = what->scope;
	struct rls_overview_cell *cell =
		overview_find(overview, what->bucket, scope, what->category);

	if (!cell && overview->count - overview->last_begin >= RLS_OVERVIEW_BUCKET_CELLS_MAX &&
	    overview->cells[overview->count - 1].bucket == what->bucket) {
		scope = NULL;
		cell = overview_find(overview, what->bucket, scope, what->category);
	}
	if (!cell)
		cell = overview_append(overview, what->bucket, scope, what->category);
	cell->wall_ns += what->wall_ns;
	cell->gpu_ns += what->gpu_ns;
	overview_record(overview, what->scope, what->category, cell);
}

/* Most spans: of what the thread was just in, within the last bucket. */
static bool overview_extend(struct rls_overview *overview, const struct rls_scope *scope,
			    enum rls_category category, uint64_t start_ns, uint64_t end_ns,
			    uint64_t gpu_ns)
{
	struct rls_overview_cell *cell;

	if (scope != overview->recent_scope || !overview->recent[category])
		return false;
	cell = &overview->cells[overview->recent[category] - 1];
	if ((end_ns - 1) >> overview->shift != cell->bucket)
		return false;
	cell->wall_ns += end_ns - start_ns;
	cell->gpu_ns += gpu_ns;
	return true;
}

/* Never makes more cells than there were, so it is done in place. */
static void fold(struct rls_overview *overview)
{
	size_t count = overview->count;

	overview->shift++;
	overview->count = overview->last_begin = 0;
	memset(overview->recent, 0, sizeof(overview->recent));
	for (size_t i = 0; i < count; i++) {
		struct rls_overview_cell cell = overview->cells[i];

		cell.bucket >>= 1;
		overview_add_cell(overview, &cell);
	}
}

static uint64_t buckets_up_to(const struct rls_overview *overview, uint64_t start_ns,
			      uint64_t end_ns)
{
	uint64_t first = overview->count ? overview->cells[0].bucket : start_ns >> overview->shift;

	return ((end_ns - 1) >> overview->shift) - first + 1;
}

static int make_room(struct rls_overview *overview, uint64_t start_ns, uint64_t end_ns)
{
	struct rls_overview_cell *cells;
	size_t capacity = overview->capacity;
	uint64_t more;

	while (buckets_up_to(overview, start_ns, end_ns) > RLS_OVERVIEW_BUCKETS_MAX)
		fold(overview);
	for (;;) {
		more = ((end_ns - 1) >> overview->shift) - (start_ns >> overview->shift) + 1;
		if (overview->count + more <= RLS_OVERVIEW_CELLS_MAX)
			break;
		fold(overview);
	}
	while (capacity < overview->count + more)
		capacity = capacity ? 2 * capacity : CELLS_FIRST;
	if (capacity == overview->capacity)
		return 0;
	cells = reallocarray(overview->cells, capacity, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	overview->cells = cells;
	overview->capacity = capacity;
	return 0;
}

int rls_overview_add(struct rls_overview *overview, const struct rls_scope *scope,
		     enum rls_category category, uint64_t start_ns, uint64_t end_ns,
		     uint64_t gpu_ns)
{
	struct rls_overview_cell part = {.scope = scope, .category = category};
	uint64_t length_ns = end_ns - start_ns, given_ns = 0;
	int err;

	if (start_ns >= end_ns ||
	    overview_extend(overview, scope, category, start_ns, end_ns, gpu_ns))
		return 0;
	err = make_room(overview, start_ns, end_ns);
	if (err)
		return err;
	for (uint64_t at_ns = start_ns, next_ns; at_ns < end_ns; at_ns = next_ns) {
		uint64_t gpu_up_to_ns = gpu_ns;

		part.bucket = at_ns >> overview->shift;
		next_ns = (end_ns - 1) >> overview->shift == part.bucket
				  ? end_ns
				  : (part.bucket + 1) << overview->shift;
		if (gpu_ns && next_ns != end_ns)
			gpu_up_to_ns = (uint64_t)((unsigned __int128)gpu_ns * (next_ns - start_ns) /
						  length_ns);
		part.wall_ns = next_ns - at_ns;
		part.gpu_ns = gpu_up_to_ns - given_ns;
		given_ns = gpu_up_to_ns;
		overview_add_cell(overview, &part);
	}
	return 0;
}

void rls_overview_shrink(struct rls_overview *overview, size_t cells)
{
	while (overview->count > cells)
		fold(overview);
}
