/* Drain: takes in the records that are still in the rings when recording has ended. */
#ifndef RLS_DRAIN_H
#define RLS_DRAIN_H

#include <stdint.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/gpu/gpu_activity.h"

/* The last of the rings, and what the bridges still hold of the recording: they can hand it
 * over for as long as they are armed, so it is waited for, a second at most. The number of
 * records of the last poll, or -errno. */
int rls_drain(struct rls_kernel *kernel, struct rls_gpu *gpu, uint64_t stop_ns);

#endif
