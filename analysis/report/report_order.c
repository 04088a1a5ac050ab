/* The order of a report's arrays: by text and number, so that neither the order of events
 * nor that of interning shows. */
#include <stdlib.h>
#include <string.h>

#include "analysis/report/report_private.h"

static int order_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Rows of any sort by what they are of: a thread's, or a process's, in a phase and operation. */
#define order_scopes(a, b)                                            \
	({                                                            \
		int order_ = strcmp((a)->phase, (b)->phase);          \
		order_ ? order_ : strcmp((a)->operation, (b)->operation); \
	})
#define order_processes(a, b)                                         \
	({                                                            \
		int pid_order_ = order_numbers((a)->pid, (b)->pid);   \
		pid_order_ ? pid_order_ : order_scopes(a, b);         \
	})
#define order_threads(a, b)                                           \
	({                                                            \
		int tid_order_ = order_numbers((a)->pid, (b)->pid);   \
		if (!tid_order_)                                      \
			tid_order_ = order_numbers((a)->tid, (b)->tid); \
		tid_order_ ? tid_order_ : order_scopes(a, b);         \
	})

int rls_breakdown_row_compare(const void *left, const void *right)
{
	const struct rls_breakdown_row *a = left, *b = right;
	int order = order_threads(a, b);

	if (!order)
		order = strcmp(rls_breakdown_row_category(a), rls_breakdown_row_category(b));
	if (!order)
		order = order_numbers(a->resource, b->resource);
	return order;
}

int rls_transition_row_compare(const void *left, const void *right)
{
	const struct rls_transition_row *a = left, *b = right;
	int order = order_threads(a, b);

	if (!order)
		order = order_numbers(a->from, b->from);
	if (!order)
		order = order_numbers(a->to, b->to);
	return order;
}

int rls_operation_row_compare(const void *left, const void *right)
{
	const struct rls_operation_row *a = left, *b = right;

	return order_threads(a, b);
}

/* Where a pid was used twice the keys tie: the figures decide, only to be deterministic. */
static int sort_breakdown(const void *left, const void *right)
{
	const struct rls_breakdown_row *a = left, *b = right;
	int order = rls_breakdown_row_compare(a, b);

	return order ? order : order_numbers(a->wall_ns, b->wall_ns);
}

static int sort_transitions(const void *left, const void *right)
{
	const struct rls_transition_row *a = left, *b = right;
	int order = rls_transition_row_compare(a, b);

	return order ? order : order_numbers(a->count, b->count);
}

static int sort_operations(const void *left, const void *right)
{
	const struct rls_operation_row *a = left, *b = right;
	int order = rls_operation_row_compare(a, b);

	return order ? order : order_numbers(a->entries, b->entries);
}

/* By what a flame graph joins; the phase last. */
static int sort_stacks(const void *left, const void *right)
{
	const struct rls_stack_row *a = left, *b = right;
	int order = order_numbers(a->pid, b->pid);

	if (!order)
		order = order_numbers(a->tid, b->tid);
	for (size_t i = 0; !order && i < a->depth && i < b->depth; i++)
		order = strcmp(a->operations[i], b->operations[i]);
	if (!order)
		order = order_numbers(a->depth, b->depth);
	if (!order)
		order = order_numbers(a->category, b->category);
	if (!order)
		order = strcmp(a->phase, b->phase);
	return order ? order : order_numbers(a->wall_ns, b->wall_ns);
}

static int sort_sampled_stacks(const void *left, const void *right)
{
	const struct rls_sampled_stack_row *a = left, *b = right;
	int order = order_numbers(a->pid, b->pid);

	for (size_t i = 0; !order && i < a->depth && i < b->depth; i++)
		order = strcmp(a->operations[i], b->operations[i]);
	if (!order)
		order = order_numbers(a->depth, b->depth);
	if (!order)
		order = order_numbers(a->category, b->category);
	if (!order)
		order = order_numbers(a->frame, b->frame);
	if (!order)
		order = order_numbers(a->kind, b->kind);
	if (!order)
		order = strcmp(a->phase, b->phase);
	return order ? order : order_numbers(a->ns, b->ns);
}

static int sort_processes(const void *left, const void *right)
{
	const struct rls_process_entry *a = left, *b = right;
	int order = order_numbers(a->pid, b->pid);

	return order ? order : order_numbers(a->start_ns, b->start_ns);
}

static int sort_threads(const void *left, const void *right)
{
	const struct rls_thread_entry *a = left, *b = right;
	int order = order_numbers(a->pid, b->pid);

	if (!order)
		order = order_numbers(a->tid, b->tid);
	return order ? order : order_numbers(a->wall_ns, b->wall_ns);
}

static int sort_gpu(const void *left, const void *right)
{
	const struct rls_gpu_entry *a = left, *b = right;
	int order = order_numbers(a->pid, b->pid);

	if (!order)
		order = order_numbers(a->device, b->device);
	return order ? order : order_numbers(a->busy_ns, b->busy_ns);
}

int rls_cuda_call_row_compare(const void *left, const void *right)
{
	const struct rls_cuda_call_row *a = left, *b = right;
	int order = order_threads(a, b);

	if (!order)
		order = strcmp(a->name, b->name);
	return order;
}

static int sort_cuda_calls(const void *left, const void *right)
{
	const struct rls_cuda_call_row *a = left, *b = right;
	int order = rls_cuda_call_row_compare(a, b);

	return order ? order : order_numbers(a->wall_ns, b->wall_ns);
}

static int sort_cuda_operations(const void *left, const void *right)
{
	const struct rls_cuda_operation_row *a = left, *b = right;
	int order = order_processes(a, b);

	return order ? order : order_numbers(a->api_ns, b->api_ns);
}

static int sort_checks(const void *left, const void *right)
{
	const struct rls_check_row *a = left, *b = right;
	int order = order_numbers(a->pid, b->pid);

	return order ? order : order_numbers(a->category, b->category);
}

static int sort_gpu_clocks(const void *left, const void *right)
{
	const struct rls_gpu_clock_row *a = left, *b = right;
	int order = order_numbers(a->pid, b->pid);

	return order ? order : order_numbers(a->readings, b->readings);
}

static int sort_gpu_operations(const void *left, const void *right)
{
	const struct rls_gpu_operation *a = left, *b = right;
	int order = strcmp(a->phase, b->phase);

	return order ? order : strcmp(a->operation, b->operation);
}

static int sort_libraries(const void *left, const void *right)
{
	const struct rls_library_entry *a = left, *b = right;
	int order = strcmp(a->path, b->path);

	return order ? order : strcmp(a->role, b->role);
}

static int sort_calibration(const void *left, const void *right)
{
	const struct rls_calibration_entry *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static int sort_losses(const void *left, const void *right)
{
	const struct rls_loss_entry *a = left, *b = right;

	return strcmp(a->buffer, b->buffer);
}

static int sort_overviews(const void *left, const void *right)
{
	const struct rls_overview_entry *a = left, *b = right;
	int order = order_numbers(a->pid, b->pid);

	if (!order)
		order = order_numbers(a->tid, b->tid);
	return order ? order
		     : order_numbers(a->parts[0].bucket << a->shift, b->parts[0].bucket << b->shift);
}

const char *rls_report_process_name(const struct rls_report *report, uint32_t pid)
{
	size_t low = 0, high = report->process_count;

	/* Of several lives of a pid the last. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (report->processes[middle].pid <= pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low && report->processes[low - 1].pid == pid ? report->processes[low - 1].name : "";
}

const char *rls_report_thread_name(const struct rls_report *report, uint32_t pid, uint32_t tid)
{
	const struct rls_thread_entry *threads = report->threads;
	size_t low = 0, high = report->thread_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (threads[middle].pid < pid ||
		    (threads[middle].pid == pid && threads[middle].tid <= tid))
			low = middle + 1;
		else
			high = middle;
	}
	return low && threads[low - 1].pid == pid && threads[low - 1].tid == tid
		       ? threads[low - 1].name
		       : "";
}

static void sort(void *items, size_t count, size_t item_bytes,
		 int (*compare)(const void *, const void *))
{
	if (count > 1)
		qsort(items, count, item_bytes, compare);
}

#define sort_array(items, count, compare) sort(items, count, sizeof(*(items)), compare)

void rls_report_sort(struct rls_report *report)
{
	sort_array(report->processes, report->process_count, sort_processes);
	for (size_t i = 0; i < report->process_count; i++)
		sort_array(report->processes[i].libraries, report->processes[i].library_count,
			   sort_libraries);
	sort_array(report->threads, report->thread_count, sort_threads);
	sort_array(report->breakdown, report->breakdown_count, sort_breakdown);
	sort_array(report->transitions, report->transition_count, sort_transitions);
	sort_array(report->operations, report->operation_count, sort_operations);
	sort_array(report->stacks, report->stack_count, sort_stacks);
	sort_array(report->sampled_stacks, report->sampled_stack_count, sort_sampled_stacks);
	sort_array(report->gpu, report->gpu_count, sort_gpu);
	sort_array(report->cuda_calls, report->cuda_call_count, sort_cuda_calls);
	sort_array(report->cuda_operations, report->cuda_operation_count, sort_cuda_operations);
	sort_array(report->checks, report->check_count, sort_checks);
	sort_array(report->gpu_clocks, report->gpu_clock_count, sort_gpu_clocks);
	for (size_t i = 0; i < report->gpu_count; i++)
		sort_array(report->gpu[i].operations, report->gpu[i].operation_count,
			   sort_gpu_operations);
	sort_array(report->overhead.calibration, report->overhead.calibration_count,
		   sort_calibration);
	sort_array(report->overviews, report->overview_count, sort_overviews);
	sort_array(report->losses, report->loss_count, sort_losses);
}

/* --- samples ------------------------------------------------------------------------ */

int rls_line_row_compare(const void *left, const void *right)
{
	const struct rls_line_row *a = left, *b = right;
	int order = order_processes(a, b);

	if (!order)
		order = strcmp(a->file, b->file);
	if (!order)
		order = order_numbers(a->line, b->line);
	return order ? order : strcmp(a->function, b->function);
}

int rls_function_row_compare(const void *left, const void *right)
{
	const struct rls_function_row *a = left, *b = right;
	int order = order_processes(a, b);

	if (!order)
		order = strcmp(a->file, b->file);
	if (!order)
		order = strcmp(a->function, b->function);
	return order ? order : a->native - b->native;
}

int rls_sample_row_compare(const void *left, const void *right)
{
	const struct rls_sample_row *a = left, *b = right;
	int order = order_processes(a, b);

	if (!order)
		order = order_numbers(a->category, b->category);
	return order ? order : order_numbers(a->kind, b->kind);
}

void rls_report_sort_samples(struct rls_report *report)
{
	sort(report->lines, report->line_count, sizeof(*report->lines), rls_line_row_compare);
	sort(report->functions, report->function_count, sizeof(*report->functions),
	     rls_function_row_compare);
	sort(report->samples, report->sample_count, sizeof(*report->samples),
	     rls_sample_row_compare);
}
