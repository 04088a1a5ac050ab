/* Hit cost model: what a hit costs amid the code that a thread runs now. Pure.
 *
 * Amid hot code the kernel's code and data for a hit are in the caches, and the hit evicts little
 * that is needed again. The more a thread does of its own between two hits, the more is missing
 * and evicted. Measured hits, of loops of a few functions and of training jobs alike, cost within
 * some 10 %
 *
 *     hot + (cold - hot) * own / (own + 0.9 us)       own: the thread's own time from hit to hit
 *
 * The calibration's figure is the mean of that in a training loop. own is the time between the
 * thread's last hits, some tens of them, without the cost of those hits. Each depends on the
 * other, so both are solved for together.
 */
#ifndef RLS_HIT_COST_MODEL_H
#define RLS_HIT_COST_MODEL_H

#include <stdint.h>

#include "bpf/wire/record.h"

/* Of one thread. Zeroed: nothing is known of it yet. */
struct rls_hit_cost_model {
	uint64_t since_ns; /* the last hit totals */
	double hits; /* that the means are of, a limited number */
	double ran_ns; /* mean from hit to hit, off-CPU time left out */
	double cost_ns; /* mean of a hit, by the calibration */
};

/* The cost of the hits in hit totals that came at time_ns; excess_ns: how much more the
 * calibration says of a hit than it costs hot, 0 when that is not known. */
double rls_hit_cost_model_cost(struct rls_hit_cost_model *model, double excess_ns, uint64_t time_ns,
			       const struct rls_wire_hit_totals *hit_totals);

#endif
