/* The sampler: what threads do, at ticks and where they leave their CPUs.
 *
 *     tick ──────────▶ the thread it interrupts ─┬─▶ category sample ─▶ control ring
 *     sched_switch ──▶ the thread that leaves ───┴─▶ stack ──────────▶ samples ring
 *         └──────────▶ the thread that comes ──────▶ how long it was away
 *
 * One program for each, for all that samples: whose thread it is is looked up once. Threads that wait when
 * recording starts are met by an iterator that user space runs.
 */
#include "bpf/category_sample.bpf.h"
#include "bpf/operation.bpf.h"
#include "bpf/shared/pids.bpf.h"
#include "bpf/shared/tick.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/wait.bpf.h"

struct tick_map last_tick SEC(".maps");
struct tick_phases_map tick_phases SEC(".maps");
struct pauses_map pauses SEC(".maps");
struct stacks_map stacks SEC(".maps");
struct ring_map samples SEC(".maps");
/* Numbers of threads. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} to_announce SEC(".maps");

/* Of the scheduler's ticks so many in 2^32 are taken. Each tick, of either sort, is for so much time. */
volatile __u32 tick_share;
volatile __u64 tick_stands_ns;
volatile __u64 tick_period_ns;
volatile __u64 phase_due_ns;
/* Of the timer, whose period varies: what is longer than this between two ticks is no period of it. */
volatile __u64 tick_apart_ns;
/* While tick_share is 0: do these tick as we think? Those of this thread, in kernel and user mode. */
volatile __u32 tick_trier;
volatile __u64 ticks_tried[2];

/* What the scheduler's timer calls: it was renamed in 6.9. */
extern const void tick_nohz_handler __ksym __weak;
extern const void tick_sched_timer __ksym __weak;

/* ---- ticks ---- */

/* The thread that runs here, if its process is tracked. */
static __always_inline struct thread_state *tracked_thread(struct task_struct *task)
{
	struct thread_state *thread = bpf_task_storage_get(&threads, task, NULL, 0);
	__u32 pid;

	if (thread)
		return bpf_map_lookup_elem(&tracked, &thread->pid) ? thread : NULL;
	if (totals_mode)
		return NULL;
	pid = process_number(task);
	return bpf_map_lookup_elem(&tracked, &pid) ? begin_thread(task, pid, task_number(task))
						   : NULL;
}

/* It has no Python frame any more, so what it is in has another name, which samples tell. None of our programs is under
 * way on it. */
static __always_inline void leave_python(struct thread_state *thread)
{
	if (thread->base != PYTHON || thread->depth || thread->category != PYTHON ||
	    may_be_in_python(thread->pid))
		return;
	thread->base = 0;
	emit_category(thread, 0, 0);
}

static __always_inline void sample(struct interrupted at, const struct tick *tick)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *thread = tracked_thread(task);

	if (!thread)
		return;
	if (!totals_mode)
		update_thread(thread, task);
	if (!totals_mode && at.user)
		leave_python(thread);
	if (category_samples_taken() && category_samples_wanted && thread->announced)
		send_category_sample(thread, at, 0);
	if (stacks_sampled && stacks_wanted)
		send_running(thread, task, at, tick);
}

SEC("perf_event")
int on_tick(struct bpf_perf_event_data *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 key = 0;
	struct tick *tick = bpf_map_lookup_elem(&last_tick, &key);

	if (!tick)
		return 0;
	tick->ns = now_ns - tick->at_ns;
	if (tick->ns > tick_apart_ns)
		tick->ns = tick_stands_ns;
	tick->at_ns = now_ns;
	if (!recording_since_ns)
		return 0;
	sample(interrupted_by_timer(ctx), tick);
	return 0;
}

/* Beside those, while a window is open: what is seen is held against the truth, and shares nothing out. */
SEC("perf_event")
int on_close_sample(struct bpf_perf_event_data *ctx)
{
	struct thread_state *thread =
		bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);

	if (!recording_since_ns || window_edges & 1 || !thread || !thread->category ||
	    !is_traced(thread))
		return 0;
	thread->hit_totals.cost_ns += close_sample_cost_ns;
	send_category_sample(thread, interrupted_by_timer(ctx), RLS_SAMPLE_CLOSE);
	return 0;
}

SEC(SCHEDULER_TICK)
int BPF_PROG(on_scheduler_tick, struct hrtimer *timer)
{
	__u64 function = 0;
	struct tick *tick;
	__u32 key = 0;

	if (bpf_core_field_exists(timer->function))
		function = (__u64)BPF_CORE_READ(timer, function);
	if (!function ||
	    (function != (__u64)&tick_nohz_handler && function != (__u64)&tick_sched_timer))
		return 0;
	if (!tick_share) {
		if (task_number(bpf_get_current_task_btf()) == tick_trier)
			ticks_tried[on_own_stack(ctx)]++;
		return 0;
	}
	if (!recording_since_ns || bpf_get_prandom_u32() >= tick_share)
		return 0;
	tick = bpf_map_lookup_elem(&last_tick, &key);
	if (!tick)
		return 0;
	tick->ns = tick_stands_ns;
	tick->at_ns = bpf_ktime_get_ns();
	sample(interrupted_by_scheduler(ctx), tick);
	return 0;
}

/* ---- switches ---- */

static __always_inline void return_late(struct thread_state *thread, const struct task_struct *task,
					__u64 now_ns)
{
	__u64 out_ns = thread->away.since_ns, away_ns = add_off_cpu(thread, task, now_ns);

	if (totals_mode)
		totals_return(thread, out_ns + away_ns, 0);
}

/* What is to be sent of the time off the CPU that begins. */
static __always_inline void begin_wait(struct thread_state *thread, struct task_struct *task,
				       bool asleep, __u64 now_ns)
{
	bool samples = category_samples_taken() && category_samples_wanted,
	     stacks = stacks_sampled && stacks_wanted;
	const struct pt_regs *regs;
	__u8 open = asleep ? WAIT_ASLEEP : 0;

	if (!bpf_map_lookup_elem(&tracked, &thread->pid))
		return;
	update_thread(thread, task);
	if (!samples && !stacks)
		return;
	regs = (const struct pt_regs *)bpf_task_pt_regs(task);
	if (samples && thread->announced && keep_pause(task, thread->pid, regs))
		open |= WAIT_KEPT;
	if (stacks_sampled && stacks && send_wait(thread, task, regs, asleep, now_ns))
		open |= WAIT_REPORTED;
	thread->wait.since_ns = now_ns;
	thread->wait.open = open;
}

static __always_inline void leave_cpu(struct thread_state *thread, struct task_struct *task,
				      bool asleep, __u64 now_ns)
{
	if (returned_unseen(thread))
		return_late(thread, task, now_ns);
	if (!totals_mode)
		end_wait(thread, task);
	check_away(&thread->away, task, now_ns);
	begin_away(&thread->away, task, now_ns);
	/* On a thread that is only kept from running one of our programs may be under way. */
	if (totals_mode && asleep) {
		sync_operations(thread);
		totals_leave(thread, now_ns);
	}
	/* It may meet no probe for long, and others inherit what it is in. */
	if (!totals_mode && task->mm)
		read_annotations(thread, task, asleep);
	if (!totals_mode && task->mm) /* not a kernel thread, and not on its way out */
		begin_wait(thread, task, asleep, now_ns);
}

static __always_inline void return_to_cpu(struct thread_state *thread, struct task_struct *task,
					  __u64 now_ns)
{
	__u64 away_ns;

	/* No sample was taken during a pause. */
	if (thread->away.since_ns && thread->away.since_ns < recording_since_ns)
		begin_away(&thread->away, task, recording_since_ns);
	away_ns = add_off_cpu(thread, task, now_ns);
	if (totals_mode)
		totals_return(thread, now_ns, away_ns);
	else
		end_wait(thread, task);
}

/* One instant for both: the kernel counts what the switch takes, this program too, as the next thread's. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct thread_state *thread;
	__u64 now_ns = 0;

	if (!recording_since_ns)
		return 0;
	thread = bpf_task_storage_get(&threads, prev, NULL, 0);
	if (thread) {
		now_ns = bpf_ktime_get_ns();
		leave_cpu(thread, prev, !preempt && prev->__state, now_ns);
	}
	thread = bpf_task_storage_get(&threads, next, NULL, 0);
	if (thread)
		return_to_cpu(thread, next, now_ns ? now_ns : bpf_ktime_get_ns());
	return 0;
}

/* ---- threads that were there before ---- */

/* Run by user space when recording starts, and when a process is met later: the threads there are, most of which sleep, and may
 * for long before they meet a probe. */
SEC("iter/task")
int first_states(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_state *thread;
	bool away, asleep, waits;
	__u32 pid;

	if (!task || !recording_since_ns)
		return 0;
	pid = process_number(task);
	if (!bpf_map_lookup_elem(&tracked, &pid) || bpf_task_storage_get(&threads, task, NULL, 0))
		return 0;
	away = !BPF_CORE_READ(task, on_cpu);
	asleep = task->__state != 0;
	waits = stacks_sampled && away && stacks_wanted && task->mm;
	/* First of all: the iterator comes back to a task for which it has no room now. */
	if (stacks_sampled && waits && !write_open_wait(ctx->meta->seq, task, pid, asleep))
		return 0;
	thread = begin_thread(task, pid, task_number(task));
	if (!thread || !away || thread->away.since_ns) /* it has left its CPU just now */
		return 0;
	begin_away(&thread->away, task, states_since_ns);
	if (waits) {
		thread->wait.since_ns = states_since_ns;
		thread->wait.open = WAIT_REPORTED | (asleep ? WAIT_ASLEEP : 0);
	}
	return 0;
}

/* Run by user space when it has read the stacks of those: they are in Python, so their lives in the trace begin. */
SEC("iter/task")
int announce_waiting(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_state *thread;

	if (!task || !recording_since_ns)
		return 0;
	thread = bpf_task_storage_get(&threads, task, NULL, 0);
	if (thread && !thread->announced && bpf_map_lookup_elem(&to_announce, &thread->tid))
		announce(thread, task);
	return 0;
}
