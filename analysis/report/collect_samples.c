/* From the sample book to rows: the time of each line, of each function, and of each kind.
 *
 * A line's time is that of samples whose innermost Python frame it is, so lines add up to
 * all there is. A function's own time likewise; its total is that of samples in which it is
 * anywhere on the stack, once however often it recurs. Native functions have rows of their
 * own beside: their time is in their callers' too.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/event/bounded.h"
#include "analysis/report/collect.h"
#include "analysis/event/sample_kind.h"

/* Half width of a 95 % interval, in standard deviations. */
#define INTERVAL_95 1.96

static void add_kind(struct rls_sampled_times *times, const struct rls_sample_cell *cell)
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
}

static const struct rls_frame_node *node_of(const struct rls_collector *c, uint32_t id)
{
	return rls_sample_book_node(&c->timeline->samples, id);
}

/* The innermost Python frame, or NULL. */
static const struct rls_frame_node *python_frame(const struct rls_collector *c, uint32_t id)
{
	const struct rls_frame_node *node = node_of(c, id);

	for (int i = 0; node && node->native && i < RLS_FRAME_DEPTH_MAX; i++)
		node = node_of(c, node->parent);
	return node && !node->native ? node : NULL;
}

/* Rows being filled: several cells may be one row's, and are summed when all are there. */
static void add_line(struct rls_collector *c, const struct rls_sample_cell *cell)
{
	const struct rls_frame_node *node = python_frame(c, cell->frame);
	struct rls_line_row *row = rls_collect_append(c, &c->report->lines, &c->line_capacity,
						      &c->report->line_count);

	if (!row)
		return;
	row->pid = cell->process->pid;
	row->phase = rls_collect_string(c, cell->scope->phase);
	row->operation = rls_collect_string(c, cell->scope->operation);
	row->file = rls_collect_string(c, node ? node->file : 0);
	row->function = rls_collect_string(c, node ? node->function : 0);
	row->line = node ? node->line : 0;
	add_kind(&row->times, cell);
}

static struct rls_function_row *append_function(struct rls_collector *c,
						const struct rls_sample_cell *cell,
						const struct rls_frame_node *node)
{
	struct rls_function_row *row =
		rls_collect_append(c, &c->report->functions, &c->function_capacity,
				   &c->report->function_count);

	if (!row)
		return NULL;
	row->pid = cell->process->pid;
	row->phase = rls_collect_string(c, cell->scope->phase);
	row->operation = rls_collect_string(c, cell->scope->operation);
	row->file = rls_collect_string(c, node ? node->file : 0);
	row->function = rls_collect_string(c, node ? node->function : 0);
	row->native = node && node->native;
	return row;
}

/* Whether a frame further in, from `leaf` on, is of the same function. */
static bool was_counted(const struct rls_collector *c, uint32_t leaf,
			const struct rls_frame_node *node)
{
	const struct rls_frame_node *inner = node_of(c, leaf);

	for (int i = 0; inner && inner != node && i < RLS_FRAME_DEPTH_MAX; i++) {
		if (inner->function == node->function && inner->file == node->file &&
		    inner->native == node->native)
			return true;
		inner = node_of(c, inner->parent);
	}
	return false;
}

/* A row for each frame of each stack would be many times the rows there are in the end. */
#define UNSUMMED_MAX 65536

static void sum_now_and_then(struct rls_collector *c, size_t *limit)
{
	if (c->err || c->report->function_count < *limit)
		return;
	rls_report_sum_samples(c->report);
	*limit = 2 * c->report->function_count;
	if (*limit < UNSUMMED_MAX)
		*limit = UNSUMMED_MAX;
}

static void add_functions(struct rls_collector *c, const struct rls_sample_cell *cell)
{
	const struct rls_frame_node *own = python_frame(c, cell->frame);
	const struct rls_frame_node *node = node_of(c, cell->frame);
	struct rls_function_row *row;

	if (!node || !own) { /* in no Python function at all */
		row = append_function(c, cell, NULL);
		if (row)
			add_kind(&row->times, cell);
		if (row)
			row->total_ns = cell->sum.ns;
	}
	for (int i = 0; node && !c->err && i < RLS_FRAME_DEPTH_MAX; i++) {
		bool counted = was_counted(c, cell->frame, node);

		/* The same function's own time belongs to one row however it recurs. */
		if (!counted) {
			row = append_function(c, cell, node);
			if (!row)
				return;
			row->total_ns = cell->sum.ns;
			if (node == own || (node->native && i == 0))
				add_kind(&row->times, cell);
		}
		node = node_of(c, node->parent);
	}
}

static uint64_t error_of(double variance_ns2)
{
	return rls_round_bounded(INTERVAL_95 * sqrt(variance_ns2));
}

static void add_tally(struct rls_collector *c, const struct rls_sample_tally *tally)
{
	struct rls_sample_row *row = rls_collect_append(c, &c->report->samples,
							&c->sample_capacity,
							&c->report->sample_count);

	if (!row)
		return;
	row->pid = tally->process->pid;
	row->phase = rls_collect_string(c, tally->scope->phase);
	row->operation = rls_collect_string(c, tally->scope->operation);
	row->category = tally->category;
	row->kind = tally->kind;
	row->samples = tally->sum.samples;
	row->ns = tally->sum.ns;
	row->variance_ns2 = tally->sum.variance_ns2;
}

void rls_collect_samples(struct rls_collector *c)
{
	const struct rls_sample_book *book = &c->timeline->samples;
	size_t limit = UNSUMMED_MAX;

	for (const struct rls_sample_cell *cell = book->cells; cell && !c->err; cell = cell->next) {
		add_line(c, cell);
		add_functions(c, cell);
		sum_now_and_then(c, &limit);
	}
	for (const struct rls_sample_tally *t = book->tallies; t && !c->err; t = t->next)
		add_tally(c, t);
	if (!c->err)
		rls_report_sum_samples(c->report);
}

/* --- summing ------------------------------------------------------------------------ */

void rls_sampled_times_add(struct rls_sampled_times *into, const struct rls_sampled_times *more)
{
	/* Every figure but the error, which follows from the variance. */
	uint64_t *to = (uint64_t *)into;
	const uint64_t *from = (const uint64_t *)more;

	for (size_t i = 0; i < offsetof(struct rls_sampled_times, error_ns) / sizeof(*to); i++)
		rls_add_bounded(&to[i], from[i]);
	into->variance_ns2 += more->variance_ns2;
	into->error_ns = error_of(into->variance_ns2);
}

static void sum_lines(struct rls_report *report)
{
	struct rls_line_row *rows = report->lines;
	size_t kept = 0;

	for (size_t i = 0; i < report->line_count; i++) {
		if (kept && !rls_line_row_compare(&rows[kept - 1], &rows[i])) {
			rls_sampled_times_add(&rows[kept - 1].times, &rows[i].times);
			continue;
		}
		rows[kept] = rows[i];
		rows[kept].times.error_ns = error_of(rows[kept].times.variance_ns2);
		kept++;
	}
	report->line_count = kept;
}

static void sum_functions(struct rls_report *report)
{
	struct rls_function_row *rows = report->functions;
	size_t kept = 0;

	for (size_t i = 0; i < report->function_count; i++) {
		if (kept && !rls_function_row_compare(&rows[kept - 1], &rows[i])) {
			rls_sampled_times_add(&rows[kept - 1].times, &rows[i].times);
			rls_add_bounded(&rows[kept - 1].total_ns, rows[i].total_ns);
			continue;
		}
		rows[kept] = rows[i];
		rows[kept].times.error_ns = error_of(rows[kept].times.variance_ns2);
		kept++;
	}
	report->function_count = kept;
}

static void sum_kinds(struct rls_report *report)
{
	struct rls_sample_row *rows = report->samples;
	size_t kept = 0;

	for (size_t i = 0; i < report->sample_count; i++) {
		struct rls_sample_row *into = kept ? &rows[kept - 1] : NULL;

		if (into && !rls_sample_row_compare(into, &rows[i])) {
			rls_add_bounded(&into->samples, rows[i].samples);
			rls_add_bounded(&into->ns, rows[i].ns);
			into->variance_ns2 += rows[i].variance_ns2;
		} else {
			rows[kept] = rows[i];
			into = &rows[kept++];
		}
		into->error_ns = error_of(into->variance_ns2);
	}
	report->sample_count = kept;
}

void rls_report_sum_samples(struct rls_report *report)
{
	rls_report_sort_samples(report);
	sum_lines(report);
	sum_functions(report);
	sum_kinds(report);
}
