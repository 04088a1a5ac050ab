#include "userspace/record/events/event_sink.h"

#include <string.h>

struct rls_event rls_event_at(enum rls_event_kind kind, uint32_t pid, uint32_t tid,
			      uint64_t time_ns)
{
	struct rls_event event;

	memset(&event, 0, sizeof(event));
	event.kind = kind;
	event.pid = pid;
	event.tid = tid;
	event.time_ns = time_ns;
	return event;
}

/* The same without clearing all of it: most of an event is room for a stack of operations,
 * and these are made for every transition. The caller fills the kind's own member. */
static void event_sink_begin(struct rls_event *event, enum rls_event_kind kind, uint32_t pid,
			     uint32_t tid, uint64_t time_ns)
{
	event->kind = kind;
	event->pid = pid;
	event->tid = tid;
	event->time_ns = time_ns;
}

int rls_emit(const struct rls_event_sink *sink, const struct rls_event *event)
{
	return sink->add(sink->context, event);
}

int rls_emit_intern(const struct rls_event_sink *sink, const char *text, size_t length,
		    rls_string_id *out)
{
	return sink->intern(sink->context, text, length, out);
}

int rls_emit_category(const struct rls_event_sink *sink, uint32_t pid, uint32_t tid,
		      uint64_t time_ns, enum rls_category category)
{
	struct rls_event event;

	event_sink_begin(&event, RLS_EVENT_CATEGORY, pid, tid, time_ns);
	event.category.category = category;
	return rls_emit(sink, &event);
}

int rls_emit_operation(const struct rls_event_sink *sink, const struct rls_thread_operations *of,
		       uint64_t time_ns)
{
	struct rls_event event = rls_event_at(RLS_EVENT_OPERATION, of->pid, of->tid, time_ns);

	rls_operation_stack_fill(of->operations, &event);
	event.operation.continued = of->continued < event.operation.depth ? (uint16_t)of->continued
									  : event.operation.depth;
	return rls_emit(sink, &event);
}

int rls_emit_thread(const struct rls_event_sink *sink, uint32_t pid, uint32_t tid, uint32_t ns_tid,
		    uint64_t time_ns, const char *comm)
{
	struct rls_event event = rls_event_at(RLS_EVENT_THREAD, pid, tid, time_ns);
	int r = rls_emit_intern(sink, comm, strnlen(comm, RLS_WIRE_COMM_BYTES), &event.thread.name);

	if (r)
		return r;
	event.thread.ns_tid = ns_tid == tid ? 0 : ns_tid;
	return rls_emit(sink, &event);
}

int rls_emit_thread_end(const struct rls_event_sink *sink, uint32_t pid, uint32_t tid,
			uint64_t time_ns)
{
	struct rls_event event = rls_event_at(RLS_EVENT_THREAD_END, pid, tid, time_ns);

	return rls_emit(sink, &event);
}

int rls_emit_hit_totals(const struct rls_event_sink *sink, const struct rls_wire_header *header,
			const struct rls_wire_hit_totals *hit_totals)
{
	struct rls_event event;
	int r = 0;

	event_sink_begin(&event, RLS_EVENT_HITS, header->pid, header->tid, header->time_ns);
	if (hit_totals->hits ||
	    hit_totals->cost_ns) { /* none: an event's since the last hits, or a sample.s */
		event.hits.count = hit_totals->hits;
		event.hits.cost_ns = hit_totals->cost_ns;
		r = rls_emit(sink, &event);
	}
	if (!r && hit_totals->off_cpu_ns > hit_totals->sent_ns) {
		event.kind = RLS_EVENT_OFF_CPU;
		event.off_cpu.ns = hit_totals->off_cpu_ns - hit_totals->sent_ns;
		r = rls_emit(sink, &event);
	}
	return r;
}
