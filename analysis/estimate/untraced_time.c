#include "analysis/estimate/untraced_time.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/apportion.h"
#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/estimate/category_shares.h"
#include "analysis/estimate/count_estimate.h"
#include "analysis/event/bounded.h"
#include "analysis/timeline/window_counts.h"

#define SIGMAS 1.96
/* A thread that hardly waits has no waits to misplace. */
#define WAITS_MIN 0.1
/* Of the traced time, untraced time that does not matter. */
#define NEGLIGIBLE 0.02
/* Of a thread's time, what it may run and still be held to have been waiting all along. */
#define PARKED_SHARE 0.002

static double corrected_ran_ns(const struct rls_cell *cell)
{
	double cost_ns = (double)cell->subtracted_ns + (double)cell->under_gpu_ns;

	/* A cost and a wait may have been taken from the same time. */
	return fmax((double)rls_cell_ran_ns(cell) - cost_ns, 0);
}

/* --- shares --------------------------------------------------------------------------- */

/* In any operation: of the thread, and of all threads of its process that meet no probe. */
struct sample_pools {
	struct rls_sample_pair own, others;
	double ran_ns; /* of the thread, in untraced time */
};

/* The scopes of one operation and phase, and all that is known of them together. */
struct pool {
	struct rls_scope *const *scopes;
	size_t count;
	struct rls_category_samples running, waiting;
	struct rls_spread spread;
	uint64_t traced_ns[RLS_CATEGORY_MAX];
	uint64_t closed_ns, unreported_ns;
	double waits; /* share of the closed time */
	double ran_error; /* share by which its running time may be another's */
	uint64_t visits;
	struct {
		double raw_ns, corrected_ns;
		double by_category_ns[RLS_CATEGORY_MAX]; /* of corrected_ns; traced only */
	} traced, closed; /* running */
};

/* A helper thread is parked while the thread that it works for passes through operations: the
 * helper runs in none of them. */
static bool was_parked(const struct pool *pool)
{
	return !rls_category_samples_sum(pool->running.count) &&
	       pool->closed.raw_ns < PARKED_SHARE * (double)pool->closed_ns;
}

/* What tracing says of inferred categories. A thread that meets no probe is what its samples are: NULL. */
static const struct rls_truth *truth_of(const struct rls_thread *thread)
{
	return thread->reported ? &thread->process->truth : NULL;
}

/* Threads that were never found running have waited, or worked as the others of their process. */
static bool by_others(const struct sample_pools *samples, struct rls_category_shares *out)
{
	return rls_category_shares_by_samples(NULL, samples->own.waiting.ns, 1, out) ||
	       rls_category_shares_by_samples(NULL, samples->others.running.count, 1, out) ||
	       rls_category_shares_by_samples(NULL, samples->others.waiting.ns, 1, out);
}

static double draws_of(const struct rls_truth *truth, const struct rls_category_samples *waits)
{
	return truth ? (double)rls_category_samples_sum(waits->count)
		     : rls_category_samples_waits(waits);
}

/* False: nothing at all is known. */
static bool shares_of(const struct rls_thread *thread, const struct pool *pool,
		      const struct sample_pools *samples, struct rls_category_shares *running,
		      struct rls_category_shares *waiting)
{
	const struct rls_truth *truth = truth_of(thread);
	const struct rls_category_samples *waits = &pool->waiting;
	bool known = true;

	if (!rls_category_shares_by_samples(truth, pool->running.count,
					    (double)rls_category_samples_sum(pool->running.count),
					    running) &&
	    !rls_category_shares_by_time(pool->traced_ns, running) &&
	    !rls_category_shares_by_samples(truth, samples->own.running.count, 1, running) &&
	    (thread->reported || !by_others(samples, running))) {
		rls_category_shares_by_nothing(thread->category, running);
		known = thread->category != RLS_CATEGORY_UNKNOWN;
	}
	/* Its waits have begun in other operations, or ended there, where samples reported them. */
	if (!rls_category_samples_sum(waits->ns) && was_parked(pool))
		waits = &samples->own.waiting;
	waiting->drawn =
		rls_category_shares_by_samples(truth, waits->ns, draws_of(truth, waits), waiting);
	if (!waiting->drawn)
		*waiting = *running;
	return known;
}

/* --- dividing ------------------------------------------------------------------------- */

/* What other threads' hits made the closed waits longer, by where these waits are now. */
static void apportion_others(struct rls_scope *scope, const struct rls_cell *closed,
			     const uint64_t *waited)
{
	uint64_t others_ns = rls_cell_induced_wait_ns(closed), parts[RLS_CATEGORY_MAX];
	double by[RLS_CATEGORY_MAX];

	if (!others_ns)
		return;
	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		by[i] = (double)waited[i];
	rls_apportion(others_ns, by, RLS_CATEGORY_MAX, parts);
	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		scope->cells[i].induced_wait_ns += parts[i];
}

/* Samples of running and of waiting threads are drawn apart, so squares add up; without any of waits the
 * same ones stand for both. */
static double split_error_ns(const struct rls_category_shares *running,
			     const struct rls_category_shares *waiting, int category, double ran_ns,
			     double waited_ns)
{
	double ran = running->error[category] * ran_ns;
	double waited = waiting->error[category] * waited_ns;

	return waiting->drawn ? hypot(ran, waited) : ran + waited;
}

static void apportion_part(struct rls_scope *scope, const struct rls_cell *closed,
			   enum rls_part part, const struct rls_category_shares *running,
			   const struct rls_category_shares *waiting)
{
	uint64_t waited_ns = closed->off_cpu_ns[part], ran_ns = closed->wall_ns[part] - waited_ns;
	uint64_t ran[RLS_CATEGORY_MAX], waited[RLS_CATEGORY_MAX];

	rls_apportion(ran_ns, running->of, RLS_CATEGORY_MAX, ran);
	rls_apportion(waited_ns, waiting->of, RLS_CATEGORY_MAX, waited);
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		struct rls_cell *cell = &scope->cells[i];

		if (!ran[i] && !waited[i])
			continue;
		cell->wall_ns[part] += ran[i] + waited[i];
		cell->off_cpu_ns[part] += waited[i];
		cell->sampled_ns[part] += ran[i] + waited[i];
		cell->sampled_error_ns[part] +=
			split_error_ns(running, waiting, i, (double)ran_ns, (double)waited_ns);
	}
	if (part == RLS_PART_CPU)
		apportion_others(scope, closed, waited);
}

/* What probes cost in closed time, where it was. */
static void apportion_cost(struct rls_scope *scope, const struct rls_cell *closed)
{
	uint64_t parts[RLS_CATEGORY_MAX];
	double by[RLS_CATEGORY_MAX];

	if (!closed->subtracted_ns)
		return;
	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		by[i] = (double)scope->cells[i].sampled_ns[RLS_PART_CPU];
	rls_apportion(closed->subtracted_ns, by, RLS_CATEGORY_MAX, parts);
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		struct rls_cell *cell = &scope->cells[i];
		uint64_t room_ns = cell->wall_ns[RLS_PART_CPU] - cell->subtracted_ns;

		cell->subtracted_ns += parts[i] < room_ns ? parts[i] : room_ns;
	}
}

/* --- counts --------------------------------------------------------------------------- */

static double count_of(const struct pool *pool, int from, int to)
{
	double count = 0;

	for (size_t s = 0; s < pool->count; s++)
		count += (double)pool->scopes[s]->transitions[from][to];
	return count;
}

/* By how much of the estimate it is off for each part that the cost of hits is off by: a rate is by time
 * without that cost. */
static double cost_share(const struct pool *pool)
{
	return pool->traced.corrected_ns > 0 ? (pool->traced.raw_ns - pool->traced.corrected_ns) /
						       pool->traced.corrected_ns
					     : 1;
}

static void scale_count(const struct pool *pool, const struct rls_count_basis *basis, int from,
			int to)
{
	struct rls_count_estimate estimate = rls_estimate_count(basis, from, to);
	double all = count_of(pool, from, to), more = estimate.count, error = estimate.error;

	/* Of so little nothing can be said, and nothing needs to be. */
	if (isinf(error) && pool->closed.corrected_ns < NEGLIGIBLE * pool->traced.corrected_ns) {
		more = all * pool->closed.corrected_ns / pool->traced.corrected_ns;
		error = 2 * more;
	}
	for (size_t s = 0; all > 0 && s < pool->count; s++) {
		struct rls_scope *scope = pool->scopes[s];
		double share = (double)scope->transitions[from][to] / all;

		rls_add_bounded(&scope->transitions[from][to], rls_round_bounded(more * share));
		scope->scaled_error[from][to] = (float)(share > 0 ? error * share : 0);
		scope->scaled_cost[from][to] = estimate.by_visits ? 0 : (float)cost_share(pool);
	}
}

static struct rls_count_basis basis_of(const struct pool *pool,
				       const struct rls_category_shares *running)
{
	struct rls_count_basis basis = {
		.spread = &pool->spread,
		.waits = pool->waits,
		.ran_ns = pool->closed.corrected_ns,
		.ran_error = pool->ran_error,
		.cost_share = cost_share(pool),
		.visits = fmax((double)pool->visits - pool->spread.visits.visits, 0),
	};

	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		basis.traced_share[i] = pool->traced.by_category_ns[i] / pool->traced.corrected_ns;
		basis.sampled_share[i] = running->of[i];
		basis.sampled_error[i] = running->error[i];
	}
	return basis;
}

static void scale_counts(const struct pool *pool, const struct rls_category_shares *running)
{
	struct rls_count_basis basis = basis_of(pool, running);

	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		for (int to = 0; to < RLS_CATEGORY_MAX; to++)
			scale_count(pool, &basis, from, to);
	}
}

/* Transitions into calls, as they were seen: before counts are scaled, and after. */
static double count_calls(const struct pool *pool, double *error)
{
	double count = 0;

	*error = 0;
	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		count += count_of(pool, from, RLS_CATEGORY_CUDA_API);
		for (size_t s = 0; s < pool->count; s++)
			*error += pool->scopes[s]->scaled_error[from][RLS_CATEGORY_CUDA_API];
	}
	return count;
}

/* Once all time is in its category, and counts are scaled. */
static void scale_calls(const struct pool *pool, double seen)
{
	uint64_t traced_ns = pool->traced_ns[RLS_CATEGORY_CUDA_API], all_ns = 0;
	double error, count = count_calls(pool, &error), sampled_error_ns = 0;
	float times = (float)(seen > 0 ? count / seen : 1);
	struct rls_calls_scale scale = {
		.count = times,
		.time = times,
		/* Calls without a transition into them, in any window: nothing is known of them. */
		.count_error = (float)(count > 0 ? error / count : INFINITY),
	};

	for (size_t s = 0; s < pool->count; s++) {
		const struct rls_cell *cell = &pool->scopes[s]->cells[RLS_CATEGORY_CUDA_API];

		all_ns += rls_cell_ns(cell);
		for (int part = 0; part < RLS_PART_MAX; part++)
			sampled_error_ns += cell->sampled_error_ns[part];
	}
	if (traced_ns) {
		scale.time = (float)((double)all_ns / (double)traced_ns);
		scale.time_error = (float)(sampled_error_ns / (double)all_ns);
	}
	for (size_t s = 0; s < pool->count; s++) {
		struct rls_scope *scope = pool->scopes[s];

		for (int from = 0; from < RLS_CATEGORY_MAX; from++)
			scale.cost =
				fmaxf(scale.cost, scope->scaled_cost[from][RLS_CATEGORY_CUDA_API]);
		scope->calls_scale = scale;
	}
}

/* There is closed running time, and none that was traced to go by. */
static void widen_counts(const struct pool *pool)
{
	for (size_t s = 0; s < pool->count; s++) {
		struct rls_scope *scope = pool->scopes[s];

		scope->calls_scale = (struct rls_calls_scale){1, 1, INFINITY, INFINITY, 0};
		for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
			for (int k = 0; k < RLS_CATEGORY_MAX; k++)
				scope->scaled_error[i][k] = scope->transitions[i][k] ? INFINITY : 0;
		}
	}
}

/* --- pools ---------------------------------------------------------------------------- */

static void pool_samples(struct rls_category_samples *into,
			 const struct rls_category_samples *samples)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		into->count[i] += samples->count[i];
		into->ns[i] += samples->ns[i];
	}
}

static void pool_groups(struct rls_spread_groups *into, const struct rls_spread_groups *groups)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		for (int k = 0; k < RLS_CATEGORY_MAX; k++) {
			into->most[i][k] = fmax(into->most[i][k], groups->most[i][k]);
			if (!into->groups ||
			    (groups->groups && groups->least[i][k] < into->least[i][k]))
				into->least[i][k] = groups->least[i][k];
		}
	}
	into->groups += groups->groups;
}

static void pool_visits(struct rls_spread_visits *into, const struct rls_spread_visits *spread)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		for (int k = 0; k < RLS_CATEGORY_MAX; k++) {
			into->count[i][k] += spread->count[i][k];
			into->first[i][k] += spread->first[i][k];
			into->squared[i][k] += spread->squared[i][k];
			into->by_visits[i][k] += spread->by_visits[i][k];
		}
	}
	into->visits += spread->visits;
	into->first_visits += spread->first_visits;
	into->visits_squared += spread->visits_squared;
	into->time_ns += spread->time_ns;
	into->units += spread->units;
	pool_groups(&into->large, &spread->large);
	pool_groups(&into->small, &spread->small);
}

static void pool_closed(struct rls_spread_closed *into, const struct rls_spread_closed *closed)
{
	into->time_ns += closed->time_ns;
	into->visits += closed->visits;
	into->time_squared += closed->time_squared;
	into->time_by_visits += closed->time_by_visits;
	into->visits_squared += closed->visits_squared;
	into->pieces += closed->pieces;
}

static void pool_spread(struct rls_spread *into, const struct rls_spread *spread)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		for (int k = 0; k < RLS_CATEGORY_MAX; k++) {
			into->rate[i][k] += spread->rate[i][k];
			into->rate_squared[i][k] += spread->rate_squared[i][k];
			into->rate_by_share[i][k] += spread->rate_by_share[i][k];
			into->chance[i][k] += spread->chance[i][k];
			into->rate_by_last[i][k] += spread->rate_by_last[i][k];
			into->rate_by_last_share[i][k] += spread->rate_by_last_share[i][k];
			into->least[i][k] = into->pieces && spread->pieces
						    ? fmin(into->least[i][k], spread->least[i][k])
						    : into->least[i][k] + spread->least[i][k];
			into->most[i][k] = fmax(into->most[i][k], spread->most[i][k]);
		}
	}
	into->share += spread->share;
	into->late_share += spread->late_share;
	into->share_squared += spread->share_squared;
	into->share_by_last += spread->share_by_last;
	into->windows += spread->windows;
	into->pieces += spread->pieces;
	pool_visits(&into->visits, &spread->visits);
	pool_closed(&into->closed, &spread->closed);
}

static void fill_pool(struct pool *pool)
{
	for (size_t s = 0; s < pool->count; s++) {
		struct rls_scope *scope = pool->scopes[s];

		for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
			pool->traced_ns[i] += rls_cell_ns(&scope->cells[i]);
			pool->traced.raw_ns += (double)rls_cell_ran_ns(&scope->cells[i]);
			pool->traced.by_category_ns[i] += corrected_ran_ns(&scope->cells[i]);
			pool->traced.corrected_ns += corrected_ran_ns(&scope->cells[i]);
		}
		pool->visits += scope->visits;
		if (!scope->unseen)
			continue;
		pool_samples(&pool->running, &scope->unseen->running);
		pool_samples(&pool->waiting, &scope->unseen->waiting);
		pool_spread(&pool->spread, &scope->unseen->spread);
		/* Transitions of late time are known, and of unreported time. */
		pool->traced.raw_ns += (double)rls_cell_ran_ns(&scope->unseen->late) +
				       (double)rls_cell_ran_ns(&scope->unseen->unreported);
		pool->traced.corrected_ns += corrected_ran_ns(&scope->unseen->late) +
					     corrected_ran_ns(&scope->unseen->unreported);
		pool->unreported_ns += rls_cell_ns(&scope->unseen->unreported);
		pool->closed.raw_ns += (double)rls_cell_ran_ns(&scope->unseen->cell);
		pool->closed.corrected_ns += corrected_ran_ns(&scope->unseen->cell);
		rls_cell_add(&scope->unseen->cell, &scope->unseen->late);
		scope->unseen->late = (struct rls_cell){0};
		pool->closed_ns += rls_cell_ns(&scope->unseen->cell);
	}
}

static double ran_of_untraced(const struct pool *pool)
{
	double ns = 0;

	for (size_t s = 0; s < pool->count; s++) {
		if (pool->scopes[s]->unseen)
			ns += (double)rls_cell_ran_ns(&pool->scopes[s]->unseen->cell) +
			      (double)rls_cell_ran_ns(&pool->scopes[s]->unseen->unreported);
	}
	return ns;
}

/* Waits are reported by the thread's next event, which may be in another operation. How much ran in each is then
 * known by samples too: what the two differ by is uncertain, and the truth may well lie between. */
static void allow_for_misplaced_waits(struct pool *pool, const struct sample_pools *samples)
{
	double all = (double)rls_category_samples_sum(samples->own.running.count);
	double own = (double)rls_category_samples_sum(pool->running.count);
	double ran_ns = ran_of_untraced(pool), by_samples_ns, half_ns;

	if (all <= 0 || ran_ns <= 0 || pool->waits < WAITS_MIN)
		return;
	by_samples_ns = samples->ran_ns * own / all;
	half_ns = (by_samples_ns - ran_ns) / 2;
	pool->closed.corrected_ns *= 1 + half_ns / ran_ns;
	pool->ran_error = fabs(half_ns) / (ran_ns + half_ns) + SIGMAS / sqrt(own + 1) / 2;
}

static void apportion_cell(struct rls_scope *scope, const struct rls_cell *cell,
			   const struct rls_category_shares *running,
			   const struct rls_category_shares *waiting)
{
	for (int part = 0; part < RLS_PART_MAX; part++)
		apportion_part(scope, cell, part, running, waiting);
	apportion_cost(scope, cell);
}

static void apportion_cells(const struct pool *pool, const struct rls_category_shares *running,
			    const struct rls_category_shares *waiting, bool known)
{
	for (size_t s = 0; s < pool->count; s++) {
		struct rls_scope *scope = pool->scopes[s];

		if (!scope->unseen)
			continue;
		apportion_cell(scope, &scope->unseen->cell, running, waiting);
		if (known)
			apportion_cell(scope, &scope->unseen->unreported, running, waiting);
		else
			rls_cell_add(&scope->cells[RLS_CATEGORY_UNKNOWN],
				     &scope->unseen->unreported);
	}
}

static void apportion_pool(const struct rls_thread *thread, struct pool *pool,
			   const struct sample_pools *samples)
{
	struct rls_category_shares running, waiting;
	double calls, error;
	bool known;

	fill_pool(pool);
	calls = count_calls(pool, &error);
	if (!pool->closed_ns && !pool->unreported_ns)
		return;
	pool->waits = fmax(
		1 - ran_of_untraced(pool) / (double)(pool->closed_ns + pool->unreported_ns), 0);
	allow_for_misplaced_waits(pool, samples);
	/* What a probe has not reported, and no sample: that stays unknown. */
	known = shares_of(thread, pool, samples, &running, &waiting) &&
		(thread->sampled || !thread->reported);
	if (pool->closed_ns && pool->traced.corrected_ns > 0)
		scale_counts(pool, &running);
	apportion_cells(pool, &running, &waiting, known);
	if (!pool->closed_ns)
		return;
	if (pool->traced.corrected_ns > 0)
		scale_calls(pool, calls);
	else if (pool->closed.corrected_ns > 0)
		widen_counts(pool);
}

static int order_scopes(const void *left, const void *right)
{
	const struct rls_scope *a = *(struct rls_scope *const *)left;
	const struct rls_scope *b = *(struct rls_scope *const *)right;

	if (a->phase != b->phase)
		return a->phase < b->phase ? -1 : 1;
	return (a->operation > b->operation) - (a->operation < b->operation);
}

static void pool_thread(const struct rls_thread *thread, struct rls_sample_pair *into)
{
	for (struct rls_scope *s = thread->scopes; s; s = s->next) {
		if (!s->unseen)
			continue;
		pool_samples(&into->running, &s->unseen->running);
		pool_samples(&into->waiting, &s->unseen->waiting);
	}
}

void rls_untraced_time_pool(const struct rls_process *process, struct rls_sample_pair *out)
{
	*out = (struct rls_sample_pair){0};
	for (const struct rls_thread *t = process->threads; t; t = t->next) {
		if (!t->reported)
			pool_thread(t, out);
	}
}

int rls_untraced_time_divide(const struct rls_timeline *timeline, struct rls_thread *thread,
			     const struct rls_sample_pair *others)
{
	_cleanup_free_ struct rls_scope **sorted = NULL;
	struct sample_pools samples = {.others = *others};
	struct rls_cell untraced;
	size_t count = 0, capacity = 0;
	bool any = false;

	for (struct rls_scope *s = thread->scopes; s; s = s->next) {
		int err = rls_grow(&sorted, &capacity, count);

		if (err)
			return err;
		sorted[count++] = s;
		any |= s->unseen != NULL;
		if (!s->unseen)
			continue;
		rls_window_counts_finish(timeline, s);
		rls_untraced_all(s->unseen, &untraced);
		samples.ran_ns += (double)rls_cell_ran_ns(&untraced);
	}
	if (!any)
		return 0;
	pool_thread(thread, &samples.own);
	rls_truth_end_moment(&thread->process->truth);
	qsort(sorted, count, sizeof(*sorted), order_scopes);
	for (size_t i = 0, end; i < count; i = end) {
		struct pool pool = {.scopes = sorted + i};

		for (end = i + 1; end < count && !order_scopes(&sorted[i], &sorted[end]);)
			end++;
		pool.count = end - i;
		apportion_pool(thread, &pool, &samples);
	}
	return 0;
}
