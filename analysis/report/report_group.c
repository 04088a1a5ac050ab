/* Grouping: sums rows over what they are not to be told apart by. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event/bounded.h"
#include "analysis/report/report_private.h"

/* Which columns a group keeps; the pid is kept by all. */
static const struct {
	const char *name;
	bool tid, phase, operation;
} groups[] = {
	[RLS_GROUP_NONE] = {"none", true, true, true},
	[RLS_GROUP_PROCESS] = {.name = "process"},
	[RLS_GROUP_THREAD] = {.name = "thread", .tid = true},
	[RLS_GROUP_OPERATION] = {.name = "operation", .operation = true},
	[RLS_GROUP_PHASE] = {.name = "phase", .phase = true},
	[RLS_GROUP_LINE] = {.name = "line"},
	[RLS_GROUP_FUNCTION] = {.name = "function"},
	[RLS_GROUP_FILE] = {.name = "file"},
};
_Static_assert(sizeof(groups) / sizeof(*groups) == RLS_GROUP_MAX, "a line per group");

int rls_group_parse(const char *name, enum rls_group *out)
{
	for (int i = RLS_GROUP_PROCESS; i < RLS_GROUP_MAX; i++) {
		if (!strcmp(name, groups[i].name)) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

static void blank(enum rls_group group, uint32_t *tid, const char **phase, const char **operation)
{
	if (!groups[group].tid)
		*tid = 0;
	if (!groups[group].phase)
		*phase = "";
	if (!groups[group].operation)
		*operation = "";
}

static void sum_breakdown(struct rls_report *report)
{
	struct rls_breakdown_row *rows = report->breakdown;
	size_t kept = 0;

	for (size_t i = 0; i < report->breakdown_count; i++) {
		struct rls_breakdown_row *into = kept ? &rows[kept - 1] : NULL;

		if (!into || rls_breakdown_row_compare(into, &rows[i])) {
			rows[kept++] = rows[i];
			continue;
		}
		rls_add_bounded(&into->wall_ns, rows[i].wall_ns);
		rls_add_bounded(&into->on_cpu_ns, rows[i].on_cpu_ns);
		rls_add_bounded(&into->corrected_ns, rows[i].corrected_ns);
		rls_add_bounded(&into->others_cost_ns, rows[i].others_cost_ns);
		/* Errors of one calibration go the same way: they add up, not cancel out. */
		rls_add_bounded(&into->error_ns, rows[i].error_ns);
		rls_add_bounded(&into->undivided.error_ns, rows[i].undivided.error_ns);
		if (rows[i].method > into->method)
			into->method = rows[i].method;
		if (rows[i].undivided.method > into->undivided.method)
			into->undivided.method = rows[i].undivided.method;
	}
	report->breakdown_count = kept;
}

static void sum_transitions(struct rls_report *report)
{
	struct rls_transition_row *rows = report->transitions;
	size_t kept = 0;

	for (size_t i = 0; i < report->transition_count; i++) {
		struct rls_transition_row *into = kept ? &rows[kept - 1] : NULL;

		if (!into || rls_transition_row_compare(into, &rows[i]))
			rows[kept++] = rows[i];
		else {
			rls_add_bounded(&into->count, rows[i].count);
			rls_add_bounded(&into->count_error, rows[i].count_error);
			if (rows[i].method > into->method)
				into->method = rows[i].method;
		}
	}
	report->transition_count = kept;
}

static void sum_operations(struct rls_report *report)
{
	struct rls_operation_row *rows = report->operations;
	size_t kept = 0;

	for (size_t i = 0; i < report->operation_count; i++) {
		struct rls_operation_row *into = kept ? &rows[kept - 1] : NULL;

		if (!into || rls_operation_row_compare(into, &rows[i]))
			rows[kept++] = rows[i];
		else
			rls_add_bounded(&into->entries, rows[i].entries);
	}
	report->operation_count = kept;
}

static void sum_cuda_calls(struct rls_report *report)
{
	struct rls_cuda_call_row *rows = report->cuda_calls;
	size_t kept = 0;

	for (size_t i = 0; i < report->cuda_call_count; i++) {
		struct rls_cuda_call_row *into = kept ? &rows[kept - 1] : NULL;

		if (!into || rls_cuda_call_row_compare(into, &rows[i])) {
			rows[kept++] = rows[i];
			continue;
		}
		rls_add_bounded(&into->count, rows[i].count);
		rls_add_bounded(&into->wall_ns, rows[i].wall_ns);
		rls_add_bounded(&into->launches, rows[i].launches);
		rls_add_bounded(&into->count_error, rows[i].count_error);
		rls_add_bounded(&into->error_ns, rows[i].error_ns);
		if (rows[i].method > into->method)
			into->method = rows[i].method;
	}
	report->cuda_call_count = kept;
}

/* Samples have no thread; a file's lines are told apart unless files are asked for. */
static void blank_samples(struct rls_report *report, enum rls_group group)
{
	uint32_t tid;

	for (size_t i = 0; i < report->line_count; i++) {
		struct rls_line_row *row = &report->lines[i];

		blank(group, &tid, &row->phase, &row->operation);
		if (group == RLS_GROUP_FILE) {
			row->line = 0;
			row->function = "";
		}
	}
	for (size_t i = 0; i < report->function_count; i++)
		blank(group, &tid, &report->functions[i].phase, &report->functions[i].operation);
	for (size_t i = 0; i < report->sample_count; i++)
		blank(group, &tid, &report->samples[i].phase, &report->samples[i].operation);
}

void rls_report_group(struct rls_report *report, enum rls_group group)
{
	if (group == RLS_GROUP_NONE)
		return;
	for (size_t i = 0; i < report->breakdown_count; i++) {
		struct rls_breakdown_row *row = &report->breakdown[i];

		blank(group, &row->tid, &row->phase, &row->operation);
		if (groups[group].operation)
			continue;
		row->method = row->undivided.method;
		row->error_ns = row->undivided.error_ns;
	}
	for (size_t i = 0; i < report->transition_count; i++) {
		struct rls_transition_row *row = &report->transitions[i];

		blank(group, &row->tid, &row->phase, &row->operation);
	}
	for (size_t i = 0; i < report->operation_count; i++) {
		struct rls_operation_row *row = &report->operations[i];

		blank(group, &row->tid, &row->phase, &row->operation);
	}
	for (size_t i = 0; i < report->cuda_call_count; i++) {
		struct rls_cuda_call_row *row = &report->cuda_calls[i];

		blank(group, &row->tid, &row->phase, &row->operation);
	}
	blank_samples(report, group);
	rls_report_sort(report);
	rls_report_sum_samples(report);
	sum_cuda_calls(report);
	sum_breakdown(report);
	sum_transitions(report);
	sum_operations(report);
	report->group = group;
}
