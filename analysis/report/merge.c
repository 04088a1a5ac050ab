/* Merging: several traces, of one host or of several, shown as one report. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/host_pid.h"
#include "analysis/base/search.h"
#include "analysis/event/bounded.h"
#include "analysis/event/event_fields.h"
#include "analysis/report/report.h"
#include "analysis/report/report_edit.h"
#include "analysis/report/tables.h"

/* --- hosts -------------------------------------------------------------------------- */

static int add_host(struct rls_report *report, const struct rls_report *from)
{
	int err = 0;
	struct rls_host_entry host = {
		.boot = rls_report_keep(report, from->clocked ? from->boot : "", &err),
		.kernel = rls_report_keep(report, from->kernel, &err),
		.cpus = from->cpus,
	};
	struct rls_host_entry *hosts;

	if (err)
		return err;
	hosts = reallocarray(report->hosts, report->host_count + 1, sizeof(*hosts));
	if (!hosts)
		return -ENOMEM;
	report->hosts = hosts;
	hosts[report->host_count++] = host;
	return 0;
}

/* Boots distinguish hosts; a trace that has none is taken to be of the first. */
static int find_host(struct rls_report *report, const struct rls_report *other, uint32_t *out)
{
	size_t i = 0;
	int err = 0;

	*out = 0;
	if (!report->clocked || !other->clocked || !strcmp(report->boot, other->boot))
		return 0;
	if (!report->host_count)
		err = add_host(report, report);
	while (!err && i < report->host_count && strcmp(report->hosts[i].boot, other->boot))
		i++;
	if (!err && i == RLS_HOSTS_MAX)
		err = -E2BIG;
	if (!err && i == report->host_count)
		err = add_host(report, other);
	*out = (uint32_t)i;
	return err;
}

/* What a trace's pids become in a report that has processes of other hosts already. */
struct numbering {
	const struct rls_report *report; /* processes by pid */
	uint32_t host; /* of the trace */
};

static const struct rls_process_entry *find_process(const struct rls_report *report, uint32_t pid)
{
	size_t low = rls_first_not(report->process_count, i, report->processes[i].pid < pid);

	return low < report->process_count && report->processes[low].pid == pid
		       ? &report->processes[low]
		       : NULL;
}

static uint32_t number_of(const struct numbering *numbering, uint32_t pid)
{
	const struct rls_process_entry *taken = find_process(numbering->report, pid);

	return taken && taken->host != numbering->host && rls_host_pid_fits(pid)
		       ? rls_host_pid(numbering->host, pid)
		       : pid;
}

static bool share_a_pid(const struct numbering *numbering, const struct rls_report *other,
			uint32_t *pid)
{
	for (size_t i = 0; i < other->process_count; i++) {
		*pid = other->processes[i].pid;
		if (find_process(numbering->report, number_of(numbering, *pid)))
			return true;
	}
	return false;
}

/* Every column of every table that is a process's number. */
static void renumber_table(const struct numbering *numbering, struct rls_report *other,
			   enum rls_report_table table)
{
	const struct rls_table *of = &rls_report_tables[table];

	for (size_t k = 0; k < of->column_count; k++) {
		const struct rls_column *column = &of->columns[k];

		for (size_t i = 0; column->flags & RLS_PID && i < rls_table_count(other, table);
		     i++) {
			char *row = rls_table_row(other, table, i);
			uint32_t *pid = (uint32_t *)(row + column->offset);

			*pid = number_of(numbering, *pid);
		}
	}
}

static void renumber(const struct numbering *numbering, struct rls_report *other)
{
	for (size_t i = 0; i < other->process_count; i++) {
		struct rls_process_entry *process = &other->processes[i];

		process->host = numbering->host;
		if (number_of(numbering, process->pid) != process->pid)
			process->host_pid = process->pid;
	}
	for (int table = 0; table < RLS_TABLE_ALL; table++) {
		if (!rls_report_tables[table].inner)
			renumber_table(numbering, other, table);
	}
}

/* --- tables ------------------------------------------------------------------------- */

static int merge_tables(struct rls_report *report, const struct rls_report *other, int64_t shift_ns)
{
	struct rls_table_move move = {shift_ns, (uint32_t)report->stack_frame_count};
	int err = 0;

	if (report->stack_frame_count + other->stack_frame_count > UINT32_MAX)
		return -ENOMEM;
	for (int table = 0; !err && table < RLS_TABLE_ALL; table++) {
		const struct rls_table *of = &rls_report_tables[table];

		if (of->inner || of->flags & (RLS_TABLE_OWN | RLS_TABLE_OF_REPORT))
			continue;
		if (of->flags & RLS_TABLE_FIRST && rls_table_count(report, table))
			continue;
		err = rls_table_append(report, other, table, &move);
	}
	return err;
}

static void merge_budget(struct rls_budget_entry *budget, const struct rls_budget_entry *other)
{
	if (other->percent > budget->percent)
		budget->percent = other->percent;
	if (other->given_up_percent > budget->given_up_percent)
		budget->given_up_percent = other->given_up_percent;
	rls_add_bounded(&budget->windows, other->windows);
	rls_add_bounded(&budget->traced_ns, other->traced_ns);
	rls_add_bounded(&budget->samples, other->samples);
	budget->windowed_sites += other->windowed_sites;
	budget->given_up_sites += other->given_up_sites;
}

static void merge_overhead(struct rls_report *report, const struct rls_overhead *other)
{
	struct rls_overhead *overhead = &report->overhead;

	rls_add_bounded(&overhead->hits, other->hits);
	rls_add_bounded(&overhead->events, other->events);
	rls_add_bounded(&overhead->estimated_ns, other->estimated_ns);
	merge_budget(&overhead->budget, &other->budget);
	if (other->calibration_source > overhead->calibration_source)
		overhead->calibration_source = other->calibration_source;
	rls_report_set_percent(report);
}

static void merge_extent(struct rls_report *report, const struct rls_report *other,
			 int64_t shift_ns)
{
	uint64_t start_ns = other->start_ns + (uint64_t)shift_ns;
	uint64_t end_ns = other->end_ns + (uint64_t)shift_ns;

	report->complete = report->complete && other->complete;
	if (!other->timed)
		return;
	if (!report->timed || start_ns < report->start_ns)
		report->start_ns = start_ns;
	if (!report->timed || end_ns > report->end_ns)
		report->end_ns = end_ns;
	report->timed = true;
}

/* What brings the other's times onto this report's clock: 0 within a boot, and where nothing
 * is known. 0, or -ERANGE. */
static int find_shift(const struct rls_report *report, const struct rls_report *other, int64_t *out)
{
	int64_t shift_ns = 0;

	if (report->clocked && other->clocked && strcmp(report->boot, other->boot) &&
	    __builtin_sub_overflow(other->clock_offset_ns, report->clock_offset_ns, &shift_ns))
		return -ERANGE;
	if (shift_ns < 0 && other->timed && other->start_ns < -(uint64_t)shift_ns)
		return -ERANGE;
	if (shift_ns > 0 && other->end_ns > RLS_EVENT_NUMBER_MAX - (uint64_t)shift_ns)
		return -ERANGE;
	*out = shift_ns;
	return 0;
}

static int merge_clock(struct rls_report *report, const struct rls_report *other)
{
	int err = 0;

	if (!other->clocked)
		return 0;
	if (!report->clocked) {
		report->clocked = true;
		report->boot = rls_report_keep(report, other->boot, &err);
		report->clock_offset_ns = other->clock_offset_ns;
		report->clock_width_ns = other->clock_width_ns;
		report->clock_change_ns = other->clock_change_ns;
		return err;
	}
	if (!strcmp(report->boot, other->boot))
		return 0;
	return rls_report_warn(
		report,
		"traces of different hosts, or of one that was started anew, are shown on the "
		"clock of "
		"the first: their wall clocks are taken to agree, which was not measured (with NTP "
		"they "
		"typically differ by milliseconds); those were read to within %" PRIu64
		" ns and were moved by up to %" PRIu64 " ns meanwhile",
		report->clock_width_ns + other->clock_width_ns,
		report->clock_change_ns + other->clock_change_ns);
}

int rls_report_merge(struct rls_report *report, struct rls_report *other, uint32_t *pid)
{
	struct numbering numbering = {.report = report};
	int64_t shift_ns;
	int err = find_shift(report, other, &shift_ns);

	if (!err)
		err = find_host(report, other, &numbering.host);
	if (err)
		return err;
	if (share_a_pid(&numbering, other, pid))
		return -EEXIST;
	renumber(&numbering, other);
	err = merge_clock(report, other);
	if (!err)
		err = merge_tables(report, other, shift_ns);
	if (err)
		return err;
	merge_overhead(report, &other->overhead);
	merge_extent(report, other, shift_ns);
	rls_report_sort(report);
	return 0;
}
