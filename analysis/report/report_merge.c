/* Merging: several traces, of one host or of several, shown as one report. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event/bounded.h"
#include "analysis/base/cleanup.h"
#include "analysis/event/event_fields.h"
#include "analysis/base/host_pid.h"
#include "analysis/report/report_private.h"

/* Appends `more` elements to an array, as they are. 0, or -ENOMEM. */
static int append_bytes(void **items, size_t *count, const void *more, size_t more_count,
			size_t item_bytes)
{
	void *grown;

	if (!more_count)
		return 0;
	grown = reallocarray(*items, *count + more_count, item_bytes);
	if (!grown)
		return -ENOMEM;
	memcpy((char *)grown + *count * item_bytes, more, more_count * item_bytes);
	*items = grown;
	*count += more_count;
	return 0;
}

#define append_all(items, count, more, more_count)                                          \
	({                                                                                  \
		void *grown_ = *(items);                                                    \
		int append_err_ =                                                           \
			append_bytes(&grown_, count, more, more_count, sizeof(**(items)));  \
		*(items) = grown_;                                                          \
		append_err_;                                                                \
	})

/* The strings of a row that has been copied as it is: the report's own from now on. */
static void keep_scope(struct rls_report *report, const char **phase, const char **operation,
		       int *err)
{
	*phase = rls_report_keep(report, *phase, err);
	*operation = rls_report_keep(report, *operation, err);
}

/* A copy of an operation stack, the caller's to free; NULL and *err without memory. */
static const char **keep_stack(struct rls_report *report, const char *const *operations,
			       size_t depth, int *err)
{
	const char **kept = calloc(depth + 1, sizeof(*kept));

	if (!kept)
		*err = -ENOMEM;
	for (size_t i = 0; kept && i < depth; i++)
		kept[i] = rls_report_keep(report, operations[i], err);
	return kept;
}

/* --- hosts -------------------------------------------------------------------------- */

static int add_host(struct rls_report *report, const struct rls_report *from)
{
	int err = 0;
	struct rls_host_entry host = {
		.boot = rls_report_keep(report, from->clocked ? from->boot : "", &err),
		.kernel = rls_report_keep(report, from->kernel, &err),
		.cpus = from->cpus,
	};

	return err ? err : append_all(&report->hosts, &report->host_count, &host, 1);
}

/* Boots tell hosts apart; a trace that has none is taken to be of the first. */
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
	const struct rls_report *report;        /* processes by pid */
	uint32_t host;                          /* of the trace */
};

static const struct rls_process_entry *find_process(const struct rls_report *report, uint32_t pid)
{
	size_t low = 0, high = report->process_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (report->processes[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
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

#define renumber_all(numbering, rows, count)                                      \
	do {                                                                      \
		for (size_t i_ = 0; i_ < (count); i_++)                           \
			(rows)[i_].pid = number_of(numbering, (rows)[i_].pid);    \
	} while (0)

static void renumber_processes(const struct numbering *numbering, struct rls_report *other)
{
	for (size_t i = 0; i < other->process_count; i++) {
		struct rls_process_entry *process = &other->processes[i];
		uint32_t pid = number_of(numbering, process->pid);

		process->host = numbering->host;
		process->ppid = number_of(numbering, process->ppid);
		if (pid != process->pid)
			process->host_pid = process->pid;
		process->pid = pid;
	}
}

static void renumber(const struct numbering *numbering, struct rls_report *other)
{
	renumber_processes(numbering, other);
	renumber_all(numbering, other->threads, other->thread_count);
	renumber_all(numbering, other->breakdown, other->breakdown_count);
	renumber_all(numbering, other->transitions, other->transition_count);
	renumber_all(numbering, other->operations, other->operation_count);
	renumber_all(numbering, other->stacks, other->stack_count);
	renumber_all(numbering, other->gpu, other->gpu_count);
	renumber_all(numbering, other->lines, other->line_count);
	renumber_all(numbering, other->functions, other->function_count);
	renumber_all(numbering, other->samples, other->sample_count);
	renumber_all(numbering, other->checks, other->check_count);
	renumber_all(numbering, other->sampled_stacks, other->sampled_stack_count);
	renumber_all(numbering, other->cuda_calls, other->cuda_call_count);
	renumber_all(numbering, other->cuda_operations, other->cuda_operation_count);
	renumber_all(numbering, other->gpu_clocks, other->gpu_clock_count);
	renumber_all(numbering, other->overviews, other->overview_count);
}

/* --- tables ------------------------------------------------------------------------- */

static int merge_process(struct rls_report *report, const struct rls_process_entry *from,
			 int64_t shift_ns)
{
	struct rls_process_entry entry = *from;
	struct rls_process_entry *added;
	int err = 0;

	entry.start_ns += (uint64_t)shift_ns;
	entry.end_ns += (uint64_t)shift_ns;
	entry.cmdline = NULL;
	entry.cmdline_count = 0;
	entry.libraries = NULL;
	entry.library_count = 0;
	entry.name = rls_report_keep(report, from->name, &err);
	entry.python = rls_report_keep(report, from->python, &err);
	entry.container = rls_report_keep(report, from->container, &err);
	if (!err)
		err = append_all(&report->processes, &report->process_count, &entry, 1);
	if (err)
		return err;
	added = &report->processes[report->process_count - 1];
	err = append_all(&added->cmdline, &added->cmdline_count, from->cmdline,
			 from->cmdline_count);
	if (!err)
		err = append_all(&added->libraries, &added->library_count, from->libraries,
				 from->library_count);
	for (size_t i = 0; i < added->cmdline_count; i++)
		added->cmdline[i] = rls_report_keep(report, added->cmdline[i], &err);
	for (size_t i = 0; i < added->library_count; i++) {
		struct rls_library_entry *library = &added->libraries[i];

		library->path = rls_report_keep(report, library->path, &err);
		library->role = rls_report_keep(report, library->role, &err);
	}
	return err;
}

static int merge_gpu(struct rls_report *report, const struct rls_gpu_entry *from)
{
	struct rls_gpu_entry entry = *from;
	struct rls_gpu_entry *added;
	int err;

	entry.operations = NULL;
	entry.operation_count = 0;
	err = append_all(&report->gpu, &report->gpu_count, &entry, 1);
	if (err)
		return err;
	added = &report->gpu[report->gpu_count - 1];
	err = append_all(&added->operations, &added->operation_count, from->operations,
			 from->operation_count);
	for (size_t i = 0; i < added->operation_count; i++) {
		struct rls_gpu_operation *operation = &added->operations[i];

		keep_scope(report, &operation->phase, &operation->operation, &err);
	}
	return err;
}

static int merge_cuda(struct rls_report *report, const struct rls_report *other)
{
	size_t calls = report->cuda_call_count, operations = report->cuda_operation_count;
	int err = append_all(&report->cuda_calls, &report->cuda_call_count, other->cuda_calls,
			     other->cuda_call_count);

	if (!err)
		err = append_all(&report->cuda_operations, &report->cuda_operation_count,
				 other->cuda_operations, other->cuda_operation_count);
	if (!err)
		err = append_all(&report->gpu_clocks, &report->gpu_clock_count, other->gpu_clocks,
				 other->gpu_clock_count);
	for (size_t i = calls; i < report->cuda_call_count; i++) {
		struct rls_cuda_call_row *row = &report->cuda_calls[i];

		keep_scope(report, &row->phase, &row->operation, &err);
		row->name = rls_report_keep(report, row->name, &err);
	}
	for (size_t i = operations; i < report->cuda_operation_count; i++) {
		struct rls_cuda_operation_row *row = &report->cuda_operations[i];

		keep_scope(report, &row->phase, &row->operation, &err);
	}
	return err;
}

static int merge_operations(struct rls_report *report, const struct rls_report *other)
{
	size_t before = report->operation_count;
	int err = append_all(&report->operations, &report->operation_count, other->operations,
			     other->operation_count);

	for (size_t i = before; i < report->operation_count; i++) {
		struct rls_operation_row *row = &report->operations[i];

		keep_scope(report, &row->phase, &row->operation, &err);
	}
	return err;
}

static int merge_stack(struct rls_report *report, const struct rls_stack_row *from)
{
	struct rls_stack_row row = *from;
	int err = 0;
	_cleanup_free_ const char **operations = keep_stack(report, from->operations, from->depth,
							    &err);

	row.phase = rls_report_keep(report, from->phase, &err);
	row.operations = operations;
	if (!err)
		err = append_all(&report->stacks, &report->stack_count, &row, 1);
	if (!err)
		operations = NULL;
	return err;
}

static int merge_sampled_stack(struct rls_report *report, const struct rls_sampled_stack_row *from,
			       uint32_t frames_before)
{
	struct rls_sampled_stack_row row = *from;
	int err = 0;
	_cleanup_free_ const char **operations = keep_stack(report, from->operations, from->depth,
							    &err);

	row.phase = rls_report_keep(report, from->phase, &err);
	row.operations = operations;
	if (row.frame)
		row.frame += frames_before;
	if (!err)
		err = append_all(&report->sampled_stacks, &report->sampled_stack_count, &row, 1);
	if (!err)
		operations = NULL;
	return err;
}

/* The other's frames come behind the report's own. */
static int merge_sampled_stacks(struct rls_report *report, const struct rls_report *other)
{
	size_t before = report->stack_frame_count;
	int err;

	if (before + other->stack_frame_count > UINT32_MAX)
		return -ENOMEM;
	err = append_all(&report->stack_frames, &report->stack_frame_count, other->stack_frames,
			 other->stack_frame_count);
	for (size_t i = before; i < report->stack_frame_count; i++) {
		struct rls_stack_frame *frame = &report->stack_frames[i];

		if (frame->parent)
			frame->parent += (uint32_t)before;
		frame->function = rls_report_keep(report, frame->function, &err);
		frame->file = rls_report_keep(report, frame->file, &err);
	}
	for (size_t i = 0; !err && i < other->sampled_stack_count; i++)
		err = merge_sampled_stack(report, &other->sampled_stacks[i], (uint32_t)before);
	return err;
}

/* A coarse picture is shifted by whole buckets, to the nearest. */
static int merge_overview(struct rls_report *report, const struct rls_overview_entry *from,
			  int64_t shift_ns)
{
	double bucket_ns = ldexp(1, (int)from->shift);
	int64_t shift_buckets = llround((double)shift_ns / bucket_ns);
	struct rls_overview_entry entry = *from;
	struct rls_overview_entry *added;
	int err;

	entry.parts = NULL;
	entry.part_count = 0;
	err = append_all(&report->overviews, &report->overview_count, &entry, 1);
	if (err)
		return err;
	added = &report->overviews[report->overview_count - 1];
	err = append_all(&added->parts, &added->part_count, from->parts, from->part_count);
	for (size_t i = 0; i < added->part_count; i++) {
		struct rls_overview_part *part = &added->parts[i];

		if (shift_buckets < 0 && part->bucket < -(uint64_t)shift_buckets)
			part->bucket = 0;
		else
			part->bucket += (uint64_t)shift_buckets;
		part->phase = rls_report_keep(report, part->phase, &err);
		if (part->operation)
			part->operation = rls_report_keep(report, part->operation, &err);
	}
	return err;
}

static int merge_rows(struct rls_report *report, const struct rls_report *other)
{
	size_t threads = report->thread_count;
	size_t rows = report->breakdown_count;
	size_t transitions = report->transition_count;
	int err = append_all(&report->threads, &report->thread_count, other->threads,
			     other->thread_count);

	if (!err)
		err = append_all(&report->breakdown, &report->breakdown_count, other->breakdown,
				 other->breakdown_count);
	if (!err)
		err = append_all(&report->transitions, &report->transition_count,
				 other->transitions, other->transition_count);
	for (size_t i = threads; i < report->thread_count; i++)
		report->threads[i].name = rls_report_keep(report, report->threads[i].name, &err);
	for (size_t i = rows; i < report->breakdown_count; i++) {
		struct rls_breakdown_row *row = &report->breakdown[i];

		keep_scope(report, &row->phase, &row->operation, &err);
	}
	for (size_t i = transitions; i < report->transition_count; i++) {
		struct rls_transition_row *row = &report->transitions[i];

		keep_scope(report, &row->phase, &row->operation, &err);
	}
	return err;
}

static int merge_samples(struct rls_report *report, const struct rls_report *other)
{
	size_t lines = report->line_count, functions = report->function_count;
	size_t samples = report->sample_count;
	int err = append_all(&report->lines, &report->line_count, other->lines, other->line_count);

	if (!err)
		err = append_all(&report->functions, &report->function_count, other->functions,
				 other->function_count);
	if (!err)
		err = append_all(&report->samples, &report->sample_count, other->samples,
				 other->sample_count);
	if (!err)
		err = append_all(&report->checks, &report->check_count, other->checks,
				 other->check_count);
	for (size_t i = lines; i < report->line_count; i++) {
		struct rls_line_row *row = &report->lines[i];

		row->file = rls_report_keep(report, row->file, &err);
		row->function = rls_report_keep(report, row->function, &err);
		keep_scope(report, &row->phase, &row->operation, &err);
	}
	for (size_t i = functions; i < report->function_count; i++) {
		struct rls_function_row *row = &report->functions[i];

		row->file = rls_report_keep(report, row->file, &err);
		row->function = rls_report_keep(report, row->function, &err);
		keep_scope(report, &row->phase, &row->operation, &err);
	}
	for (size_t i = samples; i < report->sample_count; i++) {
		keep_scope(report, &report->samples[i].phase, &report->samples[i].operation, &err);
	}
	if (!err)
		rls_report_sum_samples(report);
	return err;
}

static int merge_losses(struct rls_report *report, const struct rls_report *other)
{
	int err = 0;

	for (size_t i = 0; !err && i < other->loss_count; i++) {
		struct rls_loss_entry entry = other->losses[i];
		size_t k = 0;

		while (k < report->loss_count && strcmp(report->losses[k].buffer, entry.buffer))
			k++;
		if (k < report->loss_count) {
			rls_add_bounded(&report->losses[k].dropped, entry.dropped);
			continue;
		}
		entry.buffer = rls_report_keep(report, entry.buffer, &err);
		if (!err)
			err = append_all(&report->losses, &report->loss_count, &entry, 1);
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
	rls_add_bounded(&budget->looks, other->looks);
	budget->windowed_sites += other->windowed_sites;
	budget->given_up_sites += other->given_up_sites;
}

/* The first trace's calibration stands for the host, where it has one. */
static int merge_overhead(struct rls_report *report, const struct rls_overhead *other)
{
	struct rls_overhead *overhead = &report->overhead;
	int err = 0;

	rls_add_bounded(&overhead->hits, other->hits);
	rls_add_bounded(&overhead->events, other->events);
	rls_add_bounded(&overhead->estimated_ns, other->estimated_ns);
	merge_budget(&overhead->budget, &other->budget);
	if (!overhead->calibration_count) {
		err = append_all(&overhead->calibration, &overhead->calibration_count,
				 other->calibration, other->calibration_count);
		for (size_t i = 0; i < overhead->calibration_count; i++) {
			struct rls_calibration_entry *entry = &overhead->calibration[i];

			entry->name = rls_report_keep(report, entry->name, &err);
		}
	}
	rls_report_set_percent(report);
	return err;
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
		"traces of different hosts, or of one that was started anew, are shown on the clock of "
		"the first: their wall clocks are taken to agree, which was not measured (with NTP they "
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
	err = merge_rows(report, other);
	if (!err)
		err = merge_operations(report, other);
	for (size_t i = 0; !err && i < other->stack_count; i++)
		err = merge_stack(report, &other->stacks[i]);
	if (!err)
		err = merge_sampled_stacks(report, other);
	for (size_t i = 0; !err && i < other->process_count; i++)
		err = merge_process(report, &other->processes[i], shift_ns);
	for (size_t i = 0; !err && i < other->gpu_count; i++)
		err = merge_gpu(report, &other->gpu[i]);
	for (size_t i = 0; !err && i < other->overview_count; i++)
		err = merge_overview(report, &other->overviews[i], shift_ns);
	if (!err)
		err = merge_samples(report, other);
	if (!err)
		err = merge_cuda(report, other);
	if (!err)
		err = merge_losses(report, other);
	if (!err)
		err = merge_overhead(report, &other->overhead);
	if (!err)
		err = merge_clock(report, other);
	for (size_t i = 0; !err && i < other->warning_count; i++)
		err = rls_report_warn(report, "%s", other->warnings[i]);
	if (err)
		return err;
	merge_extent(report, other, shift_ns);
	rls_report_sort(report);
	return 0;
}
