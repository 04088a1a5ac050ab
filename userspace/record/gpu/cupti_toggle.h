/* Rearm: arms the targets' CUPTI bridges and disarms them, turn about at random instants, to see
 * what CUPTI costs their calls into CUDA (cupti_delta.h). For `calibrate --pid`.
 *
 * A bridge looks at its semaphore ten times a second, and CUPTI takes its time to come and go: a
 * stretch begins well after that. One thread.
 */
#ifndef RLS_CUPTI_TOGGLE_H
#define RLS_CUPTI_TOGGLE_H

#include <stdint.h>

#include "userspace/record/gpu/cupti_overhead.h"
#include "userspace/record/probes/libraries.h"

/* Zeroed but for libraries: not begun. */
struct rls_rearm {
	struct rls_libraries *libraries;        /* borrowed */
	struct rls_cupti_delta delta;
	bool armed;
	uint64_t due_ns;        /* the next turn; 0: not begun */
	uint64_t random;
};

void rls_rearm_clear(struct rls_rearm *rearm);

/* Turns when it is time to, and some bridge is there. */
void rls_rearm_tick(struct rls_rearm *rearm, uint64_t now_ns);

/* A call into CUDA (cuda_calls.h); context: the rearm. 0 or -ENOMEM. */
int rls_rearm_call(void *context, rls_string_id name, uint64_t start_ns, uint64_t duration_ns);

#endif
