/* Event sink: one function per kind of event, which passes it to a sink. 0 or the sink's -errno.
 */
#ifndef RLS_EVENT_SINK_H
#define RLS_EVENT_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/event/event.h"
#include "bpf/wire/record.h"
#include "userspace/record/events/thread_table.h"

struct rls_event_sink {
	/* 0 or -errno; stops translation. */
	int (*add)(void *context, const struct rls_event *event);
	int (*intern)(void *context, const char *text, size_t length, rls_string_id *out);
	void *context;
};

struct rls_event rls_event_at(enum rls_event_kind kind, uint32_t pid, uint32_t tid,
			      uint64_t time_ns);
int rls_emit(const struct rls_event_sink *sink, const struct rls_event *event);
int rls_emit_intern(const struct rls_event_sink *sink, const char *text, size_t length,
		    rls_string_id *out);
int rls_emit_category(const struct rls_event_sink *sink, uint32_t pid, uint32_t tid,
		      uint64_t time_ns, enum rls_category category);

struct rls_thread_operations {
	uint32_t pid, tid;
	const struct rls_operation_stack *operations;
	uint32_t continued; /* at least so many of the outermost the thread does not enter now */
};
int rls_emit_operation(const struct rls_event_sink *sink, const struct rls_thread_operations *of,
		       uint64_t time_ns);
int rls_emit_thread(const struct rls_event_sink *sink, uint32_t pid, uint32_t tid, uint32_t ns_tid,
		    uint64_t time_ns, const char *comm);
int rls_emit_thread_end(const struct rls_event_sink *sink, uint32_t pid, uint32_t tid,
			uint64_t time_ns);
int rls_emit_hit_totals(const struct rls_event_sink *sink, const struct rls_wire_header *header,
			const struct rls_wire_hit_totals *hit_totals);

#endif
