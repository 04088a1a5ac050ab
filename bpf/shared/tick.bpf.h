/* Ticks: the common clock of all samples. They come at most as often as the scheduler's own ticks.
 *
 *     the scheduler's tick, some at random ─┐
 *     else a timer a CPU ───────────────────┴─▶ category sample, stack sample (sample.bpf.c)
 *
 * An interrupt of our own costs a thread in a virtual machine up to a hundred microseconds. The
 * scheduler's tick comes anyway.
 */
#ifndef RLS_TICK_BPF_H
#define RLS_TICK_BPF_H

#include "bpf/shared/maps.bpf.h"

struct tick {
	__u64 at_ns; /* a CPU's last */
	__u64 ns; /* how long it was after the one before, where that is a period; else a period */
};

struct tick_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tick);
};

extern struct tick_map last_tick SEC(".maps");

struct tick_phases {
	__u64 begun[RLS_TICK_PHASES];
};

struct tick_phases_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tick_phases);
};

extern struct tick_phases_map tick_phases SEC(".maps");
extern volatile __u64 tick_apart_ns; /* 0: the timer is not taken */
extern volatile __u64 tick_period_ns; /* 0: the scheduler's ticks are not taken */
extern volatile __u64 phase_due_ns; /* no phase is noted before */

/* A thread that waited begins to run. Not each time: waits may come by the dozen within a
 * millisecond, as those for the lock that probes are put on under, which says nothing of the
 * next, be it on this CPU or on that of the thread it wakes: chance is reckoned by beginnings
 * that have nothing to do with each other. And who always waits would be met right after each
 * period, were it not at random after that. */
static __always_inline void note_phase(__u64 now_ns)
{
	__u64 period_ns = tick_period_ns;
	struct tick_phases *phases;
	__u32 key = 0;

	if (!period_ns || now_ns < phase_due_ns)
		return;
	phases = bpf_map_lookup_elem(&tick_phases, &key);
	if (!phases)
		return;
	phase_due_ns = now_ns + period_ns + bpf_get_prandom_u32() % period_ns;
	phases->begun[now_ns % period_ns * RLS_TICK_PHASES / period_ns & (RLS_TICK_PHASES - 1)]++;
}

/* What a tick has interrupted; of kernel mode where it will go on: behind the system call, fault
 * or trap that led there. */
struct interrupted {
	__u64 ip, sp, bp;
	bool user;
	bool trapped; /* in the kernel by a breakpoint or a step, or by an interrupt */
};

/* What x86 keeps where a system call has its number and a page fault its error. */
#define ENTERED_BY_TRAP (-1L)

static __always_inline struct interrupted interrupted_at(bool user)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct interrupted at = {regs->ip, regs->sp, regs->bp, user,
				 !user && (long)regs->orig_ax == ENTERED_BY_TRAP};

	return at;
}

static __always_inline struct interrupted interrupted_by_timer(struct bpf_perf_event_data *ctx)
{
	return interrupted_at(FROM_USER_MODE(&ctx->regs));
}

/* Interrupts of user mode are served on the thread's own kernel stack, which is empty then, all
 * others on the CPU's (x86's run_sysvec_on_irqstack_cond). The arguments that ctx points to are on
 * the stack in use. That it is so is tried before it is relied on (attach/kernel/kernel_sampling.c). */
static __always_inline bool on_own_stack(const void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const void *low = task->stack, *high = (const void *)bpf_task_pt_regs(task);

	asm volatile("" : "+r"(low)); /* or one difference is compared, not two addresses */
	if (ctx < low)
		return false;
	asm volatile("" : "+r"(high));
	return ctx < high;
}

static __always_inline struct interrupted interrupted_by_scheduler(const void *ctx)
{
	return interrupted_at(on_own_stack(ctx));
}

#define SCHEDULER_TICK "tp_btf/hrtimer_expire_entry"

#endif
