/* How long a thread was off its CPU.
 *
 *     out ────── away ────── in                            both switches seen: in - out
 *     out ────── away ────── (in) ───── runs ────── next   only one seen: next - out - time it ran
 *
 * Not every kernel reports each switch. A kernel made for virtual machines (6.18) leaves out up to
 * one in ten of the switches that end a CPU's idling. The thread would then seem to be off its CPU
 * until it is next seen to leave. So our clock is compared with the thread's own clock, which the
 * scheduler keeps and which stands still while the thread is off its CPU. While the thread runs,
 * its clock lags by some milliseconds. The off-CPU period may be too long by that much.
 *
 * When the thread leaves again its own clock is exact. It also has the time that the switch to the
 * thread took in the kernel, before the kernel reported it. What the period was too long by is
 * subtracted from the next: a thread's time on the CPU is then what its own clock says.
 */
#ifndef RLS_OFF_CPU_BPF_H
#define RLS_OFF_CPU_BPF_H

#include "bpf/shared/maps.bpf.h"

static __always_inline void begin_away(struct away *away, const struct task_struct *task,
				       __u64 now_ns)
{
	away->since_ns = now_ns;
	away->ran_ns = task->se.sum_exec_runtime;
	away->left_ns = now_ns;
	away->away_ns = 0;
}

/* It leaves its CPU, and is not in begin_away() yet. */
static __always_inline void check_away(struct away *away, const struct task_struct *task,
				       __u64 now_ns)
{
	__u64 ran_ns = task->se.sum_exec_runtime - away->ran_ns;
	__u64 here_ns = now_ns - away->left_ns - away->away_ns; /* as we have it */

	if (away->left_ns < recording_since_ns) /* no sample was taken during a pause */
		away->excess_ns = 0;
	else if (away->excess_ns + ran_ns > here_ns)
		away->excess_ns += ran_ns - here_ns;
	else
		away->excess_ns = 0;
}

/* How long it was, of the time up to now. 0: there was none. */
static __always_inline __u64 end_away(struct away *away, const struct task_struct *task,
				      __u64 now_ns)
{
	__u64 since_ns = away->since_ns, ran_ns = task->se.sum_exec_runtime - away->ran_ns;
	__u64 passed_ns = since_ns && now_ns > since_ns ? now_ns - since_ns : 0;
	__u64 short_ns = ran_ns + away->excess_ns;

	away->since_ns = 0;
	away->away_ns = short_ns < passed_ns ? passed_ns - short_ns : 0;
	return away->away_ns;
}

#endif
