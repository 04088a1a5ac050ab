/* Density: what a hit costs amid the code that a thread is in now. Pure.
 *
 * Amid hot code a hit finds the kernel's code and data in the caches and drives out little that is
 * missed; the more a thread does of its own between two hits, the more of both. Of loops of a few
 * functions and of training jobs alike, hits were seen to cost
 *
 *     hot + (cold - hot) * own / (own + 0.9 us)       own: the thread's own time from hit to hit
 *
 * within some 10 %. The calibration's figure is what that is in a training
 * loop in the mean. own is what lies between the thread's hits, some tens of them, less what they
 * cost; as the one depends on the other, both are solved for together.
 */
#ifndef RLS_HIT_COST_MODEL_H
#define RLS_HIT_COST_MODEL_H

#include <stdint.h>

#include "bpf/wire/record.h"

/* Of one thread. Zeroed: nothing is known of it yet. */
struct rls_hit_cost_model {
	uint64_t since_ns; /* the last pile */
	double hits; /* that the means are of, a limited number */
	double ran_ns; /* mean from hit to hit, off-CPU time left out */
	double cost_ns; /* mean of a hit, by the calibration */
};

/* What a pile's hits cost, told at time_ns; excess_ns: how much more the calibration says of a hit
 * than it costs hot, 0 when that is not known. */
double rls_hit_cost_model_cost(struct rls_hit_cost_model *density, double excess_ns,
			       uint64_t time_ns, const struct rls_wire_hit_totals *pile);

#endif
