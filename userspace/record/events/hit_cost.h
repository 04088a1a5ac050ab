/* Charge: what a thread's hits are taken to have cost. Pure.
 *
 * A hit costs more amid cold code than amid hot code: how much, goes by how close together a thread's hits
 * come (density.h); calibration in the running job finds a factor beyond that for each operation
 * (segments.h). What finds no time is owed (arrears.h). Samples cost too, and are owed at once: when
 * within a thread's time they came does not matter, and their records come on a ring of their own.
 */
#ifndef RLS_HIT_COST_H
#define RLS_HIT_COST_H

#include "bpf/wire/record.h"
#include "userspace/record/events/thread_table.h"

/* Hits in the operation cost this share of what the calibration says, those in operations without
 * one the process's cost_factor. 0 or -ENOMEM. */
int rls_charge_set_factor(struct rls_living_process *process, rls_string_id operation,
			  double factor);
/* Those of from's hold for process as well, in place of its own. 0 or -ENOMEM. */
int rls_charge_copy_factors(struct rls_living_process *process,
			    const struct rls_living_process *from);
void rls_charge_forget_factors(struct rls_living_process *process);

/* The thread's innermost operation has changed, of its own doing. 0 or -ENOMEM. */
int rls_charge_turn(const struct rls_living_process *process, struct rls_living_thread *thread,
		    const struct rls_queued_edge *edge);

/* What the pile's hits cost, as much as there was time for since the last charge. process, thread:
 * NULL when it is not known; excess_ns: as rls_density_cost(); category: what the thread was in until then. */
uint32_t rls_charge(const struct rls_living_process *process, struct rls_living_thread *thread, double excess_ns,
		    const struct rls_wire_pile *pile, enum rls_category category, uint64_t time_ns);

/* A sample of the thread, in that category, cost it so much. */
void rls_charge_sample(struct rls_living_thread *thread, enum rls_category category,
		       uint32_t cost_ns);

#endif
