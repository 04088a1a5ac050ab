/* Samples with stacks: where in the Python program each tracked thread runs, and where it
 * waits.
 *
 *     tick, each CPU ───▶ the thread it interrupts ──┐
 *     the scheduler takes a thread off its CPU ──────┴─▶ Python stack ─▶ samples ring
 *     it puts that thread on again ────────────────────▶ how long it was off
 *
 * Waits are told of where they begin, because only there is the thread's memory at hand. A
 * thread that waits very often is told of at random, one wait of `every`: walking would cost
 * it more than the waits are worth.
 */
#include "bpf/absence.bpf.h"
#include "bpf/emit.bpf.h"
#include "bpf/pids.bpf.h"
#include "bpf/python.bpf.h"
#include "bpf/tick.bpf.h"

/* Waits of one thread that are walked in one window: waits_per_window. Those for a CPU are many where threads
 * crowd, and short; they must not crowd out the others, of which a single one may be long. */
#define PREEMPTIONS_A_WAIT 8
#define WINDOW_NS 100000000ULL

/* How often a thread has waited of late, in one of the two ways. */
struct frequency {
	__u64 window_ns;            /* when the window began */
	__u32 waits;                /* in it, so far */
	__u32 every;                /* one of so many is told, by the window before */
};

struct waiting {
	struct frequency blocked, preempted;
	struct absence absence;     /* the wait that was told of */
	bool asleep;                /* which is for something else than a CPU */
	__u64 ticked_ran_ns;        /* what the thread had run for at its last tick, or when first seen here */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct waiting);
} waits SEC(".maps");

struct ring_map samples SEC(".maps");

/* One for the timer and one for the scheduler: the timer may come while a switch is being
 * walked. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct rls_wire_stack);
} stacks SEC(".maps");
enum { STACK_OF_TIMER, STACK_OF_SWITCH };

static __always_inline struct rls_wire_stack *begin_stack(__u32 which, struct task_struct *task,
							  __u32 pid, __u8 flags, __u64 now_ns)
{
	struct rls_wire_stack *stack = bpf_map_lookup_elem(&stacks, &which);
	struct thread_state *thread = bpf_task_storage_get(&threads, task, NULL, 0);

	if (!stack)
		return NULL;
	fill_header(&stack->header, sizeof(*stack), RLS_WIRE_STACK, pid, task_number(task), now_ns);
	stack->header.flags = flags | (thread ? RLS_SAMPLE_TRACED : 0);
	stack->category = thread ? thread->category : 0;
	stack->syscall = -1;
	stack->every = 1;
	stack->argument = 0;
	return stack;
}

static __always_inline bool send_stack(struct rls_wire_stack *stack, struct task_struct *task,
				       __u32 pid)
{
	struct rls_wire_interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &pid);
	__u32 bytes;

	stack->end = RLS_STACK_NO_INTERPRETER;
	stack->frames = 0;
	if (interpreter)
		walk_python(task, interpreter, stack);
	bytes = RLS_STACK_HEAD_BYTES + stack->frames * sizeof(struct rls_wire_frame);
	asm volatile("" : "+r"(bytes)); /* or clang drops the check that the verifier needs */
	if (bytes > sizeof(*stack))
		bytes = sizeof(*stack);
	stack->header.size = bytes;
	if (!bpf_ringbuf_output(&samples, stack, bytes, BPF_RB_NO_WAKEUP))
		return true;
	count_drop(RLS_DROP_SAMPLES);
	return false;
}

static __always_inline struct waiting *find_waiting(struct task_struct *task)
{
	return bpf_task_storage_get(&waits, task, NULL, 0);
}

/* waiting: the task's, NULL if it has none yet. */
static __always_inline struct waiting *have_waiting(struct waiting *waiting, struct task_struct *task)
{
	if (!waiting)
		waiting = bpf_task_storage_get(&waits, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (waiting && !waiting->ticked_ran_ns)
		waiting->ticked_ran_ns = task->se.sum_exec_runtime;
	return waiting;
}

/* What a tick stands for: the time since the CPU's last one. Where none came while the CPU was idle (it is so in
 * some virtual machines, and where the kernel holds ticks back), that includes time in which nothing ran. Then
 * it is what the thread itself has run for since its own last: all in all, what it ran for. */
static __always_inline __u64 tick_stands_for(struct task_struct *task, const struct tick *tick)
{
	struct waiting *waiting = have_waiting(NULL, task);
	__u64 ran_ns, ns = tick->ns < RLS_TICK_NS_MAX ? tick->ns : RLS_TICK_NS_MAX;

	if (!waiting)
		return ns;
	ran_ns = task->se.sum_exec_runtime - waiting->ticked_ran_ns;
	waiting->ticked_ran_ns += ran_ns;
	return tick_apart_ns && tick->ns > tick_apart_ns && ran_ns < ns ? ran_ns : ns;
}

static __always_inline void send_running(struct interrupted at)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 pid = process_number(task), key = 0;
	const struct tick *tick = bpf_map_lookup_elem(&last_tick, &key);
	struct rls_wire_stack *stack;

	if (!tick || !recording_since_ns || !bpf_map_lookup_elem(&tracked, &pid))
		return;
	stack = begin_stack(STACK_OF_TIMER, task, pid, at.user ? 0 : RLS_SAMPLE_KERNEL,
			    bpf_ktime_get_ns());
	if (!stack)
		return;
	stack->ip = at.ip;
	stack->argument = tick_stands_for(task, tick);
	send_stack(stack, task, pid);
}

SEC("perf_event")
int on_timer(struct bpf_perf_event_data *ctx)
{
	send_running(interrupted_by_timer(ctx));
	return 0;
}

SEC(SCHEDULER_TICK)
int on_scheduler_stack(void *ctx)
{
	send_running(interrupted_by_scheduler(ctx));
	return 0;
}

/* Whether this wait is one of those told of; *every: of how many. */
static __always_inline bool choose_wait(struct frequency *frequency, __u32 per_window, /* at least 1 */
					__u64 now_ns, __u32 *every)
{
	if (now_ns - frequency->window_ns >= WINDOW_NS) {
		/* What the window before it would have needed; a longer one was sparse. */
		frequency->every = now_ns - frequency->window_ns < 2 * WINDOW_NS ?
					   frequency->waits / per_window + 1 : 1;
		frequency->window_ns = now_ns;
		frequency->waits = 0;
	}
	frequency->waits++;
	*every = frequency->every ? frequency->every : 1;
	return *every == 1 || bpf_get_prandom_u32() % *every == 0;
}

static __always_inline void begin_wait(struct waiting *waiting, struct task_struct *task,
				       bool preempted, __u64 now_ns)
{
	__u32 pid = process_number(task), every;
	struct rls_wire_stack *stack;
	struct pt_regs *regs;

	if (!bpf_map_lookup_elem(&tracked, &pid))
		return;
	waiting = have_waiting(waiting, task);
	if (!waiting)
		return;
	if (preempted ? !choose_wait(&waiting->preempted, waits_per_window / PREEMPTIONS_A_WAIT + 1, now_ns, &every) :
			!choose_wait(&waiting->blocked, waits_per_window + 1, now_ns, &every))
		return;
	stack = begin_stack(STACK_OF_SWITCH, task, pid,
			    RLS_STACK_WAITS | (preempted ? RLS_STACK_PREEMPTED : 0), now_ns);
	if (!stack)
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	stack->ip = regs->ip;
	stack->syscall = regs->orig_ax;
	stack->argument = (__u32)regs->di;
	stack->every = every;
	if (send_stack(stack, task, pid)) {
		begin_absence(&waiting->absence, task, now_ns);
		waiting->asleep = !preempted;
	}
}

SUBPROGRAM void end_wait(struct waiting *waiting, struct task_struct *task, __u64 now_ns)
{
	struct rls_wire_waited *record;
	__u64 since_ns;

	if (!waiting || !waiting->absence.since_ns)
		return;
	since_ns = waiting->absence.since_ns;
	now_ns = since_ns + end_absence(&waiting->absence, task, now_ns);
	if (waiting->asleep)
		note_phase(now_ns);
	record = bpf_ringbuf_reserve(&samples, sizeof(*record), 0);
	if (record) {
		fill_header(&record->header, sizeof(*record), RLS_WIRE_WAITED,
			    process_number(task), task_number(task), now_ns);
		record->since_ns = since_ns;
		bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	} else {
		count_drop(RLS_DROP_SAMPLES);
	}
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_wait, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct waiting *waiting;
	__u64 now_ns;

	if (!recording_since_ns)
		return 0;
	now_ns = bpf_ktime_get_ns();
	waiting = find_waiting(prev);
	end_wait(waiting, prev, now_ns); /* whose return was not told of */
	end_wait(find_waiting(next), next, now_ns);
	if (prev->mm) /* not a kernel thread, and not on its way out */
		begin_wait(waiting, prev, preempt || !BPF_CORE_READ(prev, __state), now_ns);
	return 0;
}

/* ---- interpreters ---- */

/* A child begins with all of its parent's memory, the interpreter included. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_interpreter_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = process_number(parent), child_pid;
	struct rls_wire_interpreter *interpreter;
	struct rls_wire_process *process;

	if (parent->tgid == child->tgid)
		return 0;
	process = bpf_map_lookup_elem(&tracked, &parent_pid);
	interpreter = bpf_map_lookup_elem(&interpreters, &parent_pid);
	if (!process || !(process->flags & RLS_PROCESS_FOLLOW) || !interpreter)
		return 0;
	child_pid = process_number(child);
	bpf_map_update_elem(&interpreters, &child_pid, interpreter, BPF_ANY);
	return 0;
}

/* Another program is none that is known, and the end of one frees its number. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_interpreter_exec, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	__u32 pid = process_number(task);

	bpf_map_delete_elem(&interpreters, &pid);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_interpreter_exit, struct task_struct *task)
{
	__u32 pid = process_number(task);

	end_wait(find_waiting(task), task, bpf_ktime_get_ns()); /* it runs, though that was not told of */
	if (!BPF_CORE_READ(task, signal, live.counter))
		bpf_map_delete_elem(&interpreters, &pid);
	return 0;
}
