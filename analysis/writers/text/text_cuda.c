/* The CUDA side of a process: its GPUs, then what it called by operation and by name. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/event/bounded.h"
#include "analysis/writers/text/text_page.h"

#define LABEL_COLUMNS 40
#define LABEL_BYTES 512
#define CALLS_SHOWN 10

static const char *text_cuda_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void print_label(const struct rls_page *page, const char *operation, const char *phase,
			unsigned int columns)
{
	char label[LABEL_BYTES];

	snprintf(label, sizeof(label), "%.200s%s%.200s", *operation ? operation : "(no operation)",
		 *phase ? " in " : "", phase);
	rls_text_print(page->out, label, columns);
}

/* --- devices ------------------------------------------------------------------------ */

static void print_idle(const struct rls_page *page, const char *what, uint64_t late_ns,
		       uint64_t queue_ns, uint64_t other_ns)
{
	char late[RLS_TEXT_NUMBER_BYTES], queue[RLS_TEXT_NUMBER_BYTES],
		other[RLS_TEXT_NUMBER_BYTES];

	if (!late_ns && !queue_ns && !other_ns)
		return;
	fprintf(page->out, "%s: host late %s, queue %s, other %s\n", what,
		rls_text_ns(late, late_ns), rls_text_ns(queue, queue_ns),
		rls_text_ns(other, other_ns));
}

static void print_launched(const struct rls_page *page, const struct rls_gpu_entry *gpu)
{
	char number[RLS_TEXT_NUMBER_BYTES], kernels[RLS_TEXT_NUMBER_BYTES];

	for (size_t i = 0; i < gpu->operation_count; i++) {
		const struct rls_gpu_operation *operation = &gpu->operations[i];

		fputs("    launched by ", page->out);
		print_label(page, operation->operation, operation->phase, LABEL_COLUMNS - 8);
		fprintf(page->out, " busy %s, %s kernel%s\n",
			rls_text_ns(number, operation->busy_ns),
			rls_text_count(kernels, operation->kernels),
			text_cuda_plural(operation->kernels));
		print_idle(page, "      idle before", operation->idle_host_late_ns,
			   operation->idle_queue_ns, operation->idle_other_ns);
	}
}

static void print_gpus(const struct rls_page *page, const struct rls_process_entry *process)
{
	uint64_t life_ns = process->end_ns - process->start_ns;
	char number[RLS_TEXT_NUMBER_BYTES], other[RLS_TEXT_NUMBER_BYTES];

	for (size_t i = 0; i < page->report->gpu_count; i++) {
		const struct rls_gpu_entry *gpu = &page->report->gpu[i];

		if (gpu->pid != process->pid)
			continue;
		fprintf(page->out, "\n  GPU %" PRIu32 ": busy %s, %s of the process's life",
			gpu->device, rls_text_ns(number, gpu->busy_ns),
			rls_text_share(other, gpu->busy_ns, life_ns));
		fprintf(page->out, " (nvidia-smi would say %.1f%%)\n", gpu->smi_style_percent);
		fprintf(page->out, "    %s kernel%s in %s", rls_text_count(number, gpu->kernels),
			text_cuda_plural(gpu->kernels), rls_text_ns(other, gpu->kernel_ns));
		fprintf(page->out, ", copies %s\n", rls_text_ns(number, gpu->memcpy_ns));
		print_idle(page, "    idle in between", gpu->idle_host_late_ns, gpu->idle_queue_ns,
			   gpu->idle_other_ns);
		print_launched(page, gpu);
	}
}

/* --- calls -------------------------------------------------------------------------- */

/* What was scaled stands with its error, which takes more room. */
struct call_layout {
	int label, calls, time, rest;
};

static const struct call_layout exact_operations = {30, 8, 10, 12},
				scaled_operations = {20, 16, 17, 11};
static const struct call_layout exact_names = {30, 8, 10, 12}, scaled_names = {30, 16, 17, 11};

static bool is_exact(enum rls_method method, uint64_t count_error, uint64_t error_ns)
{
	return method == RLS_METHOD_TRACED && !count_error && !error_ns;
}

/* Times and counts by their columns: what they are called, or what they say. */
static void print_right(const struct rls_page *page, const char *text, int width)
{
	rls_text_print_right(page->out, text, (unsigned int)width);
}

static void print_operation(const struct rls_page *page, const struct call_layout *layout,
			    const struct rls_cuda_operation_row *row)
{
	char number[RLS_TEXT_NUMBER_BYTES];

	fputs("  ", page->out);
	print_label(page, row->operation, row->phase, (unsigned int)layout->label);
	print_right(page, rls_text_estimate(number, row->calls, row->count_error, row->method),
		    layout->calls);
	print_right(page, rls_text_estimate_ns(number, row->api_ns, row->error_ns, row->method),
		    layout->time);
	print_right(page, rls_text_ns(number, row->kernel_ns), layout->rest);
	if (row->kernel_ns && !isnan(row->api_to_kernel))
		snprintf(number, sizeof(number), "%s%.2f",
			 row->method == RLS_METHOD_TRACED ? "" : "~", row->api_to_kernel);
	print_right(page, row->kernel_ns && !isnan(row->api_to_kernel) ? number : "-", 10);
	putc('\n', page->out);
}

static bool is_shown(const struct rls_cuda_operation_row *row,
		     const struct rls_process_entry *process)
{
	return row->pid == process->pid && (row->calls || row->kernels);
}

static void print_operations(const struct rls_page *page, const struct rls_process_entry *process)
{
	const struct rls_cuda_operation_row *rows = page->report->cuda_operations;
	const struct call_layout *layout = &exact_operations;
	bool any = false;

	for (size_t i = 0; i < page->report->cuda_operation_count; i++) {
		if (!is_shown(&rows[i], process))
			continue;
		any = true;
		if (!is_exact(rows[i].method, rows[i].count_error, rows[i].error_ns))
			layout = &scaled_operations;
	}
	if (any)
		fprintf(page->out, "\n  %-*s %*s %*s %*s %10s\n", layout->label,
			"CUDA API by operation", layout->calls, "calls", layout->time, "API time",
			layout->rest, "kernel time", "API/kernel");
	for (size_t i = 0; i < page->report->cuda_operation_count; i++) {
		if (is_shown(&rows[i], process))
			print_operation(page, layout, &rows[i]);
	}
}

static int by_name(const void *left, const void *right)
{
	const struct rls_cuda_call_row *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static int by_time(const void *left, const void *right)
{
	const struct rls_cuda_call_row *a = left, *b = right;

	if (a->wall_ns != b->wall_ns)
		return a->wall_ns > b->wall_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* The process's calls, summed by name, those with most time first. */
static int sum_by_name(const struct rls_report *report, uint32_t pid,
		       struct rls_cuda_call_row **out, size_t *count)
{
	_cleanup_free_ struct rls_cuda_call_row *rows = NULL;
	size_t found = 0, room = 0, kept = 0;

	for (size_t i = 0; i < report->cuda_call_count; i++) {
		if (report->cuda_calls[i].pid != pid)
			continue;
		if (rls_grow(&rows, &room, found))
			return -ENOMEM;
		rows[found++] = report->cuda_calls[i];
	}
	if (found > 1)
		qsort(rows, found, sizeof(*rows), by_name);
	for (size_t i = 0; i < found; i++) {
		if (!kept || strcmp(rows[kept - 1].name, rows[i].name)) {
			rows[kept++] = rows[i];
			continue;
		}
		rls_add_bounded(&rows[kept - 1].count, rows[i].count);
		rls_add_bounded(&rows[kept - 1].wall_ns, rows[i].wall_ns);
		rls_add_bounded(&rows[kept - 1].launches, rows[i].launches);
		rls_add_bounded(&rows[kept - 1].count_error, rows[i].count_error);
		rls_add_bounded(&rows[kept - 1].error_ns, rows[i].error_ns);
		if (rows[i].method > rows[kept - 1].method)
			rows[kept - 1].method = rows[i].method;
	}
	if (kept > 1)
		qsort(rows, kept, sizeof(*rows), by_time);
	*out = rls_take(rows);
	*count = kept;
	return 0;
}

static void print_call(const struct rls_page *page, const struct call_layout *layout,
		       const struct rls_cuda_call_row *row)
{
	char number[RLS_TEXT_NUMBER_BYTES];
	bool known =
		row->count && row->count != RLS_COUNT_UNKNOWN && row->wall_ns != RLS_COUNT_UNKNOWN;

	fputs("  ", page->out);
	rls_text_print(page->out, row->name, (unsigned int)layout->label);
	print_right(page, rls_text_estimate(number, row->count, row->count_error, row->method),
		    layout->calls);
	print_right(page, rls_text_estimate_ns(number, row->wall_ns, row->error_ns, row->method),
		    layout->time);
	if (row->method != RLS_METHOD_TRACED && known) {
		char mean[RLS_TEXT_NUMBER_BYTES];

		snprintf(number, sizeof(number), "~%.30s",
			 rls_text_ns(mean, row->wall_ns / row->count));
	} else if (known) {
		rls_text_ns(number, row->wall_ns / row->count);
	}
	print_right(page, known ? number : "-", layout->rest);
	putc('\n', page->out);
}

static int print_calls(const struct rls_page *page, const struct rls_process_entry *process)
{
	const struct call_layout *layout = &exact_names;
	_cleanup_free_ struct rls_cuda_call_row *rows = NULL;
	size_t count;
	int err = sum_by_name(page->report, process->pid, &rows, &count);

	if (err || !count)
		return err;
	for (size_t i = 0; i < count && i < CALLS_SHOWN; i++) {
		if (!is_exact(rows[i].method, rows[i].count_error, rows[i].error_ns))
			layout = &scaled_names;
	}
	fprintf(page->out, "\n  %-*s %*s %*s %*s\n", layout->label, "CUDA API by name",
		layout->calls, "calls", layout->time, "API time", layout->rest, "a call");
	for (size_t i = 0; i < count && i < CALLS_SHOWN; i++)
		print_call(page, layout, &rows[i]);
	if (count > CALLS_SHOWN)
		fprintf(page->out, "  and %zu more names\n", count - CALLS_SHOWN);
	return 0;
}

int rls_page_cuda(const struct rls_page *page, const struct rls_process_entry *process)
{
	bool any = false;

	print_gpus(page, process);
	for (size_t i = 0; i < page->report->cuda_call_count; i++)
		any = any || page->report->cuda_calls[i].pid == process->pid;
	if (!any)
		return 0;
	print_operations(page, process);
	return print_calls(page, process);
}
