#include "analysis/event/event_fields.h"

#include <errno.h>
#include <math.h>

#define PAYLOAD offsetof(struct rls_event, process)
#define MEMBER_BYTES(member) sizeof(((struct rls_event *)NULL)->member)

#define FIELD(type_, name_, member_)                                                               \
	{                                                                                          \
		.name = name_, .type = RLS_FIELD_##type_,                                          \
		.offset = offsetof(struct rls_event, member_)                                      \
	}
#define REQUIRED(type_, name_, member_)                                                            \
	{                                                                                          \
		.name = name_, .type = RLS_FIELD_##type_,                                          \
		.offset = offsetof(struct rls_event, member_), .required = true                    \
	}
#define SPARSE(type_, name_, member_)                                                              \
	{                                                                                          \
		.name = name_, .type = RLS_FIELD_##type_,                                          \
		.offset = offsetof(struct rls_event, member_), .sparse = true                      \
	}
/* struct rls_memory_line, a member. */
#define PYTHON_LINE(of_)                                                                           \
	SPARSE(STRING, "file", of_.file), SPARSE(U32, "line", of_.line),                           \
		SPARSE(STRING, "function", of_.function)
#define SITUATION(of_)                                                                             \
	SPARSE(STRING, "operation", of_.operation), SPARSE(STRING, "phase", of_.phase)
#define MEMORY_LINE(of_)                                                                           \
	PYTHON_LINE(of_), REQUIRED(MEMORY_SOURCE, "source", of_.source),                           \
		SPARSE(U32, "device", of_.device), SITUATION(of_)
#define FIELDS(...) ((const struct rls_event_field[]){__VA_ARGS__ __VA_OPT__(, ){.name = NULL}})

/* Ranks: what others build upon comes first, ends come last. */
static const struct rls_event_layout layouts[RLS_EVENT_MAX] = {
	[RLS_EVENT_HOST] = {"host", "time_ns", RLS_SCOPE_TRACE, 0, MEMBER_BYTES(host),
			    FIELDS(FIELD(STRING, "kernel", host.kernel),
				   SPARSE(JSON, "gpus", host.gpus),
				   FIELD(STRING, "tool", host.tool),
				   FIELD(U32, "cpus", host.cpus))},
	[RLS_EVENT_CALIBRATION] = {"calibration", "time_ns", RLS_SCOPE_TRACE, 1,
				   MEMBER_BYTES(calibration),
				   FIELDS(REQUIRED(STRING, "name", calibration.name),
					  REQUIRED(DOUBLE, "value_ns", calibration.value_ns),
					  FIELD(DOUBLE, "error_ns", calibration.error_ns))},
	[RLS_EVENT_OPERATION_RULE] = {"operation_rule", "time_ns", RLS_SCOPE_TRACE, 2,
				      MEMBER_BYTES(operation_rule),
				      FIELDS(REQUIRED(STRING, "operation",
						      operation_rule.operation),
					     REQUIRED(STRING, "function", operation_rule.function),
					     SPARSE(STRING, "file", operation_rule.file))},
	[RLS_EVENT_PROCESS] = {"process", "time_ns", RLS_SCOPE_PROCESS, 3, MEMBER_BYTES(process),
			       FIELDS(FIELD(U32, "ppid", process.ppid),
				      FIELD(STRING, "name", process.name),
				      SPARSE(U32, "ns_pid", process.ns_pid),
				      SPARSE(STRING, "python", process.python),
				      SPARSE(JSON, "cmdline", process.cmdline),
				      SPARSE(STRING, "container", process.container))},
	[RLS_EVENT_LIBRARY] = {"library", "time_ns", RLS_SCOPE_PROCESS, 4, MEMBER_BYTES(library),
			       FIELDS(REQUIRED(STRING, "path", library.path),
				      FIELD(STRING, "role", library.role),
				      FIELD(U32, "sites", library.sites))},
	[RLS_EVENT_THREAD] = {"thread", "time_ns", RLS_SCOPE_THREAD, 5, MEMBER_BYTES(thread),
			      FIELDS(FIELD(STRING, "name", thread.name),
				     SPARSE(U32, "ns_tid", thread.ns_tid))},
	/* Before what changes at the instant of its end: it was a call of what was until then. */
	[RLS_EVENT_CUDA_CALL] = {"cuda_call", "time_ns", RLS_SCOPE_THREAD, 6,
				 MEMBER_BYTES(cuda_call),
				 FIELDS(FIELD(STRING, "name", cuda_call.name),
					REQUIRED(U64, "duration_ns", cuda_call.duration_ns),
					SPARSE(U32, "launches", cuda_call.launches))},
	[RLS_EVENT_PHASE] = {"phase", "time_ns", RLS_SCOPE_PROCESS, 7, MEMBER_BYTES(phase),
			     FIELDS(REQUIRED(STRING, "phase", phase.phase))},
	[RLS_EVENT_OPERATION] = {"operation", "time_ns", RLS_SCOPE_THREAD, 9,
				 MEMBER_BYTES(operation),
				 FIELDS({.name = "stack",
					 .type = RLS_FIELD_STACK,
					 .required = true},
					SPARSE(CONTINUED, "continued", operation.continued))},
	[RLS_EVENT_CATEGORY] = {"category", "time_ns", RLS_SCOPE_THREAD, 10, MEMBER_BYTES(category),
				FIELDS(REQUIRED(CATEGORY, "category", category.category))},
	[RLS_EVENT_LAYER] = {"layer", "time_ns", RLS_SCOPE_THREAD, 11, MEMBER_BYTES(layer),
			     FIELDS(SPARSE(U32, "depth", layer.depth), SPARSE(U32, "id", layer.id),
				    SPARSE(BOOL, "begun", layer.begun),
				    FIELD(LAYER_PASS, "pass", layer.pass))},
	[RLS_EVENT_HITS] = {"hits", "time_ns", RLS_SCOPE_THREAD, 12, MEMBER_BYTES(hits),
			    FIELDS(REQUIRED(U64, "count", hits.count),
				   FIELD(U64, "cost_ns", hits.cost_ns))},
	[RLS_EVENT_OFF_CPU] = {"off_cpu", "time_ns", RLS_SCOPE_THREAD, 13, MEMBER_BYTES(off_cpu),
			       FIELDS(REQUIRED(U64, "ns", off_cpu.ns))},
	[RLS_EVENT_SHARE] = {"share", "time_ns", RLS_SCOPE_THREAD, 14, MEMBER_BYTES(share),
			     FIELDS(REQUIRED(CATEGORY, "category", share.category),
				    SPARSE(U64, "waited_ns", share.waited_ns))},
	[RLS_EVENT_BUDGET] = {"budget", "time_ns", RLS_SCOPE_TRACE, 26, MEMBER_BYTES(budget),
			      FIELDS(REQUIRED(DOUBLE, "percent", budget.percent),
				     FIELD(DOUBLE, "given_up_percent", budget.given_up_percent),
				     FIELD(U32, "windowed_sites", budget.windowed_sites),
				     FIELD(U32, "given_up_sites", budget.given_up_sites))},
	[RLS_EVENT_WINDOW] = {"window", "time_ns", RLS_SCOPE_TRACE, 8, MEMBER_BYTES(window),
			      FIELDS(REQUIRED(BOOL, "open", window.open))},
	[RLS_EVENT_LAUNCH] = {"launch", "time_ns", RLS_SCOPE_THREAD, 15, MEMBER_BYTES(launch),
			      FIELDS(FIELD(STRING, "name", launch.name),
				     FIELD(U64, "correlation", launch.correlation))},
	[RLS_EVENT_GPU] = {"gpu", "start_ns", RLS_SCOPE_PROCESS, 16, MEMBER_BYTES(gpu),
			   FIELDS(REQUIRED(U64, "end_ns", gpu.end_ns),
				  FIELD(U32, "device", gpu.device),
				  SPARSE(U32, "stream", gpu.stream),
				  REQUIRED(GPU_KIND, "kind", gpu.kind),
				  FIELD(STRING, "name", gpu.name),
				  FIELD(U64, "correlation", gpu.correlation))},
	[RLS_EVENT_GPU_CLOCK] = {"gpu_clock", "time_ns", RLS_SCOPE_PROCESS, 18,
				 MEMBER_BYTES(gpu_clock),
				 FIELDS(REQUIRED(DOUBLE, "gap_ns", gpu_clock.gap_ns),
					FIELD(U64, "width_ns", gpu_clock.width_ns),
					FIELD(DOUBLE, "drift_ppm", gpu_clock.drift_ppm))},
	[RLS_EVENT_FRAME] = {"frame", "time_ns", RLS_SCOPE_TRACE, 19, MEMBER_BYTES(frame),
			     FIELDS(REQUIRED(U32, "id", frame.id),
				    SPARSE(U32, "parent", frame.parent),
				    FIELD(STRING, "function", frame.function),
				    SPARSE(STRING, "file", frame.file),
				    SPARSE(U32, "line", frame.line),
				    FIELD(BOOL, "native", frame.native))},
	[RLS_EVENT_SAMPLE] = {"sample", "time_ns", RLS_SCOPE_THREAD, 20, MEMBER_BYTES(sample),
			      FIELDS(SPARSE(U32, "frame", sample.frame),
				     REQUIRED(SAMPLE_KIND, "kind", sample.kind),
				     REQUIRED(U64, "ns", sample.ns),
				     SPARSE(U32, "every", sample.every),
				     SPARSE(CATEGORY, "code", sample.code))},
	[RLS_EVENT_MEMORY_LINE] = {"memory_line", "time_ns", RLS_SCOPE_PROCESS, 21,
				   MEMBER_BYTES(memory_line),
				   FIELDS(MEMORY_LINE(memory_line.of),
					  REQUIRED(U64, "allocs", memory_line.allocs),
					  REQUIRED(U64, "alloc_bytes", memory_line.alloc_bytes),
					  FIELD(U64, "frees", memory_line.frees),
					  FIELD(U64, "freed_bytes", memory_line.freed_bytes),
					  FIELD(U64, "peak_bytes", memory_line.peak_bytes),
					  SPARSE(U64,
						 "temporary_bytes", memory_line.temporary_bytes),
					  SPARSE(U64, "error_bytes", memory_line.error_bytes),
					  FIELD(MEMORY_METHOD, "method", memory_line.method))},
	[RLS_EVENT_MEMORY_AGES] = {"memory_ages", "time_ns", RLS_SCOPE_PROCESS, 22,
				   MEMBER_BYTES(memory_ages),
				   FIELDS(MEMORY_LINE(memory_ages.of),
					  REQUIRED(BOOL, "freed", memory_ages.freed),
					  FIELD(U64, "from_ns", memory_ages.from_ns),
					  REQUIRED(U64, "to_ns", memory_ages.to_ns),
					  REQUIRED(U64, "count", memory_ages.count),
					  FIELD(U64, "bytes", memory_ages.bytes))},
	[RLS_EVENT_MEMORY_USE] = {"memory_use", "time_ns", RLS_SCOPE_PROCESS, 24,
				  MEMBER_BYTES(memory_use),
				  FIELDS(SPARSE(BOOL, "gpu", memory_use.gpu),
					 SPARSE(U32, "device", memory_use.device),
					 SPARSE(U64, "rss_bytes", memory_use.rss_bytes),
					 SPARSE(U64, "used_bytes", memory_use.used_bytes),
					 SPARSE(U64, "limit_bytes", memory_use.limit_bytes),
					 SPARSE(U64, "allocated_bytes", memory_use.allocated_bytes),
					 SPARSE(U64, "reserved_bytes", memory_use.reserved_bytes),
					 SPARSE(BOOL, "out_of_memory", memory_use.out_of_memory))},
	[RLS_EVENT_COPY_LINE] = {"copy_line", "time_ns", RLS_SCOPE_PROCESS, 23,
				 MEMBER_BYTES(copy_line),
				 FIELDS(PYTHON_LINE(copy_line.of), SITUATION(copy_line.of),
					REQUIRED(COPY_KIND, "kind", copy_line.kind),
					REQUIRED(U64, "copies", copy_line.copies),
					REQUIRED(U64, "bytes", copy_line.bytes))},
	[RLS_EVENT_GPU_COPY] = {"gpu_copy", "time_ns", RLS_SCOPE_PROCESS, 17,
				MEMBER_BYTES(gpu_copy),
				FIELDS(REQUIRED(COPY_KIND, "kind", gpu_copy.kind),
				       REQUIRED(U64, "bytes", gpu_copy.bytes),
				       FIELD(U64, "correlation", gpu_copy.correlation))},
	[RLS_EVENT_LAYER_NAME] = {"layer_name", "time_ns", RLS_SCOPE_PROCESS, 25,
				  MEMBER_BYTES(layer_name),
				  FIELDS(REQUIRED(U32, "id", layer_name.id),
					 SPARSE(U32, "parent", layer_name.parent),
					 FIELD(STRING, "path", layer_name.path),
					 SPARSE(STRING, "raw_path", layer_name.raw_path),
					 FIELD(STRING, "type", layer_name.type))},
	[RLS_EVENT_LOSS] = {"loss", "time_ns", RLS_SCOPE_TRACE, 27, MEMBER_BYTES(loss),
			    FIELDS(REQUIRED(STRING, "buffer", loss.buffer),
				   REQUIRED(U64, "dropped", loss.dropped))},
	[RLS_EVENT_WARNING] = {"warning", "time_ns", RLS_SCOPE_TRACE, 28, MEMBER_BYTES(warning),
			       FIELDS(REQUIRED(STRING, "text", warning.text))},
	[RLS_EVENT_THREAD_END] = {"thread_end", "time_ns", RLS_SCOPE_THREAD, 29, 0, FIELDS()},
	[RLS_EVENT_PROCESS_END] = {"process_end", "time_ns", RLS_SCOPE_PROCESS, 30, 0, FIELDS()},
	[RLS_EVENT_CLOCK] = {"clock", "time_ns", RLS_SCOPE_TRACE, 31, MEMBER_BYTES(clock),
			     FIELDS(REQUIRED(STRING, "boot", clock.boot),
				    REQUIRED(U64, "realtime_ns", clock.realtime_ns),
				    FIELD(U64, "width_ns", clock.width_ns))},
	[RLS_EVENT_END] = {"end", "time_ns", RLS_SCOPE_TRACE, 32, MEMBER_BYTES(end),
			   FIELDS(REQUIRED(BOOL, "complete", end.complete))},
};

const struct rls_event_layout *rls_event_layout(enum rls_event_kind kind)
{
	unsigned int number = kind;

	return number < RLS_EVENT_MAX && layouts[number].name ? &layouts[number] : NULL;
}

static bool field_valid(const struct rls_event *event, const struct rls_event_field *field)
{
	const void *value = (const char *)event + field->offset;

	switch (field->type) {
	case RLS_FIELD_U64:
		return *(const uint64_t *)value <= RLS_EVENT_NUMBER_MAX;
	case RLS_FIELD_CATEGORY:
		return *(const uint32_t *)value < RLS_CATEGORY_MAX;
	case RLS_FIELD_GPU_KIND:
		return *(const uint32_t *)value < RLS_GPU_KIND_MAX;
	case RLS_FIELD_SAMPLE_KIND:
		return *(const uint32_t *)value < RLS_SAMPLE_KIND_MAX;
	case RLS_FIELD_MEMORY_SOURCE:
		return *(const uint32_t *)value < RLS_MEMORY_SOURCE_MAX;
	case RLS_FIELD_MEMORY_METHOD:
		return *(const uint32_t *)value < RLS_MEMORY_METHOD_MAX;
	case RLS_FIELD_COPY_KIND:
		return *(const uint32_t *)value < RLS_COPY_KIND_MAX;
	case RLS_FIELD_LAYER_PASS:
		return *(const uint32_t *)value < RLS_PASS_MAX;
	case RLS_FIELD_DOUBLE:
		return isfinite(*(const double *)value);
	case RLS_FIELD_STACK:
		return event->operation.depth <= RLS_OPERATION_DEPTH_MAX;
	case RLS_FIELD_CONTINUED:
		return event->operation.continued <= event->operation.depth;
	default:
		return true;
	}
}

int rls_event_check(const struct rls_event *event)
{
	const struct rls_event_layout *layout = rls_event_layout(event->kind);

	if (!layout || event->time_ns > RLS_EVENT_NUMBER_MAX)
		return -EINVAL;
	for (const struct rls_event_field *field = layout->fields; field->name; field++)
		if (!field_valid(event, field))
			return -EINVAL;
	if (event->kind == RLS_EVENT_GPU && event->gpu.end_ns < event->time_ns)
		return -EINVAL;
	if (event->kind == RLS_EVENT_MEMORY_AGES &&
	    event->memory_ages.to_ns <= event->memory_ages.from_ns)
		return -EINVAL;
	return 0;
}

size_t rls_event_payload_bytes(const struct rls_event *event)
{
	if (event->kind == RLS_EVENT_OPERATION)
		return offsetof(struct rls_event, operation.stack) - PAYLOAD +
		       event->operation.depth * sizeof(rls_string_id);
	return layouts[event->kind].payload_bytes;
}
