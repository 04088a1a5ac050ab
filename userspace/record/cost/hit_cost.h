/* Hit cost: the estimated cost of a thread's hits. Pure.
 *
 * A hit costs more amid cold code than amid hot code. How much depends on how close together the
 * thread's hits are (hit_cost_model.h). Calibration in the running job finds a further factor for
 * each operation (matched_segments.h). A cost for which there is no room is carried over
 * (cost_carryover.h). Samples cost too, and their cost is carried over at once: their records
 * arrive on another ring, and it does not matter when within a thread's time they were taken.
 */
#ifndef RLS_HIT_COST_H
#define RLS_HIT_COST_H

#include <stddef.h>

#include "bpf/wire/record.h"
#include "userspace/record/cost/cost_carryover.h"
#include "userspace/record/cost/edge_queue.h"
#include "userspace/record/cost/hit_cost_model.h"

/* Of a thread. Zeroed: nothing is known of it yet. */
struct rls_hit_cost_state {
	struct rls_hit_cost_model model;
	struct rls_cost_carryover carryover;
	struct rls_edge_queue
		edges; /* changes of its operation that its hits have not come to yet */
	rls_string_id operation; /* at its last hit */
};

/* Of a process: what hits cost, as a share of what the calibration says. Zeroed: as much. */
struct rls_hit_cost_factors {
	double factor; /* 0: 1 */
	struct rls_operation_factor {
		rls_string_id operation;
		double factor;
	} * operations; /* those that have one of their own */
	size_t count, room;
};

void rls_hit_cost_clear(struct rls_hit_cost_state *thread);

/* Hits in the operation cost this share. 0 or -ENOMEM. */
int rls_hit_cost_set_factor(struct rls_hit_cost_factors *factors, rls_string_id operation,
			    double factor);
/* Those of from's in place of its own. 0 or -ENOMEM. */
int rls_hit_cost_copy_factors(struct rls_hit_cost_factors *factors,
			      const struct rls_hit_cost_factors *from);
void rls_hit_cost_forget_factors(struct rls_hit_cost_factors *factors);

/* The thread is in that operation from its beginning, or from the beginning of its program. */
void rls_hit_cost_begin(struct rls_hit_cost_state *thread, rls_string_id operation);
/* Its innermost operation has changed, of its own doing. 0 or -ENOMEM. */
int rls_hit_cost_turn(const struct rls_hit_cost_factors *factors, struct rls_hit_cost_state *thread,
		      const struct rls_queued_edge *edge);

/* How the hits of hit totals are charged. Each is NULL when it is not known. */
struct rls_charged {
	const struct rls_hit_cost_factors *factors;
	struct rls_hit_cost_state *thread;
	struct rls_hit_cost_state *
		source; /* whose operation the thread is in: its own, or that of the thread it helps */
};

/* The cost of the hits in hit totals, as far as there was time for it since the last charge. excess_ns: as
 * rls_hit_cost_model_cost(); category: what the thread was in until then. */
uint32_t rls_hit_cost(const struct rls_charged *charged, double excess_ns,
		      const struct rls_wire_hit_totals *hit_totals, enum rls_category category,
		      uint64_t time_ns);

/* A sample of the thread, in that category, cost it so much. */
void rls_hit_cost_sample(struct rls_hit_cost_state *thread, enum rls_category category,
			 uint32_t cost_ns);

#endif
