/* CUPTI toggle: arms the targets' CUPTI bridges and disarms them, by turns at random instants, to measure
 * what CUPTI adds to their calls into CUDA (cupti_overhead.h). For `calibrate --pid`.
 *
 * A bridge reads its semaphore ten times a second, and CUPTI takes time to start and stop: a
 * period begins well after the switch. One thread.
 */
#ifndef RLS_CUPTI_TOGGLE_H
#define RLS_CUPTI_TOGGLE_H

#include <stdbool.h>
#include <stdint.h>

#include "userspace/record/gpu/cupti_overhead.h"

/* Who can switch the bridges. */
struct rls_cupti_switch {
	void *context;
	void (*arm)(void *context, bool armed);
	bool (*bridged)(void *context); /* is there a bridge that can be armed? */
};

/* Zeroed but for bridges: not begun. */
struct rls_cupti_toggle {
	struct rls_cupti_switch bridges;
	struct rls_cupti_overhead overhead;
	bool armed;
	uint64_t due_ns; /* the next switch; 0: not begun */
	uint64_t random;
};

void rls_cupti_toggle_clear(struct rls_cupti_toggle *toggle);

/* Switches when it is time to, once there is a bridge. */
void rls_cupti_toggle_tick(struct rls_cupti_toggle *toggle, uint64_t now_ns);
/* Has there been a bridge to switch? */
bool rls_cupti_toggle_begun(const struct rls_cupti_toggle *toggle);

/* A call into CUDA (cuda_calls.h); context: the toggle. 0 or -ENOMEM. */
int rls_cupti_toggle_call(void *context, rls_string_id name, uint64_t start_ns,
			  uint64_t duration_ns);

#endif
