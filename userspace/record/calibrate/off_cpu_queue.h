/* Off-CPU queue: the off-CPU periods of a thread, in the order of time. Pure. A period is reported
 * when the thread returns, before the next hit of that thread.
 */
#ifndef RLS_OFF_CPU_QUEUE_H
#define RLS_OFF_CPU_QUEUE_H

#include <stdint.h>

/* A thread can hardly be away so often without a hit; if it is, the oldest are let go. */
#define RLS_OFF_CPU_QUEUED 4096

/* Zeroed: empty. */
struct rls_off_cpu_queue {
	struct rls_queued_off_cpu {
		uint64_t until_ns, away_ns;
	} * periods; /* a ring; NULL until there is one */
	uint32_t first, count;
};

void rls_off_cpu_queue_clear(struct rls_off_cpu_queue *queue);

/* 0 or -ENOMEM. */
int rls_off_cpu_queue_add(struct rls_off_cpu_queue *queue, uint64_t until_ns, uint64_t away_ns);

/* How long those were together that ended no later than that; to take them out as well. */
uint64_t rls_off_cpu_queue_sum(const struct rls_off_cpu_queue *queue, uint64_t until_ns);
uint64_t rls_off_cpu_queue_take(struct rls_off_cpu_queue *queue, uint64_t until_ns);

#endif
