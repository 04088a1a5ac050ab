/* What each kind of event is made of: one table that storage, text form, order and checks
 * share, so that a new kind or field is one row and cannot be forgotten in one of them.
 */
#ifndef RLS_EVENT_FIELDS_H
#define RLS_EVENT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/event/event.h"

/* No number in a trace is larger: JSON readers, ours included, have signed 64-bit integers. */
#define RLS_EVENT_NUMBER_MAX ((uint64_t)INT64_MAX)

enum rls_field_type {
	RLS_FIELD_END = 0, /* closes a kind's list */
	RLS_FIELD_U32,
	RLS_FIELD_U64,
	RLS_FIELD_STRING,
	RLS_FIELD_JSON, /* a string holding a JSON array; a real array in the text form */
	RLS_FIELD_CATEGORY,
	RLS_FIELD_GPU_KIND,
	RLS_FIELD_SAMPLE_KIND,
	RLS_FIELD_MEMORY_SOURCE,
	RLS_FIELD_MEMORY_METHOD,
	RLS_FIELD_COPY_KIND,
	RLS_FIELD_LAYER_PASS,
	RLS_FIELD_BOOL,
	RLS_FIELD_DOUBLE,
	RLS_FIELD_STACK, /* operation.depth and operation.stack; offset is unused */
	RLS_FIELD_CONTINUED, /* operation.continued; the trace file has it with the stack */
};

struct rls_event_field {
	const char *name; /* in the text form */
	enum rls_field_type type;
	size_t offset; /* in struct rls_event */
	bool required; /* a line of the text form without it is broken */
	bool sparse; /* the text form leaves it out when 0 or empty */
};

enum rls_event_scope {
	RLS_SCOPE_TRACE, /* pid 0, tid 0 */
	RLS_SCOPE_PROCESS, /* tid 0 */
	RLS_SCOPE_THREAD,
};

struct rls_event_layout {
	const char *name; /* in the text form */
	const char *time_name; /* what the text form calls time_ns */
	enum rls_event_scope scope;
	int rank; /* place among events of the same instant */
	size_t payload_bytes; /* of the kind's member of the union (operation: its largest) */
	const struct rls_event_field *fields;
};

/* NULL for a number that is no kind. Static storage. */
const struct rls_event_layout *rls_event_layout(enum rls_event_kind kind);

/* 0, or -EINVAL for an event that no trace may hold: an unknown kind or enum value, a number
 * above RLS_EVENT_NUMBER_MAX, too deep a stack, a GPU interval that ends before it begins, a
 * range of ages that is empty, a figure that is not finite. Writers and readers both ask. */
int rls_event_check(const struct rls_event *event);

/* Bytes of the union that hold something. The event must have passed the check. */
size_t rls_event_payload_bytes(const struct rls_event *event);

#endif
