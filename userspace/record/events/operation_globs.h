/* Operation globs: what --operation says, NAME=[FILE:]FUNCTION, for the trace
 * (analysis/samples/operation_rules.h applies them). */
#ifndef RLS_OPERATION_GLOBS_H
#define RLS_OPERATION_GLOBS_H

#include <stddef.h>
#include <stdint.h>

struct rls_event_output;

struct rls_operation_globs {
	struct rls_operation_glob {
		char *operation, *file, *function; /* file "": any */
	} * items;
	size_t count, room;
};

void rls_operation_globs_clear(struct rls_operation_globs *globs);

/* 0; -EINVAL for another form, an empty name or pattern; -E2BIG for too many; -ENOMEM. A file
 * is what stands before a single colon: two are part of a name of C++. */
int rls_operation_globs_add(struct rls_operation_globs *globs, const char *text);

/* One event each, in their order, from time_ns on a nanosecond apart: events of one instant
 * have no order. 0 or -errno. */
int rls_operation_globs_emit(const struct rls_operation_globs *globs,
			     struct rls_event_output *output, uint64_t time_ns);

#endif
