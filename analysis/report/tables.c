/* The descriptors: one for each array of a report. */
#include "analysis/report/tables.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/event/bounded.h"

/* COLUMN(type, struct, member, key, flags) */
#define COLUMN(type_, struct_, member, key_, flags_)                                               \
	{                                                                                          \
		.name = #member, .type = RLS_COLUMN_##type_, .flags = flags_, .key = key_,         \
		.offset = offsetof(struct struct_, member),                                        \
	}
/* By another name than its member's. */
#define NAMED(type_, name_, struct_, member, flags_)                                               \
	{                                                                                          \
		.name = name_, .type = RLS_COLUMN_##type_, .flags = flags_,                        \
		.offset = offsetof(struct struct_, member),                                        \
	}
#define STRINGS(struct_, member, count_, key_, flags_)                                             \
	{                                                                                          \
		.name = #member, .type = RLS_COLUMN_STRINGS, .flags = flags_, .key = key_,         \
		.offset = offsetof(struct struct_, member),                                        \
		.count_offset = offsetof(struct struct_, count_),                                  \
	}

/* A thread's rows, or a process's, in a phase and operation. */
#define THREAD_KEYS(struct_)                                                                       \
	COLUMN(U32, struct_, pid, 1, RLS_PID), COLUMN(U32, struct_, tid, 2, RLS_BY_THREAD),        \
		COLUMN(STRING, struct_, phase, 3, RLS_BY_PHASE),                                   \
		COLUMN(STRING, struct_, operation, 4, RLS_BY_OPERATION)

static const struct rls_column breakdown[] = {
	THREAD_KEYS(rls_breakdown_row),
	{.name = "category", .type = RLS_COLUMN_ROW_CATEGORY, .key = 5},
	COLUMN(RESOURCE, rls_breakdown_row, resource, 6, 0),
	COLUMN(U64, rls_breakdown_row, wall_ns, 0, RLS_SUM | RLS_TIE),
	COLUMN(U64, rls_breakdown_row, on_cpu_ns, 0, RLS_SUM),
	COLUMN(U64, rls_breakdown_row, corrected_ns, 0, RLS_SUM),
	COLUMN(U64, rls_breakdown_row, error_ns, 0, 0), /* derived */
	COLUMN(METHOD, rls_breakdown_row, method, 0, RLS_WORST),
	COLUMN(U64, rls_breakdown_row, induced_wait_ns, 0, RLS_SUM | RLS_HIDDEN),
	COLUMN(METHOD, rls_breakdown_row, undivided_method, 0, RLS_WORST | RLS_HIDDEN),
	NAMED(U64, "error_shared_ns", rls_breakdown_row, error.shared_ns, RLS_SUM),
	NAMED(DOUBLE, "error_moved_ns", rls_breakdown_row, error.moved_ns, RLS_SUM),
	NAMED(DOUBLE, "error.split_ns2", rls_breakdown_row, error.split_ns2, RLS_SUM | RLS_HIDDEN),
	NAMED(U64, "error_divided_ns", rls_breakdown_row, error.divided_ns, RLS_SUM | RLS_OPTIONAL),
};

static void derive_breakdown(void *item)
{
	struct rls_breakdown_row *row = item;

	row->error_ns = rls_row_error_ns(&row->error, RLS_ERROR_OF_ROWS, row->wall_ns);
}

static void undivide(void *item)
{
	struct rls_breakdown_row *row = item;

	row->method = row->undivided_method;
	row->error.divided_ns = 0;
}

static const struct rls_column transitions[] = {
	THREAD_KEYS(rls_transition_row),
	COLUMN(CATEGORY, rls_transition_row, from, 5, 0),
	COLUMN(CATEGORY, rls_transition_row, to, 6, 0),
	COLUMN(U64, rls_transition_row, count, 0, RLS_SUM | RLS_TIE | RLS_NULLABLE),
	COLUMN(METHOD, rls_transition_row, method, 0, RLS_WORST),
	NAMED(U64, "error", rls_transition_row, count_error,
	      RLS_OPTIONAL | RLS_NULLABLE | RLS_FORMER),
	COLUMN(U64, rls_transition_row, count_error, 0, RLS_SUM | RLS_NULLABLE),
};

static const struct rls_column operations[] = {
	THREAD_KEYS(rls_operation_row),
	COLUMN(U64, rls_operation_row, entries, 0, RLS_SUM | RLS_TIE),
};

static const struct rls_column threads[] = {
	COLUMN(U32, rls_thread_entry, pid, 1, RLS_PID),
	COLUMN(U32, rls_thread_entry, tid, 2, 0),
	COLUMN(STRING, rls_thread_entry, name, 0, 0),
	COLUMN(U64, rls_thread_entry, wall_ns, 0, RLS_TIE),
	COLUMN(U64, rls_thread_entry, on_cpu_ns, 0, 0),
	COLUMN(U64, rls_thread_entry, corrected_ns, 0, 0),
	COLUMN(U64, rls_thread_entry, error_ns, 0, 0),
};

static const struct rls_column processes[] = {
	COLUMN(U32, rls_process_entry, pid, 1, RLS_PID),
	COLUMN(U32, rls_process_entry, ppid, 0, RLS_PID),
	COLUMN(STRING, rls_process_entry, name, 0, 0),
	COLUMN(U64, rls_process_entry, start_ns, 0, RLS_TIE | RLS_INSTANT),
	COLUMN(U64, rls_process_entry, end_ns, 0, RLS_INSTANT),
	COLUMN(STRING, rls_process_entry, python, 0, 0),
	COLUMN(U32, rls_process_entry, ns_pid, 0, RLS_OPTIONAL),
	COLUMN(STRING, rls_process_entry, container, 0, RLS_OPTIONAL),
	COLUMN(U32, rls_process_entry, host, 0, RLS_OPTIONAL),
	COLUMN(U32, rls_process_entry, host_pid, 0, RLS_OPTIONAL),
	STRINGS(rls_process_entry, cmdline, cmdline_count, 0, 0),
};

static const struct rls_column libraries[] = {
	COLUMN(U32, rls_process_entry, pid, 0, RLS_OUTER),
	COLUMN(STRING, rls_library_entry, path, 1, 0),
	COLUMN(STRING, rls_library_entry, role, 2, 0),
	COLUMN(U32, rls_library_entry, sites, 0, 0),
};

static const struct rls_column hosts[] = {
	COLUMN(STRING, rls_host_entry, boot, 0, 0),
	COLUMN(STRING, rls_host_entry, kernel, 0, 0),
	COLUMN(U32, rls_host_entry, cpus, 0, 0),
};

static const struct rls_column gpu[] = {
	COLUMN(U32, rls_gpu_entry, pid, 1, RLS_PID),
	COLUMN(U32, rls_gpu_entry, device, 2, 0),
	COLUMN(U64, rls_gpu_entry, busy_ns, 0, RLS_TIE),
	COLUMN(U64, rls_gpu_entry, kernel_ns, 0, 0),
	COLUMN(U64, rls_gpu_entry, memcpy_ns, 0, 0),
	COLUMN(U64, rls_gpu_entry, kernels, 0, 0),
	COLUMN(DOUBLE, rls_gpu_entry, smi_style_percent, 0, 0),
	COLUMN(U64, rls_gpu_entry, idle_host_late_ns, 0, 0),
	COLUMN(U64, rls_gpu_entry, idle_queue_ns, 0, 0),
	COLUMN(U64, rls_gpu_entry, idle_other_ns, 0, 0),
};

static const struct rls_column gpu_operations[] = {
	COLUMN(U32, rls_gpu_entry, pid, 0, RLS_OUTER),
	COLUMN(U32, rls_gpu_entry, device, 0, RLS_OUTER),
	COLUMN(STRING, rls_gpu_operation, phase, 1, 0),
	COLUMN(STRING, rls_gpu_operation, operation, 2, 0),
	COLUMN(U64, rls_gpu_operation, busy_ns, 0, 0),
	COLUMN(U64, rls_gpu_operation, kernels, 0, 0),
	COLUMN(U64, rls_gpu_operation, kernel_ns, 0, 0),
	COLUMN(U64, rls_gpu_operation, idle_host_late_ns, 0, 0),
	COLUMN(U64, rls_gpu_operation, idle_queue_ns, 0, 0),
	COLUMN(U64, rls_gpu_operation, idle_other_ns, 0, 0),
};

static const struct rls_column cuda_calls[] = {
	THREAD_KEYS(rls_cuda_call_row),
	COLUMN(STRING, rls_cuda_call_row, name, 5, 0),
	COLUMN(U64, rls_cuda_call_row, count, 0, RLS_SUM | RLS_NULLABLE),
	COLUMN(U64, rls_cuda_call_row, wall_ns, 0, RLS_SUM | RLS_TIE | RLS_NULLABLE),
	COLUMN(U64, rls_cuda_call_row, launches, 0, RLS_SUM | RLS_NULLABLE),
	COLUMN(METHOD, rls_cuda_call_row, method, 0, RLS_WORST),
	COLUMN(U64, rls_cuda_call_row, count_error, 0, RLS_SUM | RLS_NULLABLE),
	COLUMN(U64, rls_cuda_call_row, error_ns, 0, RLS_SUM | RLS_NULLABLE),
};

static const struct rls_column cuda_operations[] = {
	COLUMN(U32, rls_cuda_operation_row, pid, 1, RLS_PID),
	COLUMN(STRING, rls_cuda_operation_row, phase, 2, 0),
	COLUMN(STRING, rls_cuda_operation_row, operation, 3, 0),
	COLUMN(U64, rls_cuda_operation_row, calls, 0, RLS_NULLABLE),
	COLUMN(U64, rls_cuda_operation_row, api_ns, 0, RLS_TIE | RLS_NULLABLE),
	COLUMN(U64, rls_cuda_operation_row, launches, 0, RLS_NULLABLE),
	COLUMN(U64, rls_cuda_operation_row, kernels, 0, 0),
	COLUMN(U64, rls_cuda_operation_row, kernel_ns, 0, 0),
	COLUMN(DOUBLE, rls_cuda_operation_row, api_to_kernel, 0, RLS_NULLABLE),
	COLUMN(METHOD, rls_cuda_operation_row, method, 0, 0),
	COLUMN(U64, rls_cuda_operation_row, count_error, 0, RLS_NULLABLE),
	COLUMN(U64, rls_cuda_operation_row, error_ns, 0, RLS_NULLABLE),
};

static const struct rls_column gpu_clocks[] = {
	COLUMN(U32, rls_gpu_clock_row, pid, 1, RLS_PID),
	COLUMN(U64, rls_gpu_clock_row, readings, 0, RLS_TIE),
	COLUMN(DOUBLE, rls_gpu_clock_row, gap_ns, 0, 0),
	COLUMN(U64, rls_gpu_clock_row, width_ns, 0, 0),
	COLUMN(DOUBLE, rls_gpu_clock_row, drift_ppm, 0, 0),
};

static const struct rls_column checks[] = {
	COLUMN(U32, rls_check_row, pid, 1, RLS_PID),
	COLUMN(CATEGORY, rls_check_row, category, 2, 0),
	COLUMN(U64, rls_check_row, traced_ns, 0, 0),
	COLUMN(U64, rls_check_row, sampled_ns, 0, 0),
	COLUMN(U64, rls_check_row, error_ns, 0, 0),
	COLUMN(U64, rls_check_row, unseen_ns, 0, 0),
	COLUMN(U64, rls_check_row, probes_ns, 0, 0),
};

/* --- samples ------------------------------------------------------------------------ */

/* Errors follow from sums of variances. */
#define TIME(struct_, member, flags_) NAMED(U64, #member, struct_, times.member, flags_)
#define TIMES(struct_)                                                                             \
	TIME(struct_, samples, RLS_SUM), TIME(struct_, python_ns, RLS_SUM),                        \
		TIME(struct_, native_ns, RLS_SUM), TIME(struct_, system_ns, RLS_SUM),              \
		TIME(struct_, waiting_ns, RLS_SUM), TIME(struct_, error_ns, 0),                    \
		TIME(struct_, runtime_ns, RLS_SUM), TIME(struct_, lock_ns, RLS_SUM),               \
		TIME(struct_, io_ns, RLS_SUM), TIME(struct_, sleep_ns, RLS_SUM),                   \
		TIME(struct_, child_ns, RLS_SUM), TIME(struct_, gpu_ns, RLS_SUM),                  \
		TIME(struct_, run_queue_ns, RLS_SUM), TIME(struct_, other_ns, RLS_SUM),            \
		COLUMN(DOUBLE, struct_, times.variance_ns2, 0, RLS_SUM | RLS_HIDDEN)

static const struct rls_column lines[] = {
	COLUMN(U32, rls_line_row, pid, 1, RLS_PID),
	COLUMN(STRING, rls_line_row, file, 4, 0),
	COLUMN(U32, rls_line_row, line, 5, RLS_BY_PLACE),
	COLUMN(STRING, rls_line_row, function, 6, RLS_BY_PLACE),
	COLUMN(STRING, rls_line_row, phase, 2, RLS_BY_PHASE),
	COLUMN(STRING, rls_line_row, operation, 3, RLS_BY_OPERATION),
	TIMES(rls_line_row),
};

static void derive_line(void *row)
{
	rls_sampled_times_derive(&((struct rls_line_row *)row)->times);
}

static const struct rls_column functions[] = {
	COLUMN(U32, rls_function_row, pid, 1, RLS_PID),
	COLUMN(STRING, rls_function_row, file, 4, 0),
	COLUMN(STRING, rls_function_row, function, 5, 0),
	COLUMN(BOOL, rls_function_row, native, 6, 0),
	COLUMN(STRING, rls_function_row, phase, 2, RLS_BY_PHASE),
	COLUMN(STRING, rls_function_row, operation, 3, RLS_BY_OPERATION),
	COLUMN(U64, rls_function_row, total_ns, 0, RLS_SUM),
	TIMES(rls_function_row),
};

static void derive_function(void *row)
{
	rls_sampled_times_derive(&((struct rls_function_row *)row)->times);
}

static const struct rls_column samples[] = {
	COLUMN(U32, rls_sample_row, pid, 1, RLS_PID),
	COLUMN(STRING, rls_sample_row, phase, 2, RLS_BY_PHASE),
	COLUMN(STRING, rls_sample_row, operation, 3, RLS_BY_OPERATION),
	COLUMN(CATEGORY, rls_sample_row, category, 4, 0),
	COLUMN(SAMPLE_KIND, rls_sample_row, kind, 5, 0),
	COLUMN(U64, rls_sample_row, samples, 0, RLS_SUM),
	COLUMN(U64, rls_sample_row, ns, 0, RLS_SUM),
	COLUMN(U64, rls_sample_row, error_ns, 0, 0),
	COLUMN(DOUBLE, rls_sample_row, variance_ns2, 0, RLS_SUM | RLS_HIDDEN),
};

static void derive_sample(void *item)
{
	struct rls_sample_row *row = item;

	row->error_ns = rls_interval_95_ns(row->variance_ns2, row->few_ns);
}

static const struct rls_column sampled_libraries[] = {
	COLUMN(U32, rls_sampled_library_row, pid, 1, RLS_PID),
	COLUMN(STRING, rls_sampled_library_row, path, 2, 0),
	COLUMN(STRING, rls_sampled_library_row, role, 3, 0),
	COLUMN(U64, rls_sampled_library_row, samples, 0, RLS_SUM),
	COLUMN(U64, rls_sampled_library_row, ns, 0, RLS_SUM),
	COLUMN(U64, rls_sampled_library_row, error_ns, 0, 0),
	COLUMN(DOUBLE, rls_sampled_library_row, percent, 0, 0),
	COLUMN(U64, rls_sampled_library_row, python_ns, 0, RLS_SUM),
	COLUMN(U64, rls_sampled_library_row, unknown_ns, 0, RLS_SUM),
	COLUMN(U64, rls_sampled_library_row, native_ns, 0, RLS_SUM | RLS_HIDDEN),
	COLUMN(DOUBLE, rls_sampled_library_row, variance_ns2, 0, RLS_SUM | RLS_HIDDEN),
};

static void derive_sampled_library(void *item)
{
	struct rls_sampled_library_row *row = item;

	row->error_ns = rls_interval_95_ns(row->variance_ns2, row->few_ns);
}

/* --- memory ------------------------------------------------------------------------- */

/* A line of a program, in a phase and operation. */
#define PLACE_KEYS(struct_)                                                                        \
	COLUMN(U32, struct_, pid, 1, RLS_PID), COLUMN(STRING, struct_, file, 4, RLS_BY_FILE),      \
		COLUMN(U32, struct_, line, 5, RLS_BY_LINE),                                        \
		COLUMN(STRING, struct_, function, 6, RLS_BY_FUNCTION),                             \
		COLUMN(STRING, struct_, phase, 2, RLS_BY_PHASE),                                   \
		COLUMN(STRING, struct_, operation, 3, RLS_BY_OPERATION)

/* Of sources that do not say when blocks are freed, most figures are not known. */
static const struct rls_column memory_lines[] = {
	PLACE_KEYS(rls_memory_line_row),
	COLUMN(MEMORY_SOURCE, rls_memory_line_row, source, 7, 0),
	COLUMN(I32, rls_memory_line_row, device, 8, 0),
	COLUMN(U64, rls_memory_line_row, allocs, 0, RLS_SUM),
	COLUMN(U64, rls_memory_line_row, alloc_bytes, 0, RLS_SUM | RLS_TIE),
	COLUMN(U64, rls_memory_line_row, frees, 0, RLS_SUM | RLS_HIDDEN),
	COLUMN(U64, rls_memory_line_row, freed_bytes, 0, RLS_SUM | RLS_NULLABLE),
	COLUMN(U64, rls_memory_line_row, growth_bytes, 0, RLS_SUM | RLS_NULLABLE),
	COLUMN(U64, rls_memory_line_row, live_bytes, 0, RLS_SUM | RLS_NULLABLE),
	COLUMN(U64, rls_memory_line_row, peak_bytes, 0, RLS_NULLABLE), /* derived */
	COLUMN(U64, rls_memory_line_row, bytes_at_process_peak, 0, RLS_SUM | RLS_NULLABLE),
	COLUMN(U64, rls_memory_line_row, temporary_bytes, 0, RLS_SUM | RLS_NULLABLE),
	COLUMN(U64, rls_memory_line_row, median_lifetime_ns, 0, RLS_NULLABLE), /* derived */
	COLUMN(U64, rls_memory_line_row, error_bytes, 0, 0), /* derived */
	COLUMN(MEMORY_METHOD, rls_memory_line_row, method, 0, RLS_WORST),
	COLUMN(DOUBLE, rls_memory_line_row, leak_score, 0,
	       RLS_NULLABLE), /* derived, all of these */
	COLUMN(DOUBLE, rls_memory_line_row, growth_bytes_per_s, 0, RLS_NULLABLE),
	COLUMN(U64, rls_memory_line_row, survivors, 0, RLS_NULLABLE),
	COLUMN(U64, rls_memory_line_row, observed, 0, RLS_NULLABLE),
	COLUMN(DOUBLE, rls_memory_line_row, variance_bytes2, 0, RLS_SUM | RLS_HIDDEN),
	COLUMN(U64, rls_memory_line_row, ageless_allocs, 0, RLS_SUM | RLS_HIDDEN),
	COLUMN(U64, rls_memory_line_row, ageless_frees, 0, RLS_SUM | RLS_HIDDEN),
};

static const struct rls_column copies[] = {
	PLACE_KEYS(rls_copy_row),
	COLUMN(COPY_KIND, rls_copy_row, kind, 7, 0),
	COLUMN(U64, rls_copy_row, copies, 0, RLS_SUM),
	COLUMN(U64, rls_copy_row, bytes, 0, RLS_SUM | RLS_TIE),
	COLUMN(DOUBLE, rls_copy_row, bytes_per_s, 0, RLS_SUM),
};

static const struct rls_column memory[] = {
	COLUMN(U32, rls_memory_row, pid, 1, RLS_PID),
	COLUMN(I32, rls_memory_row, device, 2, 0),
	COLUMN(U64, rls_memory_row, rss_start_bytes, 0, 0),
	COLUMN(U64, rls_memory_row, rss_end_bytes, 0, 0),
	COLUMN(U64, rls_memory_row, rss_peak_bytes, 0, 0),
	COLUMN(U64, rls_memory_row, peak_time_ns, 0, RLS_INSTANT | RLS_TIE),
	COLUMN(U64, rls_memory_row, tracked_growth_bytes, 0, 0),
	COLUMN(I64, rls_memory_row, untracked_bytes, 0, 0),
	COLUMN(DOUBLE, rls_memory_row, growth_bytes_per_s, 0, 0),
	COLUMN(U64, rls_memory_row, limit_bytes, 0, RLS_NULLABLE),
	COLUMN(DOUBLE, rls_memory_row, limit_in_s, 0, RLS_NULLABLE),
	COLUMN(BOOL, rls_memory_row, out_of_memory, 0, 0),
};

static const struct rls_column memory_timeline[] = {
	COLUMN(U32, rls_memory_timeline_row, pid, 1, RLS_PID),
	COLUMN(I32, rls_memory_timeline_row, device, 2, 0),
	COLUMN(U64, rls_memory_timeline_row, time_ns, 3, RLS_INSTANT),
	COLUMN(U64, rls_memory_timeline_row, rss_bytes, 0, RLS_TIE),
	COLUMN(U64, rls_memory_timeline_row, live_bytes, 0, RLS_NULLABLE),
};

static const struct rls_column layers[] = {
	COLUMN(U32, rls_layer_row, pid, 1, RLS_PID),
	COLUMN(U32, rls_layer_row, tid, 2, RLS_BY_THREAD),
	COLUMN(U64, rls_layer_row, id, 5, RLS_BY_LAYER | RLS_NULLABLE),
	COLUMN(U64, rls_layer_row, parent, 0, RLS_BY_LAYER | RLS_NULLABLE),
	COLUMN(U64, rls_layer_row, index, 0, RLS_BY_LAYER | RLS_NULLABLE),
	COLUMN(STRING, rls_layer_row, path, 0, RLS_BY_LAYER),
	COLUMN(STRING, rls_layer_row, type, 6, RLS_BY_LAYER_TYPE),
	COLUMN(STRING, rls_layer_row, phase, 3, RLS_BY_PHASE),
	COLUMN(STRING, rls_layer_row, operation, 4, RLS_BY_OPERATION),
	COLUMN(STRING, rls_layer_row, raw_path, 0, RLS_BY_LAYER),
	COLUMN(LAYER_PASS, rls_layer_row, pass, 7, RLS_BY_PASS),
	COLUMN(U64, rls_layer_row, calls, 0, RLS_SUM),
	COLUMN(U64, rls_layer_row, self_ns, 0, RLS_SUM | RLS_TIE),
	COLUMN(U64, rls_layer_row, cumulative_ns, 0, RLS_SUM),
	COLUMN(U64, rls_layer_row, on_cpu_ns, 0, RLS_SUM),
	COLUMN(U64, rls_layer_row, corrected_ns, 0, RLS_SUM),
	COLUMN(U64, rls_layer_row, error_ns, 0, 0), /* derived */
	COLUMN(METHOD, rls_layer_row, method, 0, RLS_WORST),
	NAMED(U64, "error.shared_ns", rls_layer_row, error.shared_ns, RLS_SUM | RLS_HIDDEN),
	NAMED(DOUBLE, "error.moved_ns", rls_layer_row, error.moved_ns, RLS_SUM | RLS_HIDDEN),
};

static void derive_layer(void *item)
{
	struct rls_layer_row *row = item;

	row->error_ns = rls_row_error_ns(&row->error, RLS_ERROR_OF_ROWS, row->self_ns);
}

/* --- the recording ------------------------------------------------------------------ */

static const struct rls_column calibration[] = {
	COLUMN(STRING, rls_calibration_entry, name, 1, 0),
	COLUMN(DOUBLE, rls_calibration_entry, value_ns, 0, 0),
	COLUMN(DOUBLE, rls_calibration_entry, error_ns, 0, 0),
};

static const struct rls_column losses[] = {
	COLUMN(STRING, rls_loss_entry, buffer, 1, 0),
	COLUMN(U64, rls_loss_entry, dropped, 0, RLS_SUM),
};

/* Rows are the texts themselves. */
static const struct rls_column warnings[] = {
	{.name = "warning", .type = RLS_COLUMN_STRING},
};

/* The row is the report. */
static const struct rls_column recording[] = {
	COLUMN(STRING, rls_report, tool, 0, 0),
	COLUMN(STRING, rls_report, kernel, 0, 0),
	COLUMN(U32, rls_report, cpus, 0, 0),
	COLUMN(U64, rls_report, start_ns, 0, 0),
	COLUMN(U64, rls_report, end_ns, 0, 0),
	COLUMN(BOOL, rls_report, complete, 0, 0),
	NAMED(U64, "hits", rls_report, overhead.hits, 0),
	NAMED(U64, "events", rls_report, overhead.events, 0),
	NAMED(U64, "overhead_ns", rls_report, overhead.estimated_ns, 0),
};

/* --- in no machine form ------------------------------------------------------------- */

/* By what a flame graph joins; the phase last. */
static const struct rls_column stacks[] = {
	COLUMN(U32, rls_stack_row, pid, 1, RLS_PID),
	COLUMN(U32, rls_stack_row, tid, 2, 0),
	STRINGS(rls_stack_row, operations, depth, 3, 0),
	COLUMN(CATEGORY, rls_stack_row, category, 4, 0),
	COLUMN(STRING, rls_stack_row, phase, 5, 0),
	COLUMN(U64, rls_stack_row, wall_ns, 0, RLS_TIE),
};

static const struct rls_column stack_frames[] = {
	COLUMN(U32, rls_stack_frame, parent, 0, RLS_FRAME),
	COLUMN(STRING, rls_stack_frame, function, 0, 0),
	COLUMN(STRING, rls_stack_frame, file, 0, 0),
};

static const struct rls_column sampled_stacks[] = {
	COLUMN(U32, rls_sampled_stack_row, pid, 1, RLS_PID),
	STRINGS(rls_sampled_stack_row, operations, depth, 2, 0),
	COLUMN(CATEGORY, rls_sampled_stack_row, category, 3, 0),
	COLUMN(U32, rls_sampled_stack_row, frame, 4, RLS_FRAME),
	COLUMN(SAMPLE_KIND, rls_sampled_stack_row, kind, 5, 0),
	COLUMN(STRING, rls_sampled_stack_row, phase, 6, 0),
	COLUMN(U64, rls_sampled_stack_row, ns, 0, RLS_TIE),
};

static const struct rls_column overviews[] = {
	COLUMN(U32, rls_overview_entry, pid, 1, RLS_PID),
	COLUMN(U32, rls_overview_entry, tid, 2, 0),
	COLUMN(U64, rls_overview_entry, start_ns, 0, RLS_TIE),
};

static const struct rls_column overview_parts[] = {
	COLUMN(STRING, rls_overview_part, phase, 0, 0),
	COLUMN(STRING, rls_overview_part, operation, 0, RLS_HIDDEN),
};

/* A coarse picture is shifted by whole buckets, to the nearest. */
static void shift_overview(void *row, int64_t shift_ns)
{
	struct rls_overview_entry *entry = row;
	int64_t shift = llround((double)shift_ns / ldexp(1, (int)entry->shift));

	for (size_t i = 0; i < entry->part_count; i++) {
		struct rls_overview_part *part = &entry->parts[i];

		if (shift < 0 && part->bucket < -(uint64_t)shift)
			part->bucket = 0;
		else
			part->bucket += (uint64_t)shift;
	}
	entry->start_ns = entry->part_count ? entry->parts[0].bucket << entry->shift : 0;
}

/* --- the tables --------------------------------------------------------------------- */

#define COLUMNS(columns_)                                                                          \
	.columns = columns_, .column_count = sizeof(columns_) / sizeof(*(columns_))
#define ROWS(rows, count)                                                                          \
	.row_bytes = sizeof(*((struct rls_report *)0)->rows),                                      \
	.rows_offset = offsetof(struct rls_report, rows),                                          \
	.count_offset = offsetof(struct rls_report, count)
#define ROWS_OF(outer_, entry, rows, count)                                                        \
	.inner = true, .outer = outer_, .row_bytes = sizeof(*((struct entry *)0)->rows),           \
	.rows_offset = offsetof(struct entry, rows), .count_offset = offsetof(struct entry, count)

const struct rls_table rls_report_tables[RLS_TABLE_ALL] = {
	[RLS_TABLE_HOSTS] = {.name = "hosts",
			     COLUMNS(hosts),
			     ROWS(hosts, host_count),
			     .flags = RLS_TABLE_OWN,
			     .json = 1,
			     .json_when = RLS_JSON_ANY},
	[RLS_TABLE_PROCESSES] = {.name = "processes",
				 COLUMNS(processes),
				 ROWS(processes, process_count),
				 .json = 2},
	[RLS_TABLE_LIBRARIES] = {.name = "libraries",
				 COLUMNS(libraries),
				 .json_name = "libraries",
				 ROWS_OF(RLS_TABLE_PROCESSES, rls_process_entry, libraries,
					 library_count)},
	[RLS_TABLE_THREADS] = {.name = "threads",
			       COLUMNS(threads),
			       ROWS(threads, thread_count),
			       .json = 3},
	[RLS_TABLE_BREAKDOWN] = {.name = "breakdown",
				 COLUMNS(breakdown),
				 ROWS(breakdown, breakdown_count),
				 .flags = RLS_TABLE_GROUPED,
				 .json = 4,
				 .over_operations = undivide,
				 .derive = derive_breakdown},
	[RLS_TABLE_TRANSITIONS] = {.name = "transitions",
				   COLUMNS(transitions),
				   ROWS(transitions, transition_count),
				   .flags = RLS_TABLE_GROUPED,
				   .json = 5},
	[RLS_TABLE_OPERATIONS] = {.name = "operations",
				  COLUMNS(operations),
				  ROWS(operations, operation_count),
				  .flags = RLS_TABLE_GROUPED,
				  .json = 6},
	[RLS_TABLE_GPU] = {.name = "gpu", COLUMNS(gpu), ROWS(gpu, gpu_count), .json = 7},
	[RLS_TABLE_GPU_OPERATIONS] = {.name = "gpu_operations",
				      COLUMNS(gpu_operations),
				      .json_name = "by_launching_operation",
				      ROWS_OF(RLS_TABLE_GPU, rls_gpu_entry, operations,
					      operation_count)},
	[RLS_TABLE_LINES] = {.name = "lines",
			     COLUMNS(lines),
			     ROWS(lines, line_count),
			     .flags = RLS_TABLE_GROUPED | RLS_TABLE_DISTINCT,
			     .json = 8,
			     .json_when = RLS_JSON_SAMPLED,
			     .derive = derive_line},
	[RLS_TABLE_FUNCTIONS] = {.name = "functions",
				 COLUMNS(functions),
				 ROWS(functions, function_count),
				 .flags = RLS_TABLE_GROUPED | RLS_TABLE_DISTINCT,
				 .json = 9,
				 .json_when = RLS_JSON_SAMPLED,
				 .derive = derive_function},
	[RLS_TABLE_SAMPLES] = {.name = "samples",
			       COLUMNS(samples),
			       ROWS(samples, sample_count),
			       .flags = RLS_TABLE_GROUPED | RLS_TABLE_DISTINCT,
			       .json = 10,
			       .json_when = RLS_JSON_SAMPLED,
			       .derive = derive_sample},
	[RLS_TABLE_CROSS_CHECK] = {.name = "cross_check",
				   COLUMNS(checks),
				   ROWS(checks, check_count),
				   .json = 11,
				   .json_when = RLS_JSON_SAMPLED},
	[RLS_TABLE_SAMPLED_LIBRARIES] = {.name = "sampled_libraries",
					 COLUMNS(sampled_libraries),
					 ROWS(sampled_libraries, sampled_library_count),
					 .flags = RLS_TABLE_DISTINCT,
					 .json = 12,
					 .json_when = RLS_JSON_SAMPLED,
					 .derive = derive_sampled_library},
	[RLS_TABLE_CUDA_CALLS] = {.name = "cuda_calls",
				  COLUMNS(cuda_calls),
				  ROWS(cuda_calls, cuda_call_count),
				  .flags = RLS_TABLE_GROUPED,
				  .json = 13,
				  .json_when = RLS_JSON_ANY},
	[RLS_TABLE_CUDA_OPERATIONS] = {.name = "cuda_operations",
				       COLUMNS(cuda_operations),
				       ROWS(cuda_operations, cuda_operation_count),
				       .json = 14,
				       .json_when = RLS_JSON_ANY},
	[RLS_TABLE_GPU_CLOCKS] = {.name = "gpu_clocks",
				  COLUMNS(gpu_clocks),
				  ROWS(gpu_clocks, gpu_clock_count),
				  .json = 15,
				  .json_when = RLS_JSON_ANY},
	[RLS_TABLE_MEMORY] = {.name = "memory",
			      COLUMNS(memory),
			      ROWS(memory, memory_count),
			      .json = 16},
	[RLS_TABLE_MEMORY_LINES] = {.name = "memory_lines",
				    COLUMNS(memory_lines),
				    ROWS(memory_lines, memory_line_count),
				    .flags = RLS_TABLE_GROUPED | RLS_TABLE_DISTINCT,
				    .json = 17,
				    .derive = rls_memory_line_derive,
				    .add = rls_memory_line_add},
	[RLS_TABLE_COPIES] = {.name = "copies",
			      COLUMNS(copies),
			      ROWS(copies, copy_count),
			      .flags = RLS_TABLE_GROUPED | RLS_TABLE_DISTINCT,
			      .json = 18},
	[RLS_TABLE_MEMORY_TIMELINE] = {.name = "memory_timeline",
				       COLUMNS(memory_timeline),
				       ROWS(memory_timeline, memory_timeline_count),
				       .json = 19},
	[RLS_TABLE_LAYERS] = {.name = "layers",
			      COLUMNS(layers),
			      ROWS(layers, layer_count),
			      .flags = RLS_TABLE_GROUPED,
			      .json = 20,
			      .json_when = RLS_JSON_ANY,
			      .derive = derive_layer},
	[RLS_TABLE_CALIBRATION] = {.name = "calibration",
				   COLUMNS(calibration),
				   ROWS(overhead.calibration, overhead.calibration_count),
				   .flags = RLS_TABLE_FIRST},
	[RLS_TABLE_LOSSES] = {.name = "losses",
			      COLUMNS(losses),
			      ROWS(losses, loss_count),
			      .flags = RLS_TABLE_DISTINCT},
	[RLS_TABLE_WARNINGS] = {.name = "warnings",
				COLUMNS(warnings),
				ROWS(warnings, warning_count)},
	[RLS_TABLE_RECORDING] = {.name = "recording",
				 COLUMNS(recording),
				 .flags = RLS_TABLE_OF_REPORT},
	[RLS_TABLE_STACKS] = {COLUMNS(stacks), ROWS(stacks, stack_count)},
	[RLS_TABLE_STACK_FRAMES] = {COLUMNS(stack_frames), ROWS(stack_frames, stack_frame_count)},
	[RLS_TABLE_SAMPLED_STACKS] = {COLUMNS(sampled_stacks),
				      ROWS(sampled_stacks, sampled_stack_count)},
	[RLS_TABLE_OVERVIEWS] = {COLUMNS(overviews), ROWS(overviews, overview_count),
				 .shift = shift_overview},
	[RLS_TABLE_OVERVIEW_PARTS] = {COLUMNS(overview_parts),
				      ROWS_OF(RLS_TABLE_OVERVIEWS, rls_overview_entry, parts,
					      part_count)},
};

const char *rls_report_table_names(char buffer[static RLS_TABLE_NAMES_BYTES])
{
	size_t used = 0;

	for (int i = 0; i < RLS_TABLE_MAX && used < RLS_TABLE_NAMES_BYTES; i++)
		used += (size_t)snprintf(buffer + used, RLS_TABLE_NAMES_BYTES - used, "%s%s",
					 i ? ", " : "", rls_report_tables[i].name);
	return buffer;
}

int rls_report_table_parse(const char *name, enum rls_report_table *out)
{
	for (int i = 0; i < RLS_TABLE_MAX; i++) {
		if (!strcmp(name, rls_report_tables[i].name)) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}
