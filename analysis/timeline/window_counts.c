#include "analysis/timeline/window_counts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "analysis/base/grow.h"

/* The first stretch is cut into pieces, to see how dense transitions can be. Their numbers: */
#define PIECE 0x80000000U
#define PIECE_NS 20000000ULL

/* What hits took of the running time, and what is left. */
static double corrected_ns(const struct rls_cell *cell, double *cost_ns)
{
	double ran_ns = (double)rls_cell_ns(cell) - (double)cell->off_cpu_ns[RLS_PART_CPU] -
			(double)cell->off_cpu_ns[RLS_PART_CPU_GPU];
	double taken_ns = (double)cell->subtracted_ns + (double)cell->under_gpu_ns;

	ran_ns = fmax(ran_ns, 0);
	taken_ns = fmin(taken_ns, ran_ns);
	*cost_ns += taken_ns;
	return ran_ns - taken_ns;
}

static double length_of(const struct rls_timeline *timeline, uint32_t number)
{
	if (number & PIECE)
		return (double)PIECE_NS;
	if (number < timeline->windows || timeline->closed)
		return (double)timeline->window_lengths[number];
	return (double)(timeline->now_ns - timeline->opened_ns);
}

static void sum_up(const struct rls_timeline *timeline, struct rls_spread *spread,
		   const struct rls_window_part *part)
{
	struct rls_spread_unit unit = {.visits = part->visits, .first = part->number & PIECE};
	double cost_ns = 0;

	memcpy(unit.count, part->count, sizeof(unit.count));
	unit.late_ns = corrected_ns(&part->late, &cost_ns);
	unit.time_ns = unit.late_ns + corrected_ns(&part->seen, &cost_ns);
	unit.length_ns = fmax(length_of(timeline, part->number) - cost_ns, unit.time_ns);
	rls_spread_add(spread, &unit);
}

/* 0: none is kept. */
static uint32_t number_of(const struct rls_timeline *timeline)
{
	if (timeline->windows)
		return timeline->windows;
	if (!timeline->facts.budgeted)
		return 0; /* it is all there is */
	return PIECE | (uint32_t)(((timeline->now_ns - timeline->first_ns) / PIECE_NS + 1) % PIECE);
}

int rls_window_counts_part(const struct rls_timeline *timeline, struct rls_scope *scope,
			   struct rls_window_part **out)
{
	uint32_t number = number_of(timeline);
	struct rls_untraced *untraced;
	struct rls_window_part *part;

	*out = NULL;
	if (!number)
		return 0;
	untraced = rls_timeline_scope_untraced(scope);
	if (!untraced)
		return -ENOMEM;
	part = &untraced->parts[number % RLS_WINDOWS_KEPT];
	if (part->number != number) {
		if (part->number)
			sum_up(timeline, &untraced->spread, part);
		*part = (struct rls_window_part){.number = number};
		untraced->last = number;
	}
	*out = part;
	return 0;
}

static void sum_up_closed(struct rls_spread *spread, struct rls_closed_part *part)
{
	double cost_ns = 0;

	if (part->number)
		rls_spread_add_closed(&spread->closed, corrected_ns(&part->cell, &cost_ns),
				      part->visits);
	*part = (struct rls_closed_part){0};
}

struct rls_closed_part *rls_window_counts_closed(const struct rls_timeline *timeline,
						 struct rls_scope *scope)
{
	struct rls_untraced *untraced = rls_timeline_scope_untraced(scope);
	uint32_t number =
		(uint32_t)((timeline->now_ns - timeline->first_ns) / RLS_CLOSED_PIECE_NS) + 1;
	struct rls_closed_part *part;

	if (!untraced)
		return NULL;
	part = &untraced->closed[number % RLS_WINDOWS_KEPT];
	if (part->number != number)
		sum_up_closed(&untraced->spread, part);
	part->number = number;
	return part;
}

int rls_window_counts_close(struct rls_timeline *timeline)
{
	uint32_t number = timeline->windows;
	uint64_t begun_ns = number ? timeline->opened_ns : timeline->first_ns;
	size_t before = timeline->window_capacity;
	int err = rls_grow(&timeline->window_lengths, &timeline->window_capacity, number);

	if (err)
		return err;
	for (size_t i = before; i < timeline->window_capacity; i++)
		timeline->window_lengths[i] = 0;
	timeline->window_lengths[number] = timeline->now_ns - begun_ns;
	return 0;
}

int rls_window_counts_visit(const struct rls_timeline *timeline, struct rls_scope *scope)
{
	struct rls_window_part *part = NULL;
	struct rls_closed_part *closed = NULL;
	int err = 0;

	if (timeline->closed)
		closed = rls_window_counts_closed(timeline, scope);
	else
		err = rls_window_counts_part(timeline, scope, &part);
	if (err || (timeline->closed && !closed))
		return -ENOMEM;
	scope->visits++;
	if (part)
		part->visits++;
	if (closed)
		closed->visits++;
	return 0;
}

int rls_window_counts_add(const struct rls_timeline *timeline, struct rls_scope *scope,
			  enum rls_category from, enum rls_category to)
{
	struct rls_window_part *part;
	int err = rls_window_counts_part(timeline, scope, &part);

	if (err)
		return err;
	scope->transitions[from][to]++;
	if (part)
		part->count[from][to]++;
	return 0;
}

void rls_window_counts_finish(const struct rls_timeline *timeline, struct rls_scope *scope)
{
	struct rls_untraced *untraced = scope->unseen;

	for (uint32_t i = 1; i <= RLS_WINDOWS_KEPT; i++) {
		struct rls_window_part *part =
			&untraced->parts[(untraced->last + i) % RLS_WINDOWS_KEPT];

		if (part->number)
			sum_up(timeline, &untraced->spread, part);
		part->number = 0;
	}
	for (uint32_t i = 0; i < RLS_WINDOWS_KEPT; i++)
		sum_up_closed(&untraced->spread, &untraced->closed[i]);
}
