/* From the timeline's CUDA side to rows: devices, calls by name, operations, clocks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event/bounded.h"
#include "analysis/report/builder.h"

/* --- devices ------------------------------------------------------------------------ */

static void add_launched(struct rls_builder *b, struct rls_gpu_entry *entry,
			 const struct rls_gpu_device *device)
{
	size_t capacity = 0;

	for (const struct rls_launched *l = device->launched; l; l = l->next) {
		struct rls_gpu_operation *operation =
			rls_build_append(b, &entry->operations, &capacity, &entry->operation_count);

		if (!operation)
			return;
		operation->phase = rls_build_string(b, l->phase);
		operation->operation = rls_build_string(b, l->operation);
		operation->busy_ns = rls_gpu_busy_total(&l->busy);
		operation->kernels = l->kernels;
		operation->kernel_ns = l->kernel_ns;
		operation->idle_host_late_ns = l->idle_ns[RLS_IDLE_HOST_LATE];
		operation->idle_queue_ns = l->idle_ns[RLS_IDLE_QUEUE];
		operation->idle_other_ns = l->idle_ns[RLS_IDLE_OTHER];
		rls_add_bounded(&entry->idle_host_late_ns, operation->idle_host_late_ns);
		rls_add_bounded(&entry->idle_queue_ns, operation->idle_queue_ns);
		rls_add_bounded(&entry->idle_other_ns, operation->idle_other_ns);
	}
}

static void add_device(struct rls_builder *b, const struct rls_process *process,
		       const struct rls_gpu_device *device)
{
	struct rls_gpu_entry *entry = rls_build_row(b, RLS_TABLE_GPU);

	if (!entry)
		return;
	entry->pid = process->pid;
	entry->device = device->device;
	entry->busy_ns = rls_gpu_busy_total(&device->busy);
	entry->kernel_ns = device->kernel_ns;
	entry->memcpy_ns = device->memcpy_ns;
	entry->kernels = device->kernels;
	entry->smi_style_percent =
		rls_gpu_device_smi_percent(device, process->end_ns - process->start_ns);
	add_launched(b, entry, device);
}

static void add_clock(struct rls_builder *b, const struct rls_process *process)
{
	struct rls_gpu_clock_row *row;

	if (!process->clock.readings)
		return;
	row = rls_build_row(b, RLS_TABLE_GPU_CLOCKS);
	if (!row)
		return;
	*row = (struct rls_gpu_clock_row){
		.pid = process->pid,
		.readings = process->clock.readings,
		.gap_ns = process->clock.gap_ns,
		.width_ns = process->clock.width_ns,
		.drift_ppm = process->clock.drift_ppm,
	};
}

/* --- calls -------------------------------------------------------------------------- */

static uint64_t build_cuda_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

/* By thread, phase and operation a scope that says by what calls are scaled: all in which a
 * total's calls were made say the same. */
static int map_scales(const struct rls_process *process, struct rls_index_map *scales)
{
	int err = 0;

	for (const struct rls_thread *t = process->threads; t; t = t->next) {
		for (struct rls_scope *s = t->scopes; !err && s; s = s->next)
			if (s->calls_scale.count > 0)
				err = rls_index_map_put(scales, build_cuda_pair(t->tid, s->phase),
							s->operation, s);
	}
	return err;
}

/* Half width of a 95 % interval, in standard deviations. */
#define INTERVAL_95 1.96

/* Calls of one name have the error of all calls, and one from how few were seen. */
static double count_error(const struct rls_builder *b, const struct rls_scope *scope, double seen,
			  double count)
{
	return hypot(scope->calls_scale.count_error * count,
		     INTERVAL_95 * (count - seen) / sqrt(seen)) +
	       b->calibration_error * scope->calls_scale.cost * count;
}

static void widen_call_error(struct rls_cuda_call_row *row)
{
	row->count = row->launches = row->wall_ns = RLS_COUNT_UNKNOWN;
	row->count_error = row->error_ns = RLS_COUNT_UNKNOWN;
}

/* From those that were traced to all there were. */
static void scale_call(const struct rls_builder *b, struct rls_cuda_call_row *row,
		       const struct rls_scope *scope)
{
	const struct rls_calls_scale *scale = &scope->calls_scale;
	double seen = (double)row->count, count = seen * scale->count;
	double wall_ns = (double)row->wall_ns * scale->time,
	       error = count_error(b, scope, seen, count);

	if (scale->count != 1 || scale->time != 1 || isinf(scale->count_error))
		row->method = RLS_METHOD_SCALED;
	if (isinf(scale->count_error)) {
		widen_call_error(row);
		return;
	}
	row->count = rls_round_bounded(count);
	row->launches = rls_round_bounded((double)row->launches * scale->count);
	row->wall_ns = rls_round_bounded(wall_ns);
	row->count_error = rls_round_bounded(error);
	row->error_ns =
		rls_round_bounded(wall_ns * fmin(hypot(error / count, scale->time_error), 1));
}

static void add_call(struct rls_builder *b, uint32_t pid, const struct rls_call_total *total,
		     const struct rls_index_map *scales)
{
	struct rls_cuda_call_row *row = rls_build_row(b, RLS_TABLE_CUDA_CALLS);
	const struct rls_scope *scope;

	if (!row)
		return;
	*row = (struct rls_cuda_call_row){
		.pid = pid,
		.tid = total->tid,
		.phase = rls_build_string(b, total->phase),
		.operation = rls_build_string(b, total->operation),
		.name = rls_build_string(b, total->name),
		.count = total->count,
		.wall_ns = total->wall_ns,
		.launches = total->launches,
	};
	scope = rls_index_map_get(scales, build_cuda_pair(total->tid, total->phase),
				  total->operation);
	if (scope)
		scale_call(b, row, scope);
}

static void add_calls(struct rls_builder *b, const struct rls_process *process)
{
	struct rls_index_map scales = {0};

	if (!b->err && process->calls.count)
		b->err = map_scales(process, &scales);
	for (size_t i = 0; i < process->calls.count && !b->err; i++)
		add_call(b, process->pid, &process->calls.totals[i], &scales);
	rls_index_map_free(&scales);
}

/* --- operations --------------------------------------------------------------------- */

/* A process's rows by phase and operation. All strings are the report's, each there once, so
 * pointers distinguish them. */
struct operation_rows {
	struct rls_builder *b;
	uint32_t pid;
	struct rls_index_map map; /* (phase, operation) -> 1 + index */
};

/* NULL when there is no memory. */
static struct rls_cuda_operation_row *operation_row(struct operation_rows *rows, const char *phase,
						    const char *operation)
{
	struct rls_builder *b = rows->b;
	size_t place =
		(uintptr_t)rls_index_map_get(&rows->map, (uintptr_t)phase, (uintptr_t)operation);
	struct rls_cuda_operation_row *row;

	if (place)
		return &b->report->cuda_operations[place - 1];
	row = rls_build_row(b, RLS_TABLE_CUDA_OPERATIONS);
	if (!row)
		return NULL;
	row->pid = rows->pid;
	row->phase = phase;
	row->operation = operation;
	b->err = rls_index_map_put(&rows->map, (uintptr_t)phase, (uintptr_t)operation,
				   (void *)b->report->cuda_operation_count);
	return b->err ? NULL : row;
}

static void sum_calls(struct operation_rows *rows, const struct rls_cuda_call_row *call)
{
	struct rls_cuda_operation_row *row = operation_row(rows, call->phase, call->operation);

	if (!row)
		return;
	rls_add_bounded(&row->calls, call->count);
	rls_add_bounded(&row->api_ns, call->wall_ns);
	rls_add_bounded(&row->launches, call->launches);
	rls_add_bounded(&row->count_error, call->count_error);
	rls_add_bounded(&row->error_ns, call->error_ns);
	if (call->method > row->method)
		row->method = call->method;
}

static void sum_device(struct operation_rows *rows, const struct rls_gpu_entry *gpu)
{
	for (size_t i = 0; i < gpu->operation_count; i++) {
		const struct rls_gpu_operation *operation = &gpu->operations[i];
		struct rls_cuda_operation_row *row =
			operation_row(rows, operation->phase, operation->operation);

		if (!row)
			return;
		rls_add_bounded(&row->kernels, operation->kernels);
		rls_add_bounded(&row->kernel_ns, operation->kernel_ns);
	}
}

/* Of the calls and devices that were added last. */
static void add_operations(struct rls_builder *b, const struct rls_process *process,
			   size_t first_call, size_t first_device)
{
	struct operation_rows rows = {.b = b, .pid = process->pid};
	struct rls_report *report = b->report;
	size_t first = report->cuda_operation_count;

	for (size_t i = first_call; i < report->cuda_call_count && !b->err; i++)
		sum_calls(&rows, &report->cuda_calls[i]);
	for (size_t i = first_device; i < report->gpu_count && !b->err; i++)
		sum_device(&rows, &report->gpu[i]);
	for (size_t i = first; i < report->cuda_operation_count; i++) {
		struct rls_cuda_operation_row *row = &report->cuda_operations[i];

		if (row->kernel_ns)
			row->api_to_kernel = (double)row->api_ns / (double)row->kernel_ns;
		if (row->api_ns == RLS_COUNT_UNKNOWN)
			row->api_to_kernel = NAN;
	}
	rls_index_map_free(&rows.map);
}

void rls_build_cuda(struct rls_builder *b, const struct rls_process *process)
{
	size_t first_call = b->report->cuda_call_count, first_device = b->report->gpu_count;

	for (const struct rls_gpu_device *d = process->gpu.devices; d && !b->err; d = d->next)
		add_device(b, process, d);
	add_calls(b, process);
	add_operations(b, process, first_call, first_device);
	add_clock(b, process);
}
