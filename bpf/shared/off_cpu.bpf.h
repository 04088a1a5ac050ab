/* How long a thread was off its CPU.
 *
 *     out ────── away ────── in                            told of both: in - out
 *     out ────── away ────── (in) ───── runs ────── next   of one: next - out - what it ran for
 *
 * Not every kernel tells of each switch: one made for virtual machines (6.18) leaves out up to one in ten of
 * those that end a CPU's idling. A thread would then be away until it is next seen to leave, or not at all.
 * So its own clock, which the scheduler keeps and which stands still while it is away, is held against ours.
 * While it runs that clock is some milliseconds behind: by so much its absence may be too long then.
 */
#ifndef RLS_OFF_CPU_BPF_H
#define RLS_OFF_CPU_BPF_H

#include "bpf/shared/maps.bpf.h"

static __always_inline void begin_absence(struct absence *absence, const struct task_struct *task,
					  __u64 now_ns)
{
	absence->since_ns = now_ns;
	absence->ran_ns = task->se.sum_exec_runtime;
}

/* How long it was, of the time up to now. 0: there was none. */
static __always_inline __u64 end_absence(struct absence *absence, const struct task_struct *task,
					 __u64 now_ns)
{
	__u64 since_ns = absence->since_ns, ran_ns = task->se.sum_exec_runtime - absence->ran_ns;
	__u64 passed_ns = since_ns && now_ns > since_ns ? now_ns - since_ns : 0;

	absence->since_ns = 0;
	return ran_ns < passed_ns ? passed_ns - ran_ns : 0;
}

#endif
