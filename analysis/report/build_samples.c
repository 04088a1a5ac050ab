/* From the sample totals to rows: the time of each line, of each function, and of each kind.
 *
 * A line's time is that of samples whose innermost Python frame it is, so lines add up to
 * all there is. A function's own time likewise; its total is that of samples in which it is
 * anywhere on the stack, once however often it recurs. Native functions have rows of their
 * own beside: their time is in their callers' too.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/event/bounded.h"
#include "analysis/event/sample_kind.h"
#include "analysis/report/builder.h"

/* Two samples more make the interval of a Poisson count hold for small counts too. */
#define SAMPLES_MORE 2.0
/* As many standard deviations as an interval is wide: all that the process ran. */
#define INTERVAL_MIN 1.96

double rls_build_few_ns(const struct rls_builder *b, const struct rls_process *process)
{
	double period_ns = rls_sample_totals_period_ns(&b->timeline->samples);
	double ran_ns =
		(double)(uintptr_t)rls_index_map_get(&b->ran, (uintptr_t)process, 0) / INTERVAL_MIN;

	return period_ns > 0 ? fmin(sqrt(SAMPLES_MORE) * period_ns, ran_ns) : ran_ns;
}

static void add_kind(const struct rls_builder *b, struct rls_sampled_times *times,
		     const struct rls_sample_cell *cell)
{
	static const size_t places[RLS_SAMPLE_KIND_MAX] = {
		[RLS_SAMPLE_PYTHON] = offsetof(struct rls_sampled_times, python_ns),
		[RLS_SAMPLE_RUNTIME] = offsetof(struct rls_sampled_times, runtime_ns),
		[RLS_SAMPLE_NATIVE] = offsetof(struct rls_sampled_times, native_ns),
		[RLS_SAMPLE_SYSTEM] = offsetof(struct rls_sampled_times, system_ns),
		[RLS_SAMPLE_PROBE] = offsetof(struct rls_sampled_times, system_ns),
		[RLS_SAMPLE_WAIT_LOCK] = offsetof(struct rls_sampled_times, lock_ns),
		[RLS_SAMPLE_WAIT_IO] = offsetof(struct rls_sampled_times, io_ns),
		[RLS_SAMPLE_WAIT_SLEEP] = offsetof(struct rls_sampled_times, sleep_ns),
		[RLS_SAMPLE_WAIT_CHILD] = offsetof(struct rls_sampled_times, child_ns),
		[RLS_SAMPLE_WAIT_GPU] = offsetof(struct rls_sampled_times, gpu_ns),
		[RLS_SAMPLE_WAIT_CPU] = offsetof(struct rls_sampled_times, run_queue_ns),
		[RLS_SAMPLE_WAIT_OTHER] = offsetof(struct rls_sampled_times, other_ns),
	};

	rls_add_bounded((uint64_t *)((char *)times + places[cell->kind]), cell->sum.ns);
	if (cell->kind == RLS_SAMPLE_RUNTIME) /* a part of Python's */
		rls_add_bounded(&times->python_ns, cell->sum.ns);
	if (rls_sample_kind_waits(cell->kind))
		rls_add_bounded(&times->waiting_ns, cell->sum.ns);
	rls_add_bounded(&times->samples, cell->sum.samples);
	times->variance_ns2 += cell->sum.variance_ns2;
	times->few_ns = rls_build_few_ns(b, cell->process);
}

static const struct rls_frame_node *node_of(const struct rls_builder *b, uint32_t id)
{
	return rls_sample_totals_node(&b->timeline->samples, id);
}

/* The innermost Python frame, or NULL. */
static const struct rls_frame_node *python_frame(const struct rls_builder *b, uint32_t id)
{
	const struct rls_frame_node *node = node_of(b, id);

	for (int i = 0; node && node->native && i < RLS_FRAME_DEPTH_MAX; i++)
		node = node_of(b, node->parent);
	return node && !node->native ? node : NULL;
}

/* Rows being filled: several cells may be one row's, and are summed when all are there. */
static void add_line(struct rls_builder *b, const struct rls_sample_cell *cell)
{
	const struct rls_frame_node *node = python_frame(b, cell->frame);
	struct rls_line_row *row = rls_build_row(b, RLS_TABLE_LINES);

	if (!row)
		return;
	row->pid = cell->process->pid;
	row->phase = rls_build_string(b, cell->scope->phase);
	row->operation = rls_build_string(b, cell->scope->operation);
	row->file = rls_build_string(b, node ? node->file : 0);
	row->function = rls_build_string(b, node ? node->function : 0);
	row->line = node ? node->line : 0;
	add_kind(b, &row->times, cell);
}

static struct rls_function_row *append_function(struct rls_builder *b,
						const struct rls_sample_cell *cell,
						const struct rls_frame_node *node)
{
	struct rls_function_row *row = rls_build_row(b, RLS_TABLE_FUNCTIONS);

	if (!row)
		return NULL;
	row->pid = cell->process->pid;
	row->phase = rls_build_string(b, cell->scope->phase);
	row->operation = rls_build_string(b, cell->scope->operation);
	row->file = rls_build_string(b, node ? node->file : 0);
	row->function = rls_build_string(b, node ? node->function : 0);
	row->native = node && node->native;
	return row;
}

/* Whether a frame further in, from `leaf` on, is of the same function. */
static bool was_counted(const struct rls_builder *b, uint32_t leaf,
			const struct rls_frame_node *node)
{
	const struct rls_frame_node *inner = node_of(b, leaf);

	for (int i = 0; inner && inner != node && i < RLS_FRAME_DEPTH_MAX; i++) {
		if (inner->function == node->function && inner->file == node->file &&
		    inner->native == node->native)
			return true;
		inner = node_of(b, inner->parent);
	}
	return false;
}

/* A row for each frame of each stack would be many times the rows there are in the end. */
#define UNSUMMED_MAX 65536

static void sum_now_and_then(struct rls_builder *b, size_t *limit)
{
	if (b->err || b->report->function_count < *limit)
		return;
	rls_table_sum(b->report, RLS_TABLE_FUNCTIONS);
	rls_table_sum(b->report, RLS_TABLE_LINES);
	*limit = 2 * b->report->function_count;
	if (*limit < UNSUMMED_MAX)
		*limit = UNSUMMED_MAX;
}

static void add_functions(struct rls_builder *b, const struct rls_sample_cell *cell)
{
	const struct rls_frame_node *own = python_frame(b, cell->frame);
	const struct rls_frame_node *node = node_of(b, cell->frame);
	struct rls_function_row *row;

	if (!node || !own) { /* in no Python function at all */
		row = append_function(b, cell, NULL);
		if (row)
			add_kind(b, &row->times, cell);
		if (row)
			row->total_ns = cell->sum.ns;
	}
	for (int i = 0; node && !b->err && i < RLS_FRAME_DEPTH_MAX; i++) {
		bool counted = was_counted(b, cell->frame, node);

		/* The same function's own time belongs to one row however it recurs. */
		if (!counted) {
			row = append_function(b, cell, node);
			if (!row)
				return;
			row->total_ns = cell->sum.ns;
			if (node == own || (node->native && i == 0))
				add_kind(b, &row->times, cell);
		}
		node = node_of(b, node->parent);
	}
}

static void add_tally(struct rls_builder *b, const struct rls_sample_tally *tally)
{
	struct rls_sample_row *row = rls_build_row(b, RLS_TABLE_SAMPLES);

	if (!row)
		return;
	row->pid = tally->process->pid;
	row->phase = rls_build_string(b, tally->scope->phase);
	row->operation = rls_build_string(b, tally->scope->operation);
	row->category = tally->category;
	row->kind = tally->kind;
	row->samples = tally->sum.samples;
	row->ns = tally->sum.ns;
	row->variance_ns2 = tally->sum.variance_ns2;
	row->few_ns = rls_sample_kind_waits(tally->kind) ? 0 : rls_build_few_ns(b, tally->process);
}

void rls_build_samples(struct rls_builder *b)
{
	const struct rls_sample_totals *totals = &b->timeline->samples;
	size_t limit = UNSUMMED_MAX;

	for (const struct rls_sample_cell *cell = totals->cells; cell && !b->err;
	     cell = cell->next) {
		add_line(b, cell);
		add_functions(b, cell);
		sum_now_and_then(b, &limit);
	}
	for (const struct rls_sample_tally *t = totals->tallies; t && !b->err; t = t->next)
		add_tally(b, t);
}
