#include "analysis/estimate/untraced_time.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/apportion.h"
#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/base/student.h"
#include "analysis/event/bounded.h"
#include "analysis/timeline/timeline.h"

#define SIGMAS 1.96
#define CONFIDENCE 0.95
/* Of a thread's time, what it may run and still be held to have been waiting all along. */
#define PARKED_SHARE 0.002

static double corrected_ran_ns(const struct rls_cell *cell)
{
	double cost_ns = (double)cell->subtracted_ns + (double)cell->under_gpu_ns;

	/* A cost and a wait may have been taken from the same time. */
	return fmax((double)rls_cell_ran_ns(cell) - cost_ns, 0);
}

/* --- shares --------------------------------------------------------------------------- */

struct looks_of_thread {
	struct rls_category_samples running, waiting;
};

struct shares {
	double of[RLS_CATEGORY_MAX];
	double error[RLS_CATEGORY_MAX]; /* half width */
	bool drawn; /* of samples, which nothing else was taken of */
};

/* The scopes of one operation and phase, and all that is known of them together. */
struct pool {
	struct rls_scope *const *scopes;
	size_t count;
	struct rls_category_samples running, waiting;
	struct rls_spread spread;
	uint64_t traced_ns[RLS_CATEGORY_MAX];
	uint64_t closed_ns;
	struct {
		double raw_ns, corrected_ns;
	} traced, closed; /* running */
};

/* weight: of each guess, summing to 1, drawn so many times. */
static void untraced_time_judge(const struct rls_truth *truth, const double *weight, double draws,
				struct shares *out)
{
	for (int c = 0; c < RLS_CATEGORY_MAX; c++) {
		double share = 0, variance = 0, about;

		for (int g = 0; g < RLS_CATEGORY_MAX; g++) {
			double known, p = rls_truth_share(truth, g, c, &known);

			share += weight[g] * p;
			if (known > 0)
				variance += weight[g] * weight[g] * rls_truth_variance(truth, g, c);
		}
		about = (share * draws + 1) / (draws + 2); /* none of few is not never */
		variance += about * (1 - about) / (draws + 1);
		out->of[c] = share;
		out->error[c] = fmin(SIGMAS * sqrt(variance), 1);
	}
}

/* False when there is nothing to go by. */
static bool by_weights(const struct rls_truth *truth, const uint64_t *weights, double draws,
		       struct shares *out)
{
	double total = (double)rls_category_samples_sum(weights), weight[RLS_CATEGORY_MAX];

	if (total <= 0)
		return false;
	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		weight[i] = (double)weights[i] / total;
	untraced_time_judge(truth, weight, draws, out);
	return true;
}

/* Known of another time, so it is in doubt altogether. */
static bool by_traced(const struct pool *pool, struct shares *out)
{
	double total = (double)rls_category_samples_sum(pool->traced_ns);

	for (int i = 0; total > 0 && i < RLS_CATEGORY_MAX; i++) {
		out->of[i] = (double)pool->traced_ns[i] / total;
		out->error[i] = fmax(out->of[i], 1 - out->of[i]);
	}
	return total > 0;
}

static void by_nothing(enum rls_category category, struct shares *out)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		out->of[i] = i == (int)category;
		out->error[i] = 1;
	}
}

/* A helper thread is parked while the thread that it works for passes through operations: the
 * helper runs in none of them. */
static bool was_parked(const struct pool *pool)
{
	return !rls_category_samples_sum(pool->running.count) &&
	       pool->closed.raw_ns < PARKED_SHARE * (double)pool->closed_ns;
}

/* all: of the thread in any operation. */
static void shares_of(const struct rls_thread *thread, const struct pool *pool,
		      const struct looks_of_thread *all, struct shares *running,
		      struct shares *waiting)
{
	const struct rls_truth *truth = &thread->process->truth;
	const struct rls_category_samples *waits = &pool->waiting;

	if (!by_weights(truth, pool->running.count,
			(double)rls_category_samples_sum(pool->running.count), running) &&
	    !by_traced(pool, running) && !by_weights(truth, all->running.count, 1, running))
		by_nothing(thread->category, running);
	/* Its waits have begun in other operations, or ended there, where samples reported them. */
	if (!rls_category_samples_sum(waits->ns) && was_parked(pool))
		waits = &all->waiting;
	waiting->drawn = by_weights(truth, waits->ns,
				    (double)rls_category_samples_sum(waits->count), waiting);
	if (!waiting->drawn)
		*waiting = *running;
}

/* --- dividing ------------------------------------------------------------------------- */

/* What other threads' hits made the closed waits longer, by where these waits are now. */
static void settle_others(struct rls_scope *scope, const uint64_t *waited)
{
	uint64_t others_ns = rls_cell_induced_wait_ns(&scope->unseen->cell),
		 parts[RLS_CATEGORY_MAX];
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
static double split_error_ns(const struct shares *running, const struct shares *waiting,
			     int category, double ran_ns, double waited_ns)
{
	double ran = running->error[category] * ran_ns;
	double waited = waiting->error[category] * waited_ns;

	return waiting->drawn ? hypot(ran, waited) : ran + waited;
}

static void settle_part(struct rls_scope *scope, enum rls_part part, const struct shares *running,
			const struct shares *waiting)
{
	const struct rls_cell *closed = &scope->unseen->cell;
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
		cell->looked_error_ns[part] +=
			split_error_ns(running, waiting, i, (double)ran_ns, (double)waited_ns);
	}
	if (part == RLS_PART_CPU)
		settle_others(scope, waited);
}

/* What probes cost in closed time, where it was. */
static void settle_cost(struct rls_scope *scope)
{
	uint64_t parts[RLS_CATEGORY_MAX];
	double by[RLS_CATEGORY_MAX];

	if (!scope->unseen->cell.subtracted_ns)
		return;
	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		by[i] = (double)scope->cells[i].sampled_ns[RLS_PART_CPU];
	rls_apportion(scope->unseen->cell.subtracted_ns, by, RLS_CATEGORY_MAX, parts);
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		struct rls_cell *cell = &scope->cells[i];
		uint64_t room_ns = cell->wall_ns[RLS_PART_CPU] - cell->subtracted_ns;

		cell->subtracted_ns += parts[i] < room_ns ? parts[i] : room_ns;
	}
}

/* --- counts --------------------------------------------------------------------------- */

/* Of the closed time for one of the traced; 0: not known. */
static double closed_factor(const struct pool *pool)
{
	return pool->traced.corrected_ns > 0 ? pool->closed.corrected_ns / pool->traced.corrected_ns
					     : 0;
}

/* Half width of the count that the closed time is held to have had. */
static double count_error(const struct pool *pool, int from, int to, double count)
{
	const struct rls_spread *spread = &pool->spread;
	double time = (double)spread->timed_ns, rate = count / time, squares;

	/* How windows differ is not known. */
	if (spread->windows < 2)
		return count * closed_factor(pool);
	squares = spread->counts_squared[from][to] - 2 * rate * spread->counts_by_time[from][to] +
		  rate * rate * spread->time_squared;
	squares *= spread->windows / (spread->windows - 1.0);
	return rls_student_quantile(CONFIDENCE, spread->windows - 1.0) *
	       sqrt(fmax(squares, count)) * closed_factor(pool);
}

static double count_of(const struct pool *pool, int from, int to)
{
	double count = 0;

	for (size_t s = 0; s < pool->count; s++)
		count += (double)pool->scopes[s]->transitions[from][to];
	return count;
}

/* Hits make windows longer than they would be, and closed time hardly. */
static double cost_share(const struct pool *pool, double factor)
{
	double raw = pool->closed.raw_ns / pool->traced.raw_ns;

	return fabs(factor - raw) / (1 + factor);
}

static void scale_counts(const struct pool *pool)
{
	double factor = closed_factor(pool);

	for (size_t s = 0; s < pool->count; s++)
		pool->scopes[s]->scaled_cost = (float)cost_share(pool, factor);
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		for (int k = 0; k < RLS_CATEGORY_MAX; k++) {
			double all = count_of(pool, i, k);
			double error = all > 0 ? count_error(pool, i, k, all) : 0;

			for (size_t s = 0; all > 0 && s < pool->count; s++) {
				struct rls_scope *scope = pool->scopes[s];
				double count = (double)scope->transitions[i][k];

				rls_add_bounded(&scope->transitions[i][k],
						rls_round_bounded(count * factor));
				scope->scaled_error[i][k] = (float)(error * count / all);
			}
		}
	}
}

/* Of the number of calls, as a share of it: that of the transitions into them. */
static double calls_error(const struct pool *pool)
{
	double factor = closed_factor(pool), count = 0, error = 0;

	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		count += count_of(pool, from, RLS_CATEGORY_CUDA_API);
		for (size_t s = 0; s < pool->count; s++)
			error += pool->scopes[s]->scaled_error[from][RLS_CATEGORY_CUDA_API];
	}
	return count > 0 ? error / count : factor / (1 + factor);
}

/* Once all time is in its category, and counts are scaled. */
static void scale_calls(const struct pool *pool)
{
	uint64_t traced_ns = pool->traced_ns[RLS_CATEGORY_CUDA_API], all_ns = 0;
	double factor = closed_factor(pool), looked_error_ns = 0;
	struct rls_calls_scale scale = {
		.count = (float)(1 + factor),
		.time = (float)(1 + factor),
		.count_error = (float)calls_error(pool),
	};

	for (size_t s = 0; s < pool->count; s++) {
		const struct rls_cell *cell = &pool->scopes[s]->cells[RLS_CATEGORY_CUDA_API];

		all_ns += rls_cell_ns(cell);
		for (int part = 0; part < RLS_PART_MAX; part++)
			looked_error_ns += cell->looked_error_ns[part];
	}
	if (traced_ns) {
		scale.time = (float)((double)all_ns / (double)traced_ns);
		scale.time_error = (float)(looked_error_ns / (double)all_ns);
	}
	for (size_t s = 0; s < pool->count; s++)
		pool->scopes[s]->calls_scale = scale;
}

/* There is closed running time, and none that was traced to go by. */
static void doubt_counts(const struct pool *pool)
{
	for (size_t s = 0; s < pool->count; s++) {
		struct rls_scope *scope = pool->scopes[s];

		scope->calls_scale = (struct rls_calls_scale){1, 1, INFINITY, INFINITY};
		for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
			for (int k = 0; k < RLS_CATEGORY_MAX; k++)
				scope->scaled_error[i][k] = scope->transitions[i][k] ? INFINITY : 0;
		}
	}
}

/* --- pools ---------------------------------------------------------------------------- */

static void pool_looks(struct rls_category_samples *into, const struct rls_category_samples *looks)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		into->count[i] += looks->count[i];
		into->ns[i] += looks->ns[i];
	}
}

static void pool_spread(struct rls_spread *into, const struct rls_spread *spread)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		for (int k = 0; k < RLS_CATEGORY_MAX; k++) {
			into->counted[i][k] += spread->counted[i][k];
			into->counts_squared[i][k] += spread->counts_squared[i][k];
			into->counts_by_time[i][k] += spread->counts_by_time[i][k];
		}
	}
	into->time_squared += spread->time_squared;
	into->timed_ns += spread->timed_ns;
	into->windows += spread->windows;
}

static void fill_pool(struct pool *pool)
{
	for (size_t s = 0; s < pool->count; s++) {
		struct rls_scope *scope = pool->scopes[s];

		for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
			pool->traced_ns[i] += rls_cell_ns(&scope->cells[i]);
			pool->traced.raw_ns += (double)rls_cell_ran_ns(&scope->cells[i]);
			pool->traced.corrected_ns += corrected_ran_ns(&scope->cells[i]);
		}
		if (!scope->unseen)
			continue;
		rls_timeline_end_window(scope);
		pool_looks(&pool->running, &scope->unseen->running);
		pool_looks(&pool->waiting, &scope->unseen->waiting);
		pool_spread(&pool->spread, &scope->unseen->spread);
		pool->closed_ns += rls_cell_ns(&scope->unseen->cell);
		pool->closed.raw_ns += (double)rls_cell_ran_ns(&scope->unseen->cell);
		pool->closed.corrected_ns += corrected_ran_ns(&scope->unseen->cell);
	}
}

static void settle_pool(const struct rls_thread *thread, struct pool *pool,
			const struct looks_of_thread *all)
{
	struct shares running, waiting;

	fill_pool(pool);
	if (!pool->closed_ns)
		return;
	shares_of(thread, pool, all, &running, &waiting);
	if (pool->traced.corrected_ns > 0)
		scale_counts(pool);
	for (size_t s = 0; s < pool->count; s++) {
		struct rls_scope *scope = pool->scopes[s];

		if (!scope->unseen)
			continue;
		for (int part = 0; part < RLS_PART_MAX; part++)
			settle_part(scope, part, &running, &waiting);
		settle_cost(scope);
	}
	if (pool->traced.corrected_ns > 0)
		scale_calls(pool);
	else if (pool->closed.corrected_ns > 0)
		doubt_counts(pool);
}

static int order_scopes(const void *left, const void *right)
{
	const struct rls_scope *a = *(struct rls_scope *const *)left;
	const struct rls_scope *b = *(struct rls_scope *const *)right;

	if (a->phase != b->phase)
		return a->phase < b->phase ? -1 : 1;
	return (a->operation > b->operation) - (a->operation < b->operation);
}

int rls_untraced_time_divide(struct rls_thread *thread)
{
	_cleanup_free_ struct rls_scope **sorted = NULL;
	struct looks_of_thread all = {0};
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
		pool_looks(&all.running, &s->unseen->running);
		pool_looks(&all.waiting, &s->unseen->waiting);
	}
	if (!any)
		return 0;
	rls_truth_end_moment(&thread->process->truth);
	qsort(sorted, count, sizeof(*sorted), order_scopes);
	for (size_t i = 0, end; i < count; i = end) {
		struct pool pool = {.scopes = sorted + i};

		for (end = i + 1; end < count && !order_scopes(&sorted[i], &sorted[end]);)
			end++;
		pool.count = end - i;
		settle_pool(thread, &pool, &all);
	}
	return 0;
}
