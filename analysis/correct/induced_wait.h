/* Induced wait: the cost of hits of a process's other threads while one of its threads waited.
 * Pure.
 *
 *     thread 1   ──▶ backward ▁▁▁▁▁▁▁ waits ▁▁▁▁▁▁▁▁▁▁▁▁ ──▶
 *     thread 2           ▔▔▔▔▔▔▔▔▔▔h▔▔▔▔h▔▔▔▔▔h▔▔▔▔           h: hits
 *
 * A thread that waits for work waits longer by as much as hits lengthen that work. An example is
 * autograd's thread, which does each backward pass on a GPU. The reason of a wait is not known.
 * But threads that work for another thread have its operation (record/events/operation_inherit.h).
 * So threads in the same operation count, whichever of them waits.
 */
#ifndef RLS_INDUCED_WAIT_H
#define RLS_INDUCED_WAIT_H

#include <stdint.h>

#include "analysis/event/stack_tree.h"

/* What is older than so many charges is forgotten: of a longer wait less is found. A power of 2. */
#define RLS_OTHERS_CHARGES 1024

struct rls_thread;

struct rls_others_charge {
	uint64_t at_ns;
	uint64_t cost_ns;
	const struct rls_thread *thread; /* compared, never looked into */
	rls_stack_id stack;
};

/* Of a process. Zeroed: none. */
struct rls_induced_wait {
	struct rls_others_charge *charges; /* a ring; NULL until the first */
	uint64_t count; /* ever */
};

void rls_induced_wait_free(struct rls_induced_wait *others);

/* The thread, in that operation, has paid so much until now; charges come in the order of time. 0 or -ENOMEM. */
int rls_induced_wait_add(struct rls_induced_wait *others, const struct rls_others_charge *charge);

/* What others than the thread have paid in that operation after since_ns. */
uint64_t rls_induced_wait_since(const struct rls_induced_wait *others, uint64_t since_ns,
				const struct rls_thread *thread, rls_stack_id stack);

#endif
