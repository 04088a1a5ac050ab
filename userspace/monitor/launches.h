/* Launches: in which operation and phase a process was when it launched a piece of GPU work.
 *
 *     RLS_WIRE_NAME_CHANGE ─▶ what each thread is in since when ──┐
 *     LAUNCH events   ─▶ thread and instant of a correlation ┴─▶ operation, phase (numbers of names)
 *
 * A thread that has no operation of its own has that of the process's source thread, as its time
 * does. GPU work is looked up seconds later, when both have arrived. One for each process, bounded.
 * One thread.
 */
#ifndef RLS_MONITOR_LAUNCHES_H
#define RLS_MONITOR_LAUNCHES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "analysis/event/event.h"
#include "bpf/wire/record.h"

#define RLS_LAUNCHES_KEPT 65536 /* a later one with the same last digits takes its place */
#define RLS_LAUNCHES_CHANGES 65536 /* of what a thread is in; then the older half goes */
#define RLS_LAUNCHES_THREADS 4096 /* others have the source's */

struct rls_launches_history {
	struct rls_launches_change {
		uint64_t since_ns;
		uint32_t name;
	} * changes;
	size_t count, room;
};

/* Zeroed: nothing yet. */
struct rls_launches {
	struct rls_index_map threads; /* tid → struct rls_launches_history */
	struct rls_launches_history source, phase;
	struct rls_launches_slot {
		uint64_t correlation, time_ns;
		uint32_t tid;
	} * slots;
};

void rls_launches_clear(struct rls_launches *launches);

/* 0 or -ENOMEM. */
int rls_launches_change(struct rls_launches *launches, const struct rls_wire_name_change *change);
/* An event of kind LAUNCH. 0 or -ENOMEM. */
int rls_launches_add(struct rls_launches *launches, const struct rls_event *event);

/* 0 each: in none, or the launch is not known. */
void rls_launches_find(const struct rls_launches *launches, uint64_t correlation,
		       uint32_t *operation, uint32_t *phase);

/* Nothing launched before then will be asked for. */
void rls_launches_forget(struct rls_launches *launches, uint64_t before_ns);

#endif
