/* Looks at traced threads, for when the probes are off: what does a thread execute?
 *
 *     tick, each CPU ───▶ the thread it interrupts ──────────────┐
 *     scheduler: off its CPU ─▶ (kept) ─▶ on again: for how long ─┴─▶ address, top of the stack
 *
 * User space tells what the thread is in, from whose code the address and the return addresses
 * on its stack are (record/guess.h). The running thread's operations and hits are handed over
 * too, as probes would do. Of waits one is told whenever the thread has waited a certain time in
 * all: each stands for that time, long waits more often than short ones.
 */
#include "bpf/absence.bpf.h"
#include "bpf/operation.bpf.h"
#include "bpf/tick.bpf.h"

#define WAITED_NS_A_LOOK 4000000ULL

struct pause {
	struct absence absence;
	bool asleep;            /* it waits for something else than a CPU */
	__u64 waited_ns;        /* not told of yet */
	__u64 ip;
	__u64 words[RLS_LOOK_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct pause);
} pauses SEC(".maps");

/* The thread's state, if its life in the trace has begun. */
static __always_inline struct thread_state *known_thread(struct task_struct *task)
{
	struct thread_state *thread;

	if (!recording_since_ns)
		return NULL;
	thread = bpf_task_storage_get(&threads, task, NULL, 0);
	/* Ours stays known from the calibration. */
	if (!thread || !thread->announced || !bpf_map_lookup_elem(&tracked, &thread->pid))
		return NULL;
	return thread;
}

static __always_inline struct rls_wire_look *begin_look(struct thread_state *thread)
{
	struct rls_wire_look *look = control_reserve(struct rls_wire_look, RLS_WIRE_LOOK,
						     thread->pid, thread->tid, bpf_ktime_get_ns());

	if (!look)
		return NULL;
	__builtin_memset(&look->pile, 0, sizeof(look->pile));
	look->waited_ns = 0;
	look->operation = look->phase = 0;
	look->category = 0;
	__builtin_memset(look->reserved, 0, sizeof(look->reserved));
	if (booking)
		book_look(thread, look);
	return look;
}

static __always_inline void send_look(struct thread_state *thread, struct interrupted at, __u8 flags)
{
	struct rls_wire_look *look;

	if (!thread)
		return;
	if (at.user) /* none of our programs is under way on it */
		sync_operations(thread);
	look = begin_look(thread);
	if (!look)
		return;
	if (at.user && booking)
		book_hits(thread, look->header.time_ns);
	else if (at.user)
		take_pile(thread, &look->pile);
	look->header.flags = flags | (at.user ? 0 : RLS_SAMPLE_KERNEL) |
			     (at.trapped ? RLS_LOOK_TRAPPED : 0);
	look->ip = at.ip;
	if (bpf_probe_read_user(look->words, sizeof(look->words), (void *)at.sp))
		__builtin_memset(look->words, 0, sizeof(look->words));
	bpf_ringbuf_submit(look, BPF_RB_NO_WAKEUP);
}

SEC("perf_event")
int on_look(struct bpf_perf_event_data *ctx)
{
	send_look(known_thread(bpf_get_current_task_btf()), interrupted_by_timer(ctx), 0);
	HAND_ON(ctx, RLS_TICK_STACK);
	return 0;
}

/* Beside those, while a window is open: what is seen is held against the truth, and shares nothing out. */
SEC("perf_event")
int on_close_look(struct bpf_perf_event_data *ctx)
{
	struct thread_state *thread = known_thread(bpf_get_current_task_btf());

	if (!thread || window_edges & 1)
		return 0;
	thread->pile.cost_ns += close_look_cost_ns;
	send_look(thread, interrupted_by_timer(ctx), RLS_LOOK_CLOSE);
	return 0;
}

SEC(SCHEDULER_TICK)
int on_scheduler_look(void *ctx)
{
	send_look(known_thread(bpf_get_current_task_btf()), interrupted_by_scheduler(ctx), 0);
	HAND_ON_OF_SCHEDULER(ctx, RLS_TICK_STACK);
	return 0;
}

static __always_inline struct pause *find_pause(struct task_struct *task)
{
	return bpf_task_storage_get(&pauses, task, NULL, 0);
}

/* pause: the task's, NULL if it has had none. */
static __always_inline void begin_pause(struct pause *pause, struct task_struct *task, bool asleep,
					__u64 now_ns)
{
	struct pt_regs *regs;

	if (!known_thread(task))
		return;
	if (!pause)
		pause = bpf_task_storage_get(&pauses, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!pause)
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	begin_absence(&pause->absence, task, now_ns);
	pause->asleep = asleep;
	pause->ip = regs->ip;
	if (bpf_probe_read_user(pause->words, sizeof(pause->words), (void *)regs->sp))
		__builtin_memset(pause->words, 0, sizeof(pause->words));
}

static __always_inline void end_pause(struct pause *pause, struct task_struct *task, __u64 now_ns)
{
	struct thread_state *thread;
	struct rls_wire_look *look;

	if (!pause || !pause->absence.since_ns)
		return;
	if (pause->asleep)
		note_phase(now_ns);
	pause->waited_ns += end_absence(&pause->absence, task, now_ns);
	if (pause->waited_ns < WAITED_NS_A_LOOK)
		return;
	thread = known_thread(task);
	look = thread ? begin_look(thread) : NULL;
	if (!look)
		return;
	look->header.flags = RLS_SAMPLE_KERNEL;
	look->ip = pause->ip;
	look->waited_ns = pause->waited_ns;
	__builtin_memcpy(look->words, pause->words, sizeof(look->words));
	pause->waited_ns = 0;
	bpf_ringbuf_submit(look, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_pause, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct pause *pause;
	__u64 now_ns;

	if (!recording_since_ns)
		return 0;
	now_ns = bpf_ktime_get_ns();
	pause = find_pause(prev);
	end_pause(pause, prev, now_ns); /* whose return was not told of */
	end_pause(find_pause(next), next, now_ns);
	if (prev->mm) /* not a kernel thread, and not on its way out */
		begin_pause(pause, prev, !preempt && BPF_CORE_READ(prev, __state), now_ns);
	return 0;
}
