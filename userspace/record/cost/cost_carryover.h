/* Arrears: what hits are said to cost beyond the time that there was for it. Pure.
 *
 * Every hit is charged what one costs on average. Those amid hot code cost less, those amid cold
 * code more, so a short call may be charged more than it took. Only time on a CPU is time for it. What finds none is not
 * forgotten: it is taken from the thread's next times in the same category, where it belongs as
 * much as where it was charged. The sum then is that of all hits.
 *
 * A single step costs far more than there was time for: it leaves the virtual machine, and whatever
 * the thread does after that finds the caches filled with others' code and data. That is taken from
 * all its next times, a part of each.
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
	uint64_t spilt_ns; /* owed by all */
};

/* Some of the time since the last charge, or of that before the next, was spent off the CPU. */
void rls_cost_carryover_off_cpu(struct rls_cost_carryover *arrears, uint64_t ns);

/* The thread was in that category until now, and hits since the last charge cost that much; spills: there
 * was a single step among them. How much of it, and of what is owed, the running time since then has room for. */
uint64_t rls_cost_carryover_charge(struct rls_cost_carryover *arrears, enum rls_category category,
				   uint64_t now_ns, uint64_t cost_ns, bool spills);

#endif
