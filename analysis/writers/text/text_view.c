#include "analysis/writers/text/text_view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event/bounded.h"

static int order_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int order_keys(const struct rls_view_key *a, const struct rls_view_key *b)
{
	int order = strcmp(a->label, b->label);

	return order ? order : order_numbers(a->tid, b->tid);
}

bool rls_view_key_equal(const struct rls_view_key *a, const struct rls_view_key *b)
{
	return !order_keys(a, b);
}

/* Text is by operation unless the user asked for another grouping. */
static struct rls_view_key key_of(enum rls_group group, uint32_t tid, const char *phase,
				  const char *operation)
{
	switch (group) {
	case RLS_GROUP_PROCESS:
		return (struct rls_view_key){0, ""};
	case RLS_GROUP_THREAD:
		return (struct rls_view_key){tid, ""};
	case RLS_GROUP_PHASE:
		return (struct rls_view_key){0, phase};
	default:
		return (struct rls_view_key){0, operation};
	}
}

void rls_view_line_add(struct rls_view_line *into, const struct rls_view_line *line,
		       enum rls_error_of of)
{
	into->wall_ns += line->wall_ns;
	into->on_cpu_ns += line->on_cpu_ns;
	into->corrected_ns += line->corrected_ns;
	into->cpu_gpu_ns += line->cpu_gpu_ns;
	rls_row_error_add(&into->error, &line->error);
	into->error_ns = rls_row_error_ns(&into->error, of, into->wall_ns);
}

static int by_key_and_category(const void *left, const void *right)
{
	const struct rls_view_line *a = left, *b = right;
	int order = order_keys(&a->key, &b->key);

	return order ? order : order_numbers(a->category, b->category);
}

static int by_order(const void *left, const void *right)
{
	const struct rls_view_line *a = left, *b = right;
	int order = order_numbers(b->order_ns, a->order_ns);

	if (!order)
		order = order_keys(&a->key, &b->key);
	if (!order)
		order = order_numbers(b->wall_ns, a->wall_ns);
	return order ? order : order_numbers(a->category, b->category);
}

/* Where the GPU was busy or not was not drawn: what is wrong there has one cause. */
static double joint_split_ns2(const struct rls_breakdown_row *row,
			      const struct rls_breakdown_row *next)
{
	double sum = sqrt(row->error.split_ns2) + sqrt(next->error.split_ns2);

	return sum * sum - row->error.split_ns2 - next->error.split_ns2;
}

static bool is_same_but_for_gpu(const struct rls_breakdown_row *a,
				const struct rls_breakdown_row *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->category == b->category &&
	       a->resource != RLS_RESOURCE_GPU && !strcmp(a->phase, b->phase) &&
	       !strcmp(a->operation, b->operation);
}

static void take_lines(const struct rls_report *report, const uint32_t *pid, struct rls_view *view)
{
	for (size_t i = 0; i < report->breakdown_count; i++) {
		const struct rls_breakdown_row *row = &report->breakdown[i];
		struct rls_view_line *line;

		if (pid && row->pid != *pid)
			continue;
		if (row->resource == RLS_RESOURCE_GPU) {
			view->gpu_alone_ns += row->wall_ns;
			continue;
		}
		line = &view->lines[view->count++];
		*line = (struct rls_view_line){
			.key = key_of(report->group, row->tid, row->phase, row->operation),
			.category = row->category,
			.wall_ns = row->wall_ns,
			.on_cpu_ns = row->on_cpu_ns,
			.corrected_ns = row->corrected_ns,
			.error = row->error,
			.error_ns = row->error_ns,
			.cpu_gpu_ns = row->resource == RLS_RESOURCE_CPU_GPU ? row->wall_ns : 0,
		};
		if (i && is_same_but_for_gpu(row - 1, row))
			line->error.split_ns2 += joint_split_ns2(row - 1, row);
		rls_view_line_add(&view->total, line, RLS_ERROR_OF_ALL);
	}
}

static void merge_lines(struct rls_view *view)
{
	struct rls_view_line *lines = view->lines;
	size_t kept = 0;

	for (size_t i = 0; i < view->count; i++) {
		if (kept && !by_key_and_category(&lines[kept - 1], &lines[i]))
			rls_view_line_add(&lines[kept - 1], &lines[i], RLS_ERROR_OF_ROWS);
		else
			lines[kept++] = lines[i];
	}
	view->count = kept;
}

/* By name all tie, and ties go by name. */
static uint64_t figure(const struct rls_view_line *line, enum rls_sort sort)
{
	switch (sort) {
	case RLS_SORT_ON_CPU:
		return line->on_cpu_ns;
	case RLS_SORT_GPU:
		return line->cpu_gpu_ns;
	case RLS_SORT_CORRECTED:
		return line->corrected_ns;
	case RLS_SORT_ERROR:
		return line->error_ns;
	case RLS_SORT_NAME:
		return 0;
	default:
		return line->wall_ns;
	}
}

static void sum_groups(struct rls_view *view, enum rls_sort sort)
{
	for (size_t i = 0, end; i < view->count; i = end) {
		struct rls_view_line sum = {0};

		for (end = i; end < view->count &&
			      rls_view_key_equal(&view->lines[i].key, &view->lines[end].key);
		     end++)
			rls_view_line_add(&sum, &view->lines[end], RLS_ERROR_OF_CATEGORIES);
		for (size_t k = i; k < end; k++)
			view->lines[k].order_ns = figure(&sum, sort);
	}
}

int rls_sort_parse(const char *name, enum rls_sort *out)
{
	static const char *const names[RLS_SORT_MAX] = {
		[RLS_SORT_TIME] = "time",   [RLS_SORT_ON_CPU] = "on-cpu",
		[RLS_SORT_GPU] = "gpu",     [RLS_SORT_CORRECTED] = "corrected",
		[RLS_SORT_ERROR] = "error", [RLS_SORT_NAME] = "name",
	};

	for (int i = 0; i < RLS_SORT_MAX; i++) {
		if (!strcmp(name, names[i])) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

int rls_view_breakdown(const struct rls_report *report, const uint32_t *pid, enum rls_sort sort,
		       struct rls_view *out)
{
	struct rls_view view = {0};

	view.lines = calloc(report->breakdown_count + 1, sizeof(*view.lines));
	if (!view.lines)
		return -ENOMEM;
	take_lines(report, pid, &view);
	qsort(view.lines, view.count, sizeof(*view.lines), by_key_and_category);
	merge_lines(&view);
	sum_groups(&view, sort);
	qsort(view.lines, view.count, sizeof(*view.lines), by_order);
	*out = view;
	return 0;
}

void rls_view_free(struct rls_view *view)
{
	free(view->lines);
	*view = (struct rls_view){0};
}

static int by_transition(const void *left, const void *right)
{
	const struct rls_view_transition *a = left, *b = right;
	int order = order_keys(&a->key, &b->key);

	if (!order)
		order = order_numbers(a->from, b->from);
	return order ? order : order_numbers(a->to, b->to);
}

static int by_count(const void *left, const void *right)
{
	const struct rls_view_transition *a = left, *b = right;
	int order = order_numbers(b->count, a->count);

	return order ? order : by_transition(a, b);
}

static void add_transition(struct rls_view_transition *into, const struct rls_view_transition *more)
{
	rls_add_bounded(&into->count, more->count);
	rls_add_bounded(&into->count_error, more->count_error);
	if (more->method > into->method)
		into->method = more->method;
}

int rls_view_transitions(const struct rls_report *report, const uint32_t *pid,
			 struct rls_view_transition **out, size_t *count)
{
	struct rls_view_transition *all = calloc(report->transition_count + 1, sizeof(*all));
	size_t taken = 0, kept = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < report->transition_count; i++) {
		const struct rls_transition_row *row = &report->transitions[i];

		if (pid && row->pid != *pid)
			continue;
		all[taken++] = (struct rls_view_transition){
			.key = key_of(report->group, row->tid, row->phase, row->operation),
			.from = row->from,
			.to = row->to,
			.count = row->count,
			.count_error = row->count_error,
			.method = row->method,
		};
	}
	qsort(all, taken, sizeof(*all), by_transition);
	for (size_t i = 0; i < taken; i++) {
		if (kept && !by_transition(&all[kept - 1], &all[i]))
			add_transition(&all[kept - 1], &all[i]);
		else
			all[kept++] = all[i];
	}
	qsort(all, kept, sizeof(*all), by_count);
	*out = all;
	*count = kept;
	return 0;
}
