#include "analysis/compare/series.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "analysis/estimate/estimate_untraced.h"
#include "analysis/report/report_edit.h"
#include "analysis/timeline/sweep.h"

/* What a scope's cells said when a unit of it last began. */
struct mark {
	struct mark *next;
	struct rls_series_times times;
	size_t stratum;
};

/* While reading, a stratum's names are ids; they become strings at the end. */
struct reader {
	struct rls_timeline timeline;
	struct rls_series *series;
	struct {
		rls_string_id phase, operation;
		struct rls_series_times traced; /* and closed, before that is divided */
	} * names;
	size_t name_capacity;
	struct rls_index_map strata; /* (phase, operation) -> 1 + index */
	struct rls_index_map mark_map; /* (scope, unit) -> mark */
	struct mark *marks;
};

/* *out SIZE_MAX: there are too many. */
static int find_stratum(struct reader *reader, const struct rls_scope *scope, size_t *out)
{
	struct rls_series *series = reader->series;
	uintptr_t known =
		(uintptr_t)rls_index_map_get(&reader->strata, scope->phase, scope->operation);
	int err;

	*out = known - 1;
	if (known)
		return 0;
	if (series->count == RLS_SERIES_STRATA_MAX) {
		series->cut = true;
		*out = SIZE_MAX;
		return 0;
	}
	err = rls_grow(&reader->names, &reader->name_capacity, series->count);
	if (!err)
		err = rls_grow(&series->strata, &series->capacity, series->count);
	if (!err)
		err = rls_index_map_put(&reader->strata, scope->phase, scope->operation,
					(void *)(uintptr_t)(series->count + 1));
	if (err)
		return err;
	*out = series->count++;
	reader->names[*out].phase = scope->phase;
	reader->names[*out].operation = scope->operation;
	reader->names[*out].traced = (struct rls_series_times){0};
	series->strata[*out] = (struct rls_series_stratum){
		.blocks = {{.units_each = 1}, {.units_each = 1}},
	};
	return 0;
}

/* A cost and a wait may have been taken from the same time. */
static double without_waits(const struct rls_cell *cell, double ns)
{

	for (int part = 0; part < RLS_PART_MAX; part++)
		ns -= (double)cell->off_cpu_ns[part];
	return ns > 0 ? ns : 0;
}

static void read_cell(const struct rls_cell *cell, struct rls_series_times *times, int at)
{
	uint64_t wall_ns = cell->wall_ns[RLS_PART_CPU] + cell->wall_ns[RLS_PART_CPU_GPU];

	times->wall_ns[at] = (double)wall_ns;
	times->corrected_ns[at] = (double)(wall_ns - cell->subtracted_ns);
	times->cpu_ns[at] = without_waits(cell, times->corrected_ns[at]);
	times->corrected_ns[at] -= (double)rls_cell_induced_wait_ns(cell);
	times->ran_ns[at] = without_waits(cell, times->wall_ns[at]);
}

static void read_scope(const struct rls_scope *scope, struct rls_series_times *times)
{
	struct rls_cell untraced = {0};

	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		read_cell(&scope->cells[i], times, i);
	if (scope->unseen)
		rls_untraced_all(scope->unseen, &untraced);
	read_cell(&untraced, times, RLS_SERIES_CLOSED);
}

/* sum += sign * times */
static void add_times(struct rls_series_times *sum, const struct rls_series_times *times,
		      double sign)
{
	for (int i = 0; i < RLS_SERIES_TIMES; i++) {
		sum->wall_ns[i] += sign * times->wall_ns[i];
		sum->corrected_ns[i] += sign * times->corrected_ns[i];
		sum->cpu_ns[i] += sign * times->cpu_ns[i];
		sum->ran_ns[i] += sign * times->ran_ns[i];
	}
}

/* Each two blocks become one. */
static void halve(struct rls_series_blocks *blocks)
{
	for (size_t i = 0; i < RLS_SERIES_BLOCKS / 2; i++) {
		struct rls_series_block block = blocks->blocks[2 * i];

		add_times(&block.times, &blocks->blocks[2 * i + 1].times, 1);
		block.units += blocks->blocks[2 * i + 1].units;
		blocks->blocks[i] = block;
	}
	blocks->count = RLS_SERIES_BLOCKS / 2;
	blocks->units_each *= 2;
}

static int add_unit(struct rls_series_blocks *blocks, const struct rls_series_times *now,
		    const struct rls_series_times *before)
{
	struct rls_series_block *last;

	if (!blocks->count || blocks->blocks[blocks->count - 1].units >= blocks->units_each) {
		int err;

		if (blocks->count == RLS_SERIES_BLOCKS)
			halve(blocks);
		err = rls_grow(&blocks->blocks, &blocks->capacity, blocks->count);
		if (err)
			return err;
		blocks->blocks[blocks->count++] = (struct rls_series_block){0};
	}
	last = &blocks->blocks[blocks->count - 1];
	last->units++;
	add_times(&last->times, now, 1);
	add_times(&last->times, before, -1);
	return 0;
}

/* A unit of the scope begins, and with that the one before it is over. */
static int begin_unit(struct reader *reader, const struct rls_scope *scope,
		      enum rls_series_unit unit)
{
	struct mark *mark = rls_index_map_get(&reader->mark_map, (uintptr_t)scope, unit);
	struct rls_series_times now;
	int err = 0;

	read_scope(scope, &now);
	if (!mark) {
		mark = calloc(1, sizeof(*mark));
		if (!mark)
			return -ENOMEM;
		mark->next = reader->marks;
		reader->marks = mark;
		err = find_stratum(reader, scope, &mark->stratum);
		if (!err)
			err = rls_index_map_put(&reader->mark_map, (uintptr_t)scope, unit, mark);
	} else if (mark->stratum != SIZE_MAX) {
		err = add_unit(&reader->series->strata[mark->stratum].blocks[unit], &now,
			       &mark->times);
	}
	mark->times = now;
	if (!err && unit == RLS_SERIES_INNER_CALL && mark->stratum != SIZE_MAX)
		reader->series->strata[mark->stratum].units[unit]++;
	return err;
}

/* The operations that the thread has entered were called, each in the next outer one. */
static int note_calls(struct reader *reader, struct rls_thread *thread, rls_stack_id before)
{
	struct rls_timeline *timeline = &reader->timeline;
	rls_stack_id stay =
		rls_stack_tree_kept(&timeline->stacks, before, thread->stack, thread->continued);
	int err = 0;

	for (rls_stack_id stack = thread->stack; !err && stack != stay;) {
		rls_stack_id outer = rls_stack_tree_node(&timeline->stacks, stack).parent;
		struct rls_scope *scope, *outer_scope;

		err = rls_timeline_scope(timeline, thread, &thread->scopes, thread->process->phase,
					 stack, &scope);
		if (!err)
			err = rls_timeline_scope(timeline, thread, &thread->scopes,
						 thread->process->phase, outer, &outer_scope);
		if (!err)
			err = begin_unit(reader, scope, RLS_SERIES_CALL);
		if (!err)
			err = begin_unit(reader, outer_scope, RLS_SERIES_INNER_CALL);
		stack = outer;
	}
	return err;
}

static struct rls_thread *living_thread(struct reader *reader, const struct rls_event *event)
{
	struct rls_process *process = rls_timeline_process(&reader->timeline, event->pid);
	struct rls_thread *thread = NULL;

	if (process)
		thread = rls_timeline_thread(&reader->timeline, process, event->tid);
	return thread && thread->alive_link ? thread : NULL;
}

static int read_operation(struct reader *reader, const struct rls_event *event)
{
	struct rls_thread *thread = living_thread(reader, event);
	rls_stack_id before = thread ? thread->stack : 0;
	int err = rls_sweep_event(&reader->timeline, event);

	thread = living_thread(reader, event);
	return err || !thread ? err : note_calls(reader, thread, before);
}

static int read_events(struct reader *reader, struct rls_event_source *source)
{
	struct rls_event event;
	int more, err = 0;

	while (!err && (more = source->next(source, &event)) > 0)
		err = event.kind == RLS_EVENT_OPERATION
			      ? read_operation(reader, &event)
			      : rls_sweep_event(&reader->timeline, &event);
	if (err || more < 0)
		return err ? err : more;
	return rls_sweep_end(&reader->timeline);
}

/* --- when all is over --------------------------------------------------------------- */

static int each_scope(struct reader *reader,
		      void (*visit)(struct reader *reader, const struct rls_scope *scope,
				    size_t at))
{
	int err = 0;

	for (struct rls_process *p = reader->timeline.processes; p; p = p->next) {
		for (struct rls_thread *t = p->threads; t; t = t->next) {
			for (struct rls_scope *s = t->scopes; !err && s; s = s->next) {
				size_t at;

				err = find_stratum(reader, s, &at);
				if (!err && at != SIZE_MAX)
					visit(reader, s, at);
			}
		}
	}
	return err;
}

static void add_traced(struct reader *reader, const struct rls_scope *scope, size_t at)
{
	struct rls_series_times times;

	read_scope(scope, &times);
	add_times(&reader->names[at].traced, &times, 1);
}

static void add_total(struct reader *reader, const struct rls_scope *scope, size_t at)
{
	struct rls_series_stratum *stratum = &reader->series->strata[at];
	struct rls_series_times times;

	read_scope(scope, &times);
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		for (int part = 0; part < RLS_PART_MAX; part++)
			stratum->sampled_error_ns[i] += scope->cells[i].sampled_error_ns[part];
	}
	add_times(&stratum->times, &times, 1);
	stratum->units[RLS_SERIES_CALL] += (double)scope->entries;
}

/* What is closed goes to the categories by what each of them got of the whole. */
static void divide_closed(double *times, const double *traced, const double *estimated)
{
	double closed = times[RLS_SERIES_CLOSED], sum = 0;

	times[RLS_SERIES_CLOSED] = 0;
	/* Less than was traced: some of it was found to be native. */
	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		sum += fmax(estimated[i] - traced[i], 0);
	for (int i = 0; sum > 0 && i < RLS_CATEGORY_MAX; i++)
		times[i] += closed * fmax(estimated[i] - traced[i], 0) / sum;
}

static void divide_blocks(struct rls_series_blocks *blocks, const struct rls_series_times *traced,
			  const struct rls_series_times *estimated)
{
	for (size_t i = 0; i < blocks->count; i++) {
		struct rls_series_times *times = &blocks->blocks[i].times;

		divide_closed(times->wall_ns, traced->wall_ns, estimated->wall_ns);
		divide_closed(times->corrected_ns, traced->corrected_ns, estimated->corrected_ns);
		divide_closed(times->cpu_ns, traced->cpu_ns, estimated->cpu_ns);
		divide_closed(times->ran_ns, traced->ran_ns, estimated->ran_ns);
	}
}

/* What everything came to. */
static int add_totals(struct reader *reader)
{
	struct rls_series *series = reader->series;
	int err = each_scope(reader, add_traced);

	if (!err)
		err = rls_estimate_untraced(&reader->timeline);
	if (!err)
		err = each_scope(reader, add_total);
	for (size_t i = 0; !err && i < series->count; i++) {
		for (int unit = 0; unit < RLS_SERIES_UNIT_MAX; unit++)
			divide_blocks(&series->strata[i].blocks[unit], &reader->names[i].traced,
				      &series->strata[i].times);
	}
	return err;
}

static int name_strata(struct reader *reader, const struct rls_event_source *source)
{
	struct rls_series *series = reader->series;
	int err = rls_report_new(&series->report);

	if (!err)
		err = rls_report_from_timeline(series->report, &reader->timeline, source->strings,
					       source->damaged);
	if (!err)
		series->duration_ns = series->report->end_ns - series->report->start_ns;
	for (size_t i = 0; !err && i < series->count; i++) {
		series->strata[i].phase = rls_report_keep(
			series->report,
			rls_string_pool_get(source->strings, reader->names[i].phase), &err);
		series->strata[i].operation = rls_report_keep(
			series->report,
			rls_string_pool_get(source->strings, reader->names[i].operation), &err);
	}
	return err;
}

int rls_series_read(struct rls_event_source *source, struct rls_series **out)
{
	struct reader reader = {.series = calloc(1, sizeof(*reader.series))};
	int err = reader.series ? 0 : -ENOMEM;

	if (err)
		return err;
	err = read_events(&reader, source);
	if (!err)
		err = add_totals(&reader);
	if (!err)
		err = name_strata(&reader, source);
	for (struct mark *mark = reader.marks, *next; mark; mark = next) {
		next = mark->next;
		free(mark);
	}
	free(reader.names);
	rls_index_map_free(&reader.strata);
	rls_index_map_free(&reader.mark_map);
	rls_timeline_free(&reader.timeline);
	if (err)
		rls_series_free(reader.series);
	else
		*out = reader.series;
	return err;
}

void rls_series_free(struct rls_series *series)
{
	if (!series)
		return;
	for (size_t i = 0; i < series->count; i++) {
		for (int unit = 0; unit < RLS_SERIES_UNIT_MAX; unit++)
			free(series->strata[i].blocks[unit].blocks);
	}
	free(series->strata);
	rls_report_free(series->report);
	free(series);
}
