/* Transitions: reading the ring of our own that the boundary probes write (bpf/wire/, struct rls_wire_place).
 *
 * One reader, one thread. What is handed to the handler lies in the ring, and is the handler's for the call.
 */
#ifndef RLS_TRANSITIONS_H
#define RLS_TRANSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"

struct rls_transitions {
	const struct rls_wire_place *places; /* mapped; NULL: not yet */
	size_t count; /* of places: a power of two */
	uint64_t *ends; /* the kernel side's, RLS_END_* */
	uint64_t
		overwritten; /* before they were read: there were more writers at once than SPARE */
	bool reading;
};

/* fd: the array's; count: its entries. 0 or -errno. */
int rls_transitions_map(int fd, size_t count, uint64_t *ends, struct rls_transitions *out);
void rls_transitions_unmap(struct rls_transitions *transitions);

/* The position up to which places are taken. */
uint64_t rls_transitions_end(const struct rls_transitions *transitions);

/* Hands over what there is up to a position, until the first that is still being written. The handler returns 0 or
 * -errno, which ends it. Within a handler: nothing. 0 or what the handler returned. */
int rls_transitions_read(struct rls_transitions *transitions, uint64_t end_position,
			 int (*handler)(void *context, const struct rls_wire_category *event),
			 void *context);

#endif
