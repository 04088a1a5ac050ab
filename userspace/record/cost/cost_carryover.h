/* Cost carry-over: the cost of hits for which their own time had no room. Pure.
 *
 * Every hit is charged the average cost. A hit amid hot code costs less than that, and one amid
 * cold code more, so a short call may be charged more than it took. Only on-CPU time has room for
 * a cost. The excess is carried over: it is subtracted from the thread's next times in the same
 * category, where it belongs as much as where it was charged. The sum is then right for all hits.
 *
 * A single step costs far more than its own time has room for. It leaves the virtual machine, and
 * afterwards the thread finds the caches filled with other code and data. This cache pollution is
 * subtracted from all of the thread's next times, a part from each.
 */
#ifndef RLS_COST_CARRYOVER_H
#define RLS_COST_CARRYOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/event/category.h"

/* Of one thread. Zeroed: none, and nothing is known of its time yet. */
struct rls_cost_carryover {
	uint64_t since_ns; /* the last charge */
	uint64_t off_cpu_ns; /* since then */
	uint64_t owed_ns[RLS_CATEGORY_MAX];
	uint64_t pollution_ns; /* owed by all */
};

/* Some of the time since the last charge, or of that before the next, was spent off the CPU. */
void rls_cost_carryover_off_cpu(struct rls_cost_carryover *carryover, uint64_t ns);

/* The thread was in that category until now, and hits since the last charge cost that much;
 * polluting: there was a single step among them, which pollutes the caches. Returns how much of it,
 * and of the carry-over, the running time since then has room for. */
uint64_t rls_cost_carryover_charge(struct rls_cost_carryover *carryover, enum rls_category category,
				   uint64_t now_ns, uint64_t cost_ns, bool polluting);

#endif
