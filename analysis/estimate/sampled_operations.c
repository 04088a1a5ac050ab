#include "analysis/estimate/sampled_operations.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/base/apportion.h"
#include "analysis/base/cleanup.h"
#include "analysis/timeline/timeline.h"

#define SIGMAS 1.96

/* --- shares of one category --------------------------------------------------------- */

/* One operation's in the category being divided. */
struct part {
	struct rls_scope *scope;
	double running, waiting_ns, variance_ns2;
	double share, error; /* of running time */
	double waiting_share, waiting_error;
};

static double in_category(const struct rls_truth *truth, const double *seen, const double *inferred,
			  enum rls_category category)
{
	double sum = seen[category], known;

	for (int g = 0; g < RLS_CATEGORY_MAX; g++) {
		if (inferred[g] > 0)
			sum += inferred[g] * rls_truth_share(truth, g, category, &known);
	}
	return sum;
}

static void weigh(const struct rls_truth *truth, const struct rls_operation_samples *samples,
		  enum rls_category category, struct part *part)
{
	const struct rls_sample_weights *seen = &samples->seen, *inferred = &samples->inferred;

	part->running = in_category(truth, seen->running, inferred->running, category);
	part->waiting_ns = in_category(truth, seen->waiting_ns, inferred->waiting_ns, category);
	part->variance_ns2 =
		in_category(truth, seen->variance_ns2, inferred->variance_ns2, category);
}

static void share_running(struct part *parts, size_t count)
{
	double all = 0;

	for (size_t i = 0; i < count; i++)
		all += parts[i].running;
	for (size_t i = 0; i < count; i++) {
		double about = (parts[i].running + 1) / (all + 2);
		double error = SIGMAS * sqrt(about * (1 - about) / (all + 1));

		/* Without any sample it stays where it is, with the first. */
		parts[i].share = all > 0 ? parts[i].running / all : !i;
		parts[i].error = all > 0 ? fmin(error, 1) : 1;
	}
}

static void share_waiting(struct part *parts, size_t count, double waited_ns)
{
	double all_ns = 0, variance = 0, untold;

	for (size_t i = 0; i < count; i++) {
		all_ns += parts[i].waiting_ns;
		variance += parts[i].variance_ns2;
	}
	untold = waited_ns > all_ns ? (waited_ns - all_ns) / waited_ns : 0;
	for (size_t i = 0; i < count; i++) {
		double p = all_ns > 0 ? parts[i].waiting_ns / all_ns : parts[i].share;
		double own = parts[i].variance_ns2;
		double error =
			all_ns > 0
				? SIGMAS / all_ns *
					  sqrt((1 - p) * (1 - p) * own + p * p * (variance - own))
				: 0;

		parts[i].waiting_share = p;
		parts[i].waiting_error = fmin(error + untold * fmax(p, 1 - p), 1);
	}
}

/* --- dividing ----------------------------------------------------------------------- */

/* What is divided together: total by shares, into the cells' own figures. */
struct scratch {
	struct part *parts;
	double *weights;
	uint64_t *ran, *waited, *other;
	size_t count;
};

static struct rls_cell *cell_of(const struct scratch *scratch, size_t i, enum rls_category category)
{
	return &scratch->parts[i].scope->cells[category];
}

/* What other threads' hits made the waits longer, by where these waits are now. */
static void divide_others(const struct scratch *scratch, enum rls_category category,
			  const struct rls_cell *whole)
{
	uint64_t others_ns = rls_cell_induced_wait_ns(whole);

	if (!others_ns)
		return;
	for (size_t i = 0; i < scratch->count; i++)
		scratch->weights[i] = (double)scratch->waited[i];
	rls_apportion(others_ns, scratch->weights, scratch->count, scratch->other);
	for (size_t i = 0; i < scratch->count; i++)
		cell_of(scratch, i, category)->induced_wait_ns += scratch->other[i];
}

static void divide_part(const struct scratch *scratch, enum rls_category category,
			const struct rls_cell *whole, enum rls_part part)
{
	uint64_t waited_ns = whole->off_cpu_ns[part], ran_ns = whole->wall_ns[part] - waited_ns;

	for (size_t i = 0; i < scratch->count; i++)
		scratch->weights[i] = scratch->parts[i].share;
	rls_apportion(ran_ns, scratch->weights, scratch->count, scratch->ran);
	for (size_t i = 0; i < scratch->count; i++)
		scratch->weights[i] = scratch->parts[i].waiting_share;
	rls_apportion(waited_ns, scratch->weights, scratch->count, scratch->waited);
	for (size_t i = 0; i < scratch->count; i++)
		scratch->weights[i] = (double)(scratch->ran[i] + scratch->waited[i]);
	if (whole->wall_ns[part])
		rls_apportion(whole->sampled_ns[part], scratch->weights, scratch->count,
			      scratch->other);
	for (size_t i = 0; whole->wall_ns[part] && i < scratch->count; i++) {
		const struct part *share = &scratch->parts[i];
		struct rls_cell *cell = cell_of(scratch, i, category);
		uint64_t wall_ns = scratch->ran[i] + scratch->waited[i];

		cell->wall_ns[part] += wall_ns;
		cell->off_cpu_ns[part] += scratch->waited[i];
		cell->sampled_ns[part] += scratch->other[i];
		cell->sampled_error_ns[part] += whole->sampled_error_ns[part] * (double)wall_ns /
						(double)whole->wall_ns[part];
		cell->divided_ns[part] += wall_ns;
		cell->divided_error_ns[part] +=
			share->error * (double)ran_ns + share->waiting_error * (double)waited_ns;
	}
	if (part == RLS_PART_CPU)
		divide_others(scratch, category, whole);
}

/* The probes' cost was somewhere in the time. */
static void divide_cost(const struct scratch *scratch, enum rls_category category,
			const struct rls_cell *whole)
{
	if (!whole->subtracted_ns)
		return;
	for (size_t i = 0; i < scratch->count; i++)
		scratch->weights[i] =
			(double)cell_of(scratch, i, category)->divided_ns[RLS_PART_CPU];
	rls_apportion(whole->subtracted_ns, scratch->weights, scratch->count, scratch->other);
	for (size_t i = 0; i < scratch->count; i++) {
		struct rls_cell *cell = cell_of(scratch, i, category);
		uint64_t room_ns = cell->wall_ns[RLS_PART_CPU] - cell->subtracted_ns;

		cell->subtracted_ns += scratch->other[i] < room_ns ? scratch->other[i] : room_ns;
	}
}

static void divide_category(const struct rls_truth *truth, const struct rls_scope *scope,
			    const struct scratch *scratch, enum rls_category category)
{
	struct rls_cell whole = scope->cells[category];
	size_t i = 1;

	if (!whole.wall_ns[RLS_PART_CPU] && !whole.wall_ns[RLS_PART_CPU_GPU])
		return;
	for (const struct rls_operation_samples *s = scope->sampled; s; s = s->next)
		weigh(truth, s, category, &scratch->parts[s->operation ? i++ : 0]);
	share_running(scratch->parts, scratch->count);
	share_waiting(
		scratch->parts, scratch->count,
		(double)(whole.off_cpu_ns[RLS_PART_CPU] + whole.off_cpu_ns[RLS_PART_CPU_GPU]));
	*cell_of(scratch, 0, category) = (struct rls_cell){0};
	divide_part(scratch, category, &whole, RLS_PART_CPU);
	divide_part(scratch, category, &whole, RLS_PART_CPU_GPU);
	divide_cost(scratch, category, &whole);
}

/* parts[0] is the scope itself: no operation. */
static int find_scopes(struct rls_timeline *timeline, struct rls_thread *thread,
		       struct rls_scope *scope, struct part *parts)
{
	size_t i = 1;
	int err = 0;

	parts[0].scope = scope;
	for (const struct rls_operation_samples *s = scope->sampled; !err && s; s = s->next) {
		rls_stack_id stack;

		if (!s->operation)
			continue;
		err = rls_stack_tree_find(&timeline->stacks, &s->operation, 1, &stack);
		if (!err)
			err = rls_timeline_scope(timeline, thread, &thread->scopes, scope->phase,
						 stack, &parts[i++].scope);
	}
	return err;
}

static int divide_scope(struct rls_timeline *timeline, struct rls_thread *thread,
			struct rls_scope *scope)
{
	_cleanup_free_ uint64_t *numbers = NULL;
	_cleanup_free_ double *weights = NULL;
	_cleanup_free_ struct part *parts = NULL;
	struct scratch scratch;
	size_t count = 1;
	int err;

	for (const struct rls_operation_samples *s = scope->sampled; s; s = s->next)
		count += s->operation != 0;
	numbers = calloc(3 * count, sizeof(*numbers));
	weights = calloc(count, sizeof(*weights));
	parts = calloc(count, sizeof(*parts));
	if (!numbers || !weights || !parts)
		return -ENOMEM;
	scratch = (struct scratch){parts, weights, numbers, numbers + count, numbers + 2 * count,
				   count};
	err = find_scopes(timeline, thread, scope, parts);
	for (int c = 0; !err && c < RLS_CATEGORY_MAX; c++)
		divide_category(&thread->process->truth, scope, &scratch, c);
	return err;
}

int rls_sampled_operations_divide(struct rls_timeline *timeline, struct rls_thread *thread)
{
	int err = 0;

	if (!timeline->rules.count)
		return 0;
	/* New scopes are put in front, so none is met that is made meanwhile. */
	for (struct rls_scope *s = thread->scopes; !err && s; s = s->next) {
		if (!s->stack && s->sampled)
			err = divide_scope(timeline, thread, s);
	}
	return err;
}
