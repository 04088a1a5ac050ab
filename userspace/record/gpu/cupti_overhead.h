/* CUPTI overhead: what CUPTI, while it is armed, adds to each call into CUDA. Pure.
 *
 *     bridge   ▁▁▁▁▁▁▔▔▔▔▔▔▔▁▁▁▁▁▁▁▔▔▔▔▔▔   armed and disarmed by turns
 *     calls     ││ │  │ │ │   ││ │   │ │    by name: the mean of the quicker half in each period
 *
 * The difference of averages (RL-Scope, MLSys 2021, appendix C.2) within one run. Some calls make CUPTI
 * record, some do not, and CUPTI cannot be switched on for one of them alone. Two neighbouring periods are
 * one sample: what the machine does during one of them counts once, and what it does for longer affects both.
 * What slows calls down now and then, other programs or the GPU, is in the slower half. On simulated calls of 10 us to which
 * 3 us are added, 15 % of them in bursts, five pairs find the 3 us to within half of it in 75 of 100 runs; the mean of all
 * calls does so in 5.
 */
#ifndef RLS_CUPTI_OVERHEAD_H
#define RLS_CUPTI_OVERHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/event/event.h"

struct rls_cupti_calls;

/* Zeroed: no call seen. */
struct rls_cupti_overhead {
	struct rls_cupti_calls *calls; /* by name, in the order of their first call */
	size_t count, room;
	uint64_t from_ns; /* of the current period; 0: none */
	bool armed;
	uint64_t random;
};

struct rls_cupti_cost {
	rls_string_id name;
	double ns; /* what a call takes longer while CUPTI is armed */
	double error_ns; /* half width of its 95 % interval */
	double plain_ns; /* mean of the quicker half while disarmed, the probes' own cost included */
	uint64_t calls; /* seen, armed or not */
};

void rls_cupti_overhead_clear(struct rls_cupti_overhead *overhead);

/* From that instant on the bridge is armed, or disarmed, and CUPTI has followed. */
void rls_cupti_overhead_begin(struct rls_cupti_overhead *overhead, uint64_t from_ns, bool armed);
/* It is about to change. Calls that are added later do not count. */
void rls_cupti_overhead_end(struct rls_cupti_overhead *overhead);

/* A call and its duration. 0 or -ENOMEM. */
int rls_cupti_overhead_add(struct rls_cupti_overhead *overhead, rls_string_id name,
			   uint64_t start_ns, uint64_t duration_ns);

/* Of the names that were called in enough pairs of periods, those whose cost is known, the
 * most called first. Returns how many, max at most. */
size_t rls_cupti_overhead_conclude(const struct rls_cupti_overhead *overhead,
				   struct rls_cupti_cost *out, size_t max);

#endif
