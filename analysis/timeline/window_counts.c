#include "analysis/timeline/window_counts.h"

#include <errno.h>
#include <math.h>

#include "analysis/base/grow.h"

/* The first stretch is cut into pieces, to see how dense transitions can be. Their numbers: */
#define PIECE 0x80000000U
#define PIECE_NS 20000000ULL
/* So much running time says how dense transitions are. */
#define DENSITY_NS 5000000.0

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

static void add_extremes(struct rls_spread *spread, const struct rls_window_part *part,
			 double time_ns)
{
	struct rls_spread_piece *piece = &spread->piece;
	bool enough;

	piece->time_ns += time_ns;
	enough = piece->time_ns >= DENSITY_NS;
	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		for (int to = 0; to < RLS_CATEGORY_MAX; to++) {
			double *least = &spread->least[from][to], *most = &spread->most[from][to];
			double rate;

			piece->count[from][to] += part->count[from][to];
			rate = piece->count[from][to] / piece->time_ns;
			if (!enough)
				continue;
			*least = spread->pieces ? fmin(*least, rate) : rate;
			*most = fmax(*most, rate);
		}
	}
	if (!enough)
		return;
	spread->pieces++;
	*piece = (struct rls_spread_piece){0};
}

static void add_count(struct rls_spread *spread, int from, int to, double count, double share,
		      double length_ns)
{
	double rate = count / length_ns, last = spread->last.rate[from][to];

	spread->rate[from][to] += rate;
	spread->rate_squared[from][to] += rate * rate;
	spread->rate_by_share[from][to] += rate * share;
	spread->chance[from][to] += rate / length_ns;
	spread->rate_by_last[from][to] += rate * last;
	spread->rate_by_last_share[from][to] += rate * spread->last.share + last * share;
	spread->last.rate[from][to] = rate;
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
	double cost_ns = 0, late_ns = corrected_ns(&part->late, &cost_ns);
	double time_ns = late_ns + corrected_ns(&part->seen, &cost_ns);
	double length_ns = fmax(length_of(timeline, part->number) - cost_ns, time_ns);

	/* It waited all along. */
	if (time_ns <= 0)
		return;
	add_extremes(spread, part, time_ns);
	if (part->number & PIECE)
		return;
	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		for (int to = 0; to < RLS_CATEGORY_MAX; to++)
			add_count(spread, from, to, part->count[from][to], time_ns / length_ns,
				  length_ns);
	}
	spread->share += time_ns / length_ns;
	spread->late_share += late_ns / length_ns;
	spread->share_squared += pow(time_ns / length_ns, 2);
	spread->share_by_last += time_ns / length_ns * spread->last.share;
	spread->last.share = time_ns / length_ns;
	spread->windows++;
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
}
