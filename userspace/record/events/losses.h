/* Losses: what the kernel side had no room for, by thread, and in total by buffer.
 *
 *     RLS_WIRE_LOSS records ─▶ per thread: events, stretches, time ─┐
 *     the kernel side's drop counters ──────────────────────────────┴▶ LOSS events, warnings
 */
#ifndef RLS_LOSSES_H
#define RLS_LOSSES_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "userspace/record/events/event_output.h"

struct rls_thread_losses {
	uint32_t pid, tid;
	uint64_t events; /* transitions */
	uint64_t stretches; /* without a gap */
	uint64_t unknown_ns; /* how long they were */
};

/* Zeroed is empty. */
struct rls_losses {
	struct rls_thread_losses *threads;
	size_t count, room;
	uint64_t noted[RLS_DROP_MAX]; /* totals that are in the trace */
	uint64_t others; /* stretches of threads beyond those kept */
};

void rls_losses_clear(struct rls_losses *losses);

/* One RLS_WIRE_LOSS record; others are ignored. 0 or -ENOMEM. */
int rls_losses_add(struct rls_losses *losses, const struct rls_wire_header *record, size_t size);

/* The buffer's, as in `losses`. */
const char *rls_drop_name(enum rls_drop_counter which);

/* Adds the totals that have grown since the last call: for who reads a trace without an end. */
int rls_losses_note(struct rls_losses *losses, const uint64_t drops[RLS_DROP_MAX],
		    struct rls_event_output *output, uint64_t time_ns);

/* Adds a total for each buffer, and a warning for each of the threads that lost most. */
int rls_losses_report(struct rls_losses *losses, const uint64_t drops[RLS_DROP_MAX],
		      struct rls_event_output *output, uint64_t start_ns, uint64_t stop_ns);

#endif
