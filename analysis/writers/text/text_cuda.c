/* The CUDA side of a process: its GPUs, then what it called by operation and by name. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event/bounded.h"
#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/writers/text/text_page.h"

#define LABEL_COLUMNS 40
#define LABEL_BYTES 512
#define CALLS_SHOWN 10

static const char *plural(uint64_t count)
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
	char late[RLS_TEXT_NUMBER_BYTES], queue[RLS_TEXT_NUMBER_BYTES], other[RLS_TEXT_NUMBER_BYTES];

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
			rls_text_count(kernels, operation->kernels), plural(operation->kernels));
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
			plural(gpu->kernels), rls_text_ns(other, gpu->kernel_ns));
		fprintf(page->out, ", copies %s\n", rls_text_ns(number, gpu->memcpy_ns));
		print_idle(page, "    idle in between", gpu->idle_host_late_ns, gpu->idle_queue_ns,
			   gpu->idle_other_ns);
		print_launched(page, gpu);
	}
}

/* --- calls -------------------------------------------------------------------------- */

static void print_operations(const struct rls_page *page, const struct rls_process_entry *process)
{
	char calls[RLS_TEXT_NUMBER_BYTES], api[RLS_TEXT_NUMBER_BYTES], kernel[RLS_TEXT_NUMBER_BYTES];
	bool any = false;

	for (size_t i = 0; i < page->report->cuda_operation_count; i++) {
		const struct rls_cuda_operation_row *row = &page->report->cuda_operations[i];

		if (row->pid != process->pid || (!row->calls && !row->kernels))
			continue;
		if (!any)
			fprintf(page->out, "\n  %-30s %8s %10s %12s %10s\n", "CUDA API by operation",
				"calls", "API time", "kernel time", "API/kernel");
		any = true;
		fputs("  ", page->out);
		print_label(page, row->operation, row->phase, 30);
		fprintf(page->out, " %8s %10s %12s", rls_text_count(calls, row->calls),
			rls_text_ns(api, row->api_ns), rls_text_ns(kernel, row->kernel_ns));
		if (row->kernel_ns)
			fprintf(page->out, " %10.2f\n", row->api_to_kernel);
		else
			fprintf(page->out, " %10s\n", "-");
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
	}
	if (kept > 1)
		qsort(rows, kept, sizeof(*rows), by_time);
	*out = rls_take(rows);
	*count = kept;
	return 0;
}

static int print_calls(const struct rls_page *page, const struct rls_process_entry *process)
{
	char number[RLS_TEXT_NUMBER_BYTES], time[RLS_TEXT_NUMBER_BYTES], mean[RLS_TEXT_NUMBER_BYTES];
	_cleanup_free_ struct rls_cuda_call_row *rows = NULL;
	size_t count;
	int err = sum_by_name(page->report, process->pid, &rows, &count);

	if (err || !count)
		return err;
	fprintf(page->out, "\n  %-30s %8s %10s %12s\n", "CUDA API by name", "calls", "API time",
		"a call");
	for (size_t i = 0; i < count && i < CALLS_SHOWN; i++) {
		fputs("  ", page->out);
		rls_text_print(page->out, rows[i].name, 30);
		fprintf(page->out, " %8s %10s %12s\n", rls_text_count(number, rows[i].count),
			rls_text_ns(time, rows[i].wall_ns),
			rls_text_ns(mean, rows[i].wall_ns / rows[i].count));
	}
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
