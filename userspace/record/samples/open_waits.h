/* Open waits: what threads wait for that waited already when their recording began. A job that
 * hangs does nothing else.
 *
 *     kernel: each thread that is off its CPU ─▶ all their stacks are walked ─▶ named ─▶ begun (stack samples)
 *                                                                              └─▶ in Python: announced
 *
 * The threads are not stopped. All stacks are walked before any is named, which may take long:
 * a wait that ended before its stack was walked keeps no Python frame. What a thread with Python
 * frames is in is inferred from the top of its stack; its life in the trace begins without a
 * hit. At most a second and a half is spent on it all. What is left out by then is reported.
 */
#ifndef RLS_OPEN_WAITS_H
#define RLS_OPEN_WAITS_H

#include <stdint.h>

#include "userspace/record/samples/stack_samples.h"

struct rls_open_waits {
	struct rls_kernel *kernel;
	struct rls_interpreters *interpreters;
	struct rls_code_map *code_map;
	struct rls_event_output *output;
	struct rls_samples *samples; /* NULL: not sampled; nothing is done */
};

/* Of the threads that the kernel side has met since the last call. 0, or -ENOMEM or what the output failed with. */
int rls_open_waits_read(const struct rls_open_waits *waits);

#endif
