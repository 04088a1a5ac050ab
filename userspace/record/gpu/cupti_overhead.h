/* CUPTI delta: what CUPTI, while it is armed, adds to each call into CUDA. Pure.
 *
 *     bridge   ▁▁▁▁▁▁▔▔▔▔▔▔▔▁▁▁▁▁▁▁▔▔▔▔▔▔   armed and not, turn about
 *     calls     ││ │  │ │ │   ││ │   │ │    by name: the mean of the quicker half in each stretch
 *
 * The difference of averages (RL-Scope, MLSys 2021, appendix C.2) within one run: some calls
 * keep CUPTI's books, some do not, and none can be switched on by itself. Two neighbouring stretches are one
 * sample, so that what the machine does in one of them does not pass for many, nor what it does for longer for CUPTI's doing.
 * What slows calls down now and then, others' bursts or the GPU, is in the slower half: on made-up calls of 10 us to which 3 are
 * added, 15 % of them amid bursts, five pairs tell the 3 to within half of it in 75 of 100 runs, by the mean of all calls in 5.
 */
#ifndef RLS_CUPTI_OVERHEAD_H
#define RLS_CUPTI_OVERHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/event/event.h"

struct rls_cupti_calls;

/* Zeroed: nothing seen. */
struct rls_cupti_delta {
	struct rls_cupti_calls *calls;  /* by name, in the order of their first call */
	size_t count, room;
	uint64_t from_ns;               /* of the stretch under way; 0: none */
	bool armed;
	uint64_t random;
};

struct rls_cupti_cost {
	rls_string_id name;
	double ns;              /* what a call takes longer while CUPTI is armed */
	double error_ns;        /* half width of its 95 % interval */
	double plain_ns;        /* what the quicker half take otherwise, the probes' own cost included */
	uint64_t calls;         /* seen, armed or not */
};

void rls_cupti_delta_clear(struct rls_cupti_delta *delta);

/* From that instant on the bridge is armed, or is not, and is at rest in that. */
void rls_cupti_delta_begin(struct rls_cupti_delta *delta, uint64_t from_ns, bool armed);
/* It is about to change. Calls that end later are nobody's. */
void rls_cupti_delta_end(struct rls_cupti_delta *delta);

/* A call that began then and took so long. 0 or -ENOMEM. */
int rls_cupti_delta_add(struct rls_cupti_delta *delta, rls_string_id name, uint64_t start_ns,
			uint64_t duration_ns);

/* Of the names that were called in enough pairs of stretches, those whose cost is known, the
 * most called first. Returns how many, max at most. */
size_t rls_cupti_delta_conclude(const struct rls_cupti_delta *delta, struct rls_cupti_cost *out,
				size_t max);

#endif
