#include "analysis/writers/table/columns.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/event/sample_kind.h"

#define COLUMN(type_, struct_, member) \
	{.name = #member, .type = RLS_COLUMN_##type_, .offset = offsetof(struct struct_, member)}
#define OF_OUTER(type_, struct_, member)               \
	{.name = #member,                              \
	 .type = RLS_COLUMN_##type_,                   \
	 .offset = offsetof(struct struct_, member),   \
	 .of_outer = true}
#define OPTIONAL(type_, struct_, member)               \
	{.name = #member,                              \
	 .type = RLS_COLUMN_##type_,                   \
	 .offset = offsetof(struct struct_, member),   \
	 .optional = true}

#define NULLABLE(type_, struct_, member)               \
	{.name = #member,                              \
	 .type = RLS_COLUMN_##type_,                   \
	 .offset = offsetof(struct struct_, member),   \
	 .nullable = true}

static const struct rls_column breakdown[] = {
	COLUMN(U32, rls_breakdown_row, pid),
	COLUMN(U32, rls_breakdown_row, tid),
	COLUMN(STRING, rls_breakdown_row, phase),
	COLUMN(STRING, rls_breakdown_row, operation),
	{.name = "category", .type = RLS_COLUMN_ROW_CATEGORY},
	COLUMN(RESOURCE, rls_breakdown_row, resource),
	COLUMN(U64, rls_breakdown_row, wall_ns),
	COLUMN(U64, rls_breakdown_row, on_cpu_ns),
	COLUMN(U64, rls_breakdown_row, corrected_ns),
	COLUMN(U64, rls_breakdown_row, error_ns),
	COLUMN(METHOD, rls_breakdown_row, method),
};

static const struct rls_column transitions[] = {
	COLUMN(U32, rls_transition_row, pid),
	COLUMN(U32, rls_transition_row, tid),
	COLUMN(STRING, rls_transition_row, phase),
	COLUMN(STRING, rls_transition_row, operation),
	COLUMN(CATEGORY, rls_transition_row, from),
	COLUMN(CATEGORY, rls_transition_row, to),
	NULLABLE(U64, rls_transition_row, count),
	COLUMN(METHOD, rls_transition_row, method),
	/* Its name until 0.1.0. */
	{.name = "error",
	 .type = RLS_COLUMN_U64,
	 .offset = offsetof(struct rls_transition_row, count_error),
	 .optional = true,
	 .nullable = true},
	NULLABLE(U64, rls_transition_row, count_error),
};

static const struct rls_column operations[] = {
	COLUMN(U32, rls_operation_row, pid),
	COLUMN(U32, rls_operation_row, tid),
	COLUMN(STRING, rls_operation_row, phase),
	COLUMN(STRING, rls_operation_row, operation),
	COLUMN(U64, rls_operation_row, entries),
};

static const struct rls_column threads[] = {
	COLUMN(U32, rls_thread_entry, pid),     COLUMN(U32, rls_thread_entry, tid),
	COLUMN(STRING, rls_thread_entry, name), COLUMN(U64, rls_thread_entry, wall_ns),
	COLUMN(U64, rls_thread_entry, on_cpu_ns),
};

static const struct rls_column processes[] = {
	COLUMN(U32, rls_process_entry, pid),
	COLUMN(U32, rls_process_entry, ppid),
	COLUMN(STRING, rls_process_entry, name),
	COLUMN(U64, rls_process_entry, start_ns),
	COLUMN(U64, rls_process_entry, end_ns),
	COLUMN(STRING, rls_process_entry, python),
	OPTIONAL(U32, rls_process_entry, ns_pid),
	OPTIONAL(STRING, rls_process_entry, container),
	OPTIONAL(U32, rls_process_entry, host),
	OPTIONAL(U32, rls_process_entry, host_pid),
};

static const struct rls_column hosts[] = {
	COLUMN(STRING, rls_host_entry, boot),
	COLUMN(STRING, rls_host_entry, kernel),
	COLUMN(U32, rls_host_entry, cpus),
};

static const struct rls_column gpu[] = {
	COLUMN(U32, rls_gpu_entry, pid),       COLUMN(U32, rls_gpu_entry, device),
	COLUMN(U64, rls_gpu_entry, busy_ns),   COLUMN(U64, rls_gpu_entry, kernel_ns),
	COLUMN(U64, rls_gpu_entry, memcpy_ns), COLUMN(U64, rls_gpu_entry, kernels),
	COLUMN(DOUBLE, rls_gpu_entry, smi_style_percent),
	COLUMN(U64, rls_gpu_entry, idle_host_late_ns),
	COLUMN(U64, rls_gpu_entry, idle_queue_ns),
	COLUMN(U64, rls_gpu_entry, idle_other_ns),
};

static const struct rls_column cuda_calls[] = {
	COLUMN(U32, rls_cuda_call_row, pid),
	COLUMN(U32, rls_cuda_call_row, tid),
	COLUMN(STRING, rls_cuda_call_row, phase),
	COLUMN(STRING, rls_cuda_call_row, operation),
	COLUMN(STRING, rls_cuda_call_row, name),
	NULLABLE(U64, rls_cuda_call_row, count),
	NULLABLE(U64, rls_cuda_call_row, wall_ns),
	NULLABLE(U64, rls_cuda_call_row, launches),
	COLUMN(METHOD, rls_cuda_call_row, method),
	NULLABLE(U64, rls_cuda_call_row, count_error),
	NULLABLE(U64, rls_cuda_call_row, error_ns),
};

static const struct rls_column cuda_operations[] = {
	COLUMN(U32, rls_cuda_operation_row, pid),
	COLUMN(STRING, rls_cuda_operation_row, phase),
	COLUMN(STRING, rls_cuda_operation_row, operation),
	NULLABLE(U64, rls_cuda_operation_row, calls),
	NULLABLE(U64, rls_cuda_operation_row, api_ns),
	NULLABLE(U64, rls_cuda_operation_row, launches),
	COLUMN(U64, rls_cuda_operation_row, kernels),
	COLUMN(U64, rls_cuda_operation_row, kernel_ns),
	NULLABLE(DOUBLE, rls_cuda_operation_row, api_to_kernel),
	COLUMN(METHOD, rls_cuda_operation_row, method),
	NULLABLE(U64, rls_cuda_operation_row, count_error),
	NULLABLE(U64, rls_cuda_operation_row, error_ns),
};

static const struct rls_column gpu_clocks[] = {
	COLUMN(U32, rls_gpu_clock_row, pid),
	COLUMN(U64, rls_gpu_clock_row, readings),
	COLUMN(DOUBLE, rls_gpu_clock_row, gap_ns),
	COLUMN(U64, rls_gpu_clock_row, width_ns),
	COLUMN(DOUBLE, rls_gpu_clock_row, drift_ppm),
};

static const struct rls_column checks[] = {
	COLUMN(U32, rls_check_row, pid),         COLUMN(CATEGORY, rls_check_row, category),
	COLUMN(U64, rls_check_row, traced_ns),   COLUMN(U64, rls_check_row, sampled_ns),
	COLUMN(U64, rls_check_row, error_ns),    COLUMN(U64, rls_check_row, unseen_ns),
	COLUMN(U64, rls_check_row, probes_ns),
};

#define TIMES(struct_)                                                                      \
	TIME(struct_, samples), TIME(struct_, python_ns), TIME(struct_, native_ns),         \
		TIME(struct_, system_ns), TIME(struct_, waiting_ns), TIME(struct_, error_ns), \
		TIME(struct_, runtime_ns), TIME(struct_, lock_ns), TIME(struct_, io_ns),    \
		TIME(struct_, sleep_ns), TIME(struct_, child_ns), TIME(struct_, gpu_ns),    \
		TIME(struct_, run_queue_ns), TIME(struct_, other_ns)
#define TIME(struct_, member) \
	{.name = #member, .type = RLS_COLUMN_U64, .offset = offsetof(struct struct_, times.member)}

static const struct rls_column lines[] = {
	COLUMN(U32, rls_line_row, pid),      COLUMN(STRING, rls_line_row, file),
	COLUMN(U32, rls_line_row, line),     COLUMN(STRING, rls_line_row, function),
	COLUMN(STRING, rls_line_row, phase), COLUMN(STRING, rls_line_row, operation),
	TIMES(rls_line_row),
};

static const struct rls_column functions[] = {
	COLUMN(U32, rls_function_row, pid),
	COLUMN(STRING, rls_function_row, file),
	COLUMN(STRING, rls_function_row, function),
	COLUMN(BOOL, rls_function_row, native),
	COLUMN(STRING, rls_function_row, phase),
	COLUMN(STRING, rls_function_row, operation),
	COLUMN(U64, rls_function_row, total_ns),
	TIMES(rls_function_row),
};

static const struct rls_column samples[] = {
	COLUMN(U32, rls_sample_row, pid),
	COLUMN(STRING, rls_sample_row, phase),
	COLUMN(STRING, rls_sample_row, operation),
	COLUMN(CATEGORY, rls_sample_row, category),
	COLUMN(SAMPLE_KIND, rls_sample_row, kind),
	COLUMN(U64, rls_sample_row, samples),
	COLUMN(U64, rls_sample_row, ns),
	COLUMN(U64, rls_sample_row, error_ns),
};

static const struct rls_column libraries[] = {
	OF_OUTER(U32, rls_process_entry, pid),
	COLUMN(STRING, rls_library_entry, path),
	COLUMN(STRING, rls_library_entry, role),
	COLUMN(U32, rls_library_entry, sites),
};

static const struct rls_column gpu_operations[] = {
	OF_OUTER(U32, rls_gpu_entry, pid),
	OF_OUTER(U32, rls_gpu_entry, device),
	COLUMN(STRING, rls_gpu_operation, phase),
	COLUMN(STRING, rls_gpu_operation, operation),
	COLUMN(U64, rls_gpu_operation, busy_ns),
	COLUMN(U64, rls_gpu_operation, kernels),
	COLUMN(U64, rls_gpu_operation, kernel_ns),
	COLUMN(U64, rls_gpu_operation, idle_host_late_ns),
	COLUMN(U64, rls_gpu_operation, idle_queue_ns),
	COLUMN(U64, rls_gpu_operation, idle_other_ns),
};

static const struct rls_column calibration[] = {
	COLUMN(STRING, rls_calibration_entry, name),
	COLUMN(DOUBLE, rls_calibration_entry, value_ns),
	COLUMN(DOUBLE, rls_calibration_entry, error_ns),
};

static const struct rls_column losses[] = {
	COLUMN(STRING, rls_loss_entry, buffer),
	COLUMN(U64, rls_loss_entry, dropped),
};

/* Elements are the texts themselves. */
static const struct rls_column warnings[] = {
	{.name = "warning", .type = RLS_COLUMN_STRING},
};

/* The element is the report. */
static const struct rls_column recording[] = {
	COLUMN(STRING, rls_report, tool),
	COLUMN(STRING, rls_report, kernel),
	COLUMN(U32, rls_report, cpus),
	COLUMN(U64, rls_report, start_ns),
	COLUMN(U64, rls_report, end_ns),
	COLUMN(BOOL, rls_report, complete),
	{.name = "hits", .type = RLS_COLUMN_U64, .offset = offsetof(struct rls_report, overhead.hits)},
	{.name = "events",
	 .type = RLS_COLUMN_U64,
	 .offset = offsetof(struct rls_report, overhead.events)},
	{.name = "overhead_ns",
	 .type = RLS_COLUMN_U64,
	 .offset = offsetof(struct rls_report, overhead.estimated_ns)},
};

#define COLUMNS(columns_) \
	.columns = columns_, .column_count = sizeof(columns_) / sizeof(*(columns_))

#define TABLE(name_, columns_, items, count)                            \
	{.name = name_,                                                 \
	 COLUMNS(columns_),                                             \
	 .item_bytes = sizeof(*((struct rls_report *)0)->items),        \
	 .items_offset = offsetof(struct rls_report, items),            \
	 .count_offset = offsetof(struct rls_report, count)}

/* Arrays within the elements of another. */
#define INNER_TABLE(name_, columns_, items, count, entry, inner_items, inner_count) \
	{.name = name_,                                                             \
	 COLUMNS(columns_),                                                         \
	 .item_bytes = sizeof(*((struct rls_report *)0)->items),                    \
	 .items_offset = offsetof(struct rls_report, items),                        \
	 .count_offset = offsetof(struct rls_report, count),                        \
	 .inner_bytes = sizeof(*((struct entry *)0)->inner_items),                  \
	 .inner_items_offset = offsetof(struct entry, inner_items),                 \
	 .inner_count_offset = offsetof(struct entry, inner_count)}

const struct rls_columns rls_report_columns[RLS_TABLE_MAX] = {
	[RLS_TABLE_BREAKDOWN] = TABLE("breakdown", breakdown, breakdown, breakdown_count),
	[RLS_TABLE_TRANSITIONS] = TABLE("transitions", transitions, transitions, transition_count),
	[RLS_TABLE_THREADS] = TABLE("threads", threads, threads, thread_count),
	[RLS_TABLE_PROCESSES] = TABLE("processes", processes, processes, process_count),
	[RLS_TABLE_OPERATIONS] = TABLE("operations", operations, operations, operation_count),
	[RLS_TABLE_GPU] = TABLE("gpu", gpu, gpu, gpu_count),
	[RLS_TABLE_LINES] = TABLE("lines", lines, lines, line_count),
	[RLS_TABLE_FUNCTIONS] = TABLE("functions", functions, functions, function_count),
	[RLS_TABLE_SAMPLES] = TABLE("samples", samples, samples, sample_count),
	[RLS_TABLE_GPU_OPERATIONS] =
		INNER_TABLE("gpu_operations", gpu_operations, gpu, gpu_count, rls_gpu_entry,
			    operations, operation_count),
	[RLS_TABLE_LIBRARIES] = INNER_TABLE("libraries", libraries, processes, process_count,
					    rls_process_entry, libraries, library_count),
	[RLS_TABLE_CALIBRATION] = TABLE("calibration", calibration, overhead.calibration,
					overhead.calibration_count),
	[RLS_TABLE_LOSSES] = TABLE("losses", losses, losses, loss_count),
	[RLS_TABLE_WARNINGS] = TABLE("warnings", warnings, warnings, warning_count),
	[RLS_TABLE_RECORDING] = {.name = "recording", COLUMNS(recording), .of_report = true},
	[RLS_TABLE_CUDA_CALLS] = TABLE("cuda_calls", cuda_calls, cuda_calls, cuda_call_count),
	[RLS_TABLE_CUDA_OPERATIONS] = TABLE("cuda_operations", cuda_operations, cuda_operations,
					    cuda_operation_count),
	[RLS_TABLE_CROSS_CHECK] = TABLE("cross_check", checks, checks, check_count),
	[RLS_TABLE_GPU_CLOCKS] = TABLE("gpu_clocks", gpu_clocks, gpu_clocks, gpu_clock_count),
	[RLS_TABLE_HOSTS] = TABLE("hosts", hosts, hosts, host_count),
};

const char *rls_report_table_names(char buffer[static RLS_TABLE_NAMES_BYTES])
{
	size_t used = 0;

	for (int i = 0; i < RLS_TABLE_MAX && used < RLS_TABLE_NAMES_BYTES; i++)
		used += (size_t)snprintf(buffer + used, RLS_TABLE_NAMES_BYTES - used, "%s%s",
					 i ? ", " : "", rls_report_columns[i].name);
	return buffer;
}

int rls_report_table_parse(const char *name, enum rls_report_table *out)
{
	for (int i = 0; i < RLS_TABLE_MAX; i++) {
		if (!strcmp(name, rls_report_columns[i].name)) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

const void *rls_columns_item(const struct rls_columns *columns, const struct rls_report *report,
			     size_t index)
{
	const char *items = *(const char *const *)((const char *)report + columns->items_offset);

	return items + index * columns->item_bytes;
}

size_t rls_columns_count(const struct rls_columns *columns, const struct rls_report *report)
{
	return *(const size_t *)((const char *)report + columns->count_offset);
}

static const void *element(const void *owner, size_t items_offset, size_t count_offset,
			   size_t item_bytes, size_t index)
{
	const char *items = *(const char *const *)((const char *)owner + items_offset);

	return index < *(const size_t *)((const char *)owner + count_offset)
		       ? items + index * item_bytes
		       : NULL;
}

bool rls_columns_next(const struct rls_columns *columns, const struct rls_report *report,
		      struct rls_columns_place *place)
{
	if (columns->of_report) {
		place->outer = place->item = report;
		return !place->index++;
	}
	if (!columns->inner_bytes) {
		place->outer = place->item = element(report, columns->items_offset,
						     columns->count_offset, columns->item_bytes,
						     place->index++);
		return place->item;
	}
	while ((place->outer = element(report, columns->items_offset, columns->count_offset,
				       columns->item_bytes, place->index))) {
		place->item = element(place->outer, columns->inner_items_offset,
				      columns->inner_count_offset, columns->inner_bytes,
				      place->inner_index++);
		if (place->item)
			return true;
		place->index++;
		place->inner_index = 0;
	}
	return false;
}

const char *rls_columns_text(const struct rls_column *column, const struct rls_columns_place *place,
			     char buffer[static RLS_COLUMN_NUMBER_BYTES])
{
	return rls_column_text(column, column->of_outer ? place->outer : place->item, buffer);
}

static bool is_unknown(const struct rls_column *column, const void *value)
{
	return column->type == RLS_COLUMN_DOUBLE ? isnan(*(const double *)value)
						 : *(const uint64_t *)value == RLS_COUNT_UNKNOWN;
}

const char *rls_column_text(const struct rls_column *column, const void *item,
			    char buffer[static RLS_COLUMN_NUMBER_BYTES])
{
	const void *value = (const char *)item + column->offset;

	if (column->nullable && is_unknown(column, value))
		return NULL;
	switch (column->type) {
	case RLS_COLUMN_U32:
		snprintf(buffer, RLS_COLUMN_NUMBER_BYTES, "%" PRIu32, *(const uint32_t *)value);
		return buffer;
	case RLS_COLUMN_U64:
		snprintf(buffer, RLS_COLUMN_NUMBER_BYTES, "%" PRIu64, *(const uint64_t *)value);
		return buffer;
	case RLS_COLUMN_DOUBLE:
		snprintf(buffer, RLS_COLUMN_NUMBER_BYTES, "%.15g", *(const double *)value);
		return buffer;
	case RLS_COLUMN_BOOL:
		return *(const bool *)value ? "true" : "false";
	case RLS_COLUMN_STRING:
		return *(const char *const *)value;
	case RLS_COLUMN_CATEGORY:
		return rls_category_name(*(const enum rls_category *)value);
	case RLS_COLUMN_ROW_CATEGORY:
		return rls_breakdown_row_category(item);
	case RLS_COLUMN_RESOURCE:
		return rls_resource_name(*(const enum rls_resource *)value);
	case RLS_COLUMN_METHOD:
		return rls_method_name(*(const enum rls_method *)value);
	case RLS_COLUMN_SAMPLE_KIND:
		return rls_sample_kind_name(*(const enum rls_sample_kind *)value);
	}
	return "";
}

bool rls_column_is_number(const struct rls_column *column)
{
	return column->type == RLS_COLUMN_U32 || column->type == RLS_COLUMN_U64 ||
	       column->type == RLS_COLUMN_DOUBLE || column->type == RLS_COLUMN_BOOL;
}
