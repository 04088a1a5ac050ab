/* A task's own clock. In a time namespace CLOCK_MONOTONIC is shifted, and what a target stamps itself is on that clock;
 * bpf_ktime_get_ns() and the trace are on the host's. */
#ifndef RLS_CLOCK_BPF_H
#define RLS_CLOCK_BPF_H

#include "bpf/shared/maps.bpf.h"

/* How far the task's clock is ahead of the host's. Of its own namespace, which is not always that of its children. */
static __always_inline __s64 clock_ahead_ns(struct task_struct *task)
{
	struct timespec64 ahead = {0};

	if (!bpf_core_field_exists(task->nsproxy->time_ns))
		return 0;
	BPF_CORE_READ_INTO(&ahead, task, nsproxy, time_ns, offsets.monotonic);
	return ahead.tv_sec * 1000000000LL + ahead.tv_nsec;
}

#endif
