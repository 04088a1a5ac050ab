/* Category samples: what a thread executes, or has waited in. They cover time that no probe
 * reports: between windows, and all the time of threads that meet no probe.
 *
 *     tick, each CPU ───▶ the thread it interrupts ──────────────┐
 *     scheduler: off its CPU ─▶ (kept) ─▶ on again: for how long ─┴─▶ address, top of the stack
 *
 * User space infers the category from the address and from the return addresses on the stack
 * (record/samples/infer_category.h). A sample also sends the running thread's operations, and its
 * hits where these come in windows, as a probe would. A wait is sent whenever the thread has waited a fixed time in all. Each wait
 * that is sent stands for that time, so long waits are sent more often than short ones.
 */
#ifndef RLS_CATEGORY_SAMPLE_BPF_H
#define RLS_CATEGORY_SAMPLE_BPF_H

#include "bpf/operation.bpf.h"
#include "bpf/shared/tick.bpf.h"

#define WAITED_NS_A_SAMPLE 4000000ULL

/* The verifier leaves out what is not. */
static __always_inline bool category_samples_taken(void)
{
	return windows || stacks_sampled;
}

/* Where a thread has left its CPU. */
struct pause {
	__u64 waited_ns; /* not sent yet */
	__u64 ip;
	__u32 frame_pointer; /* as in the record */
	__u8 flags;
	__u64 words[RLS_SAMPLE_WORDS];
};

struct pauses_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct pause);
};

extern struct pauses_map pauses SEC(".maps");

/* Whether the thread's life in the trace has begun. Ours stays known from the calibration. */
static __always_inline bool is_traced(const struct thread_state *thread)
{
	return thread->announced && bpf_map_lookup_elem(&tracked, &thread->pid);
}

static __always_inline struct rls_wire_category_sample *
begin_category_sample(struct thread_state *thread)
{
	struct rls_wire_category_sample *sample =
		control_reserve(struct rls_wire_category_sample, RLS_WIRE_CATEGORY_SAMPLE,
				thread->pid, thread->tid, bpf_ktime_get_ns());

	if (!sample)
		return NULL;
	__builtin_memset(&sample->hit_totals, 0, sizeof(sample->hit_totals));
	sample->waited_ns = 0;
	sample->operation = sample->phase = 0;
	sample->category = 0;
	sample->frame_pointer = 0;
	__builtin_memset(sample->reserved, 0, sizeof(sample->reserved));
	if (totals_mode)
		totals_sample(thread, sample);
	return sample;
}

static __always_inline __u32 frame_pointer_above(__u64 bp, __u64 sp)
{
	return bp > sp && bp - sp < RLS_SAMPLE_WORDS * sizeof(__u64) ? bp - sp : 0;
}

/* Of a thread that is_traced. */
static __always_inline void send_category_sample(struct thread_state *thread, struct interrupted at,
						 __u8 flags)
{
	struct rls_wire_category_sample *sample;

	if (at.user) /* none of our programs is under way on it */
		sync_operations(thread);
	sample = begin_category_sample(thread);
	if (!sample)
		return;
	if (at.user && totals_mode)
		totals_hits(thread, sample->header.time_ns);
	else if (at.user && (windows || !thread->category))
		take_hit_totals(thread, &sample->hit_totals);
	sample->header.flags =
		flags | (at.user ? 0 : RLS_SAMPLE_KERNEL) | (at.trapped ? RLS_SAMPLE_TRAPPED : 0);
	if (!totals_mode && !may_be_in_python(thread->pid))
		sample->header.flags |= RLS_SAMPLE_NO_PYTHON;
	sample->ip = at.ip;
	sample->frame_pointer = frame_pointer_above(at.bp, at.sp);
	if (bpf_probe_read_user(sample->words, sizeof(sample->words), (void *)at.sp))
		__builtin_memset(sample->words, 0, sizeof(sample->words));
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
}

/* The thread leaves its CPU. The wait is sent once it has been long enough. False: there is no
 * room. */
static __always_inline bool keep_pause(struct task_struct *task, __u32 pid,
				       const struct pt_regs *regs)
{
	struct pause *pause =
		bpf_task_storage_get(&pauses, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!pause)
		return false;
	pause->ip = regs->ip;
	pause->frame_pointer = frame_pointer_above(regs->bp, regs->sp);
	pause->flags = RLS_SAMPLE_KERNEL;
	if (!may_be_in_python(pid))
		pause->flags |= RLS_SAMPLE_NO_PYTHON;
	if (bpf_probe_read_user(pause->words, sizeof(pause->words), (void *)regs->sp))
		__builtin_memset(pause->words, 0, sizeof(pause->words));
	return true;
}

/* It was away so long. */
static __always_inline void send_pause(struct thread_state *thread, struct task_struct *task,
				       __u64 away_ns)
{
	struct pause *pause = bpf_task_storage_get(&pauses, task, NULL, 0);
	struct rls_wire_category_sample *sample;

	if (!pause)
		return;
	pause->waited_ns += away_ns;
	if (pause->waited_ns < WAITED_NS_A_SAMPLE || !is_traced(thread))
		return;
	sample = begin_category_sample(thread);
	if (!sample)
		return;
	sample->header.flags = pause->flags;
	sample->ip = pause->ip;
	sample->frame_pointer = pause->frame_pointer;
	sample->waited_ns = pause->waited_ns;
	__builtin_memcpy(sample->words, pause->words, sizeof(sample->words));
	pause->waited_ns = 0;
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
}

#endif
