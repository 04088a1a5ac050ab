/* Stack samples: where in the Python program a tracked thread runs, and where it begins to wait.
 *
 * A wait is sampled at its beginning, because only there can the thread's memory be read. Of a
 * thread that waits very often, one wait of `every` is sampled, at random: walking each stack
 * would cost more than the waits are worth.
 */
#ifndef RLS_STACK_BPF_H
#define RLS_STACK_BPF_H

#include "bpf/shared/control.bpf.h"
#include "bpf/shared/python.bpf.h"
#include "bpf/shared/tick.bpf.h"
#include "bpf/wait.bpf.h"
#include "bpf/wire/tick_weight.h"

/* Waits of one thread that are walked in one window: waits_per_window of those for a CPU, and so many of all others. On a
 * busy CPU a single wait of either kind may be longer than all the others together: what is left out is missing in its
 * line. */
#define WINDOW_NS 100000000ULL

/* One for the timer, one for the scheduler and one for user space's iterator: each may come
 * while another is being filled in. */
struct stacks_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, struct rls_wire_stack);
};
enum { STACK_OF_TIMER, STACK_OF_SWITCH, STACK_OF_ITERATOR };

extern struct stacks_map stacks SEC(".maps");
extern struct ring_map samples SEC(".maps");

static __always_inline struct rls_wire_stack *begin_stack_of(__u32 which, __u32 pid, __u32 tid,
							     __u8 flags, __u64 now_ns)
{
	struct rls_wire_stack *stack = bpf_map_lookup_elem(&stacks, &which);

	if (!stack)
		return NULL;
	fill_header(&stack->header, sizeof(*stack), RLS_WIRE_STACK, pid, tid, now_ns);
	stack->header.flags = flags;
	stack->category = 0;
	stack->syscall = -1;
	stack->every = 1;
	stack->argument = 0;
	stack->thread_pointer = stack->stack_pointer = 0;
	return stack;
}

static __always_inline struct rls_wire_stack *
begin_stack(__u32 which, const struct thread_state *thread, __u8 flags, __u64 now_ns)
{
	struct rls_wire_stack *stack =
		begin_stack_of(which, thread->pid, thread->tid, flags, now_ns);

	if (stack)
		stack->category = thread->category;
	return stack;
}

static __always_inline bool send_stack_record(struct rls_wire_stack *stack,
					      struct task_struct *task)
{
	struct rls_wire_interpreter *interpreter =
		bpf_map_lookup_elem(&interpreters, &stack->header.pid);
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

static __always_inline __u64 tick_stands_for(struct thread_state *thread, struct task_struct *task,
					     const struct tick *tick)
{
	__u64 period_ns = tick->ns < RLS_TICK_NS_MAX ? tick->ns : RLS_TICK_NS_MAX;
	__u64 ran_ns = task->se.sum_exec_runtime - thread->wait.ticked_ran_ns;

	thread->wait.ticked_ran_ns += ran_ns;
	return rls_tick_weight(&thread->wait.owed_ns, ran_ns, period_ns);
}

static __always_inline void send_running(struct thread_state *thread, struct task_struct *task,
					 struct interrupted at, const struct tick *tick)
{
	struct rls_wire_stack *stack = begin_stack(
		STACK_OF_TIMER, thread, at.user ? 0 : RLS_SAMPLE_KERNEL, bpf_ktime_get_ns());

	if (!stack)
		return;
	stack->ip = at.ip;
	stack->argument = tick_stands_for(thread, task, tick);
	send_stack_record(stack, task);
}

/* Whether this wait is sampled; *every: of how many it is one. */
static __always_inline bool choose_wait(struct frequency *frequency,
					__u32 per_window, /* at least 1 */
					__u64 now_ns, __u32 *every)
{
	if (now_ns - frequency->window_ns >= WINDOW_NS) {
		/* What the window before it would have needed; a longer one was sparse. */
		frequency->every = now_ns - frequency->window_ns < 2 * WINDOW_NS
					   ? frequency->waits / per_window + 1
					   : 1;
		frequency->window_ns = now_ns;
		frequency->waits = 0;
	}
	frequency->waits++;
	*every = frequency->every ? frequency->every : 1;
	return *every == 1 || bpf_get_prandom_u32() % *every == 0;
}

#define STOPPED_STATES 0xc /* __TASK_STOPPED, __TASK_TRACED */

static __always_inline __u8 wait_flags(const struct task_struct *task, bool asleep)
{
	return RLS_STACK_WAITS | (asleep ? 0 : RLS_STACK_PREEMPTED) |
	       (asleep && task->__state & STOPPED_STATES ? RLS_STACK_STOPPED : 0);
}

static __always_inline void fill_wait(struct rls_wire_stack *stack, struct task_struct *task,
				      const struct pt_regs *regs)
{
	stack->ip = regs->ip;
	stack->syscall = regs->orig_ax;
	stack->argument = (__u32)regs->di;
	stack->thread_pointer = BPF_CORE_READ(task, thread.fsbase);
	stack->stack_pointer = regs->sp;
}

/* True: the beginning of the wait was sent, so its end must be sent too. */
static __always_inline bool send_wait(struct thread_state *thread, struct task_struct *task,
				      const struct pt_regs *regs, bool asleep, __u64 now_ns)
{
	struct rls_wire_stack *stack;
	__u32 every;

	if (!choose_wait(asleep ? &thread->wait.blocked : &thread->wait.preempted,
			 waits_per_window + 1, now_ns, &every))
		return false;
	stack = begin_stack(STACK_OF_SWITCH, thread, wait_flags(task, asleep), now_ns);
	if (!stack)
		return false;
	fill_wait(stack, task, regs);
	stack->every = every;
	return send_stack_record(stack, task);
}

/* A wait that has begun before: its beginning, without frames, into what user space reads of the
 * iterator. False: there is no room now; the iterator comes back to the task. */
static __always_inline bool write_open_wait(struct seq_file *to, struct task_struct *task,
					    __u32 pid, bool asleep)
{
	struct rls_wire_stack *stack = begin_stack_of(STACK_OF_ITERATOR, pid, task_number(task),
						      wait_flags(task, asleep), states_since_ns);

	if (!stack)
		return true;
	stack->header.size = RLS_STACK_HEAD_BYTES;
	stack->end = RLS_STACK_ELSEWHERE;
	stack->frames = 0;
	fill_wait(stack, task, (const struct pt_regs *)bpf_task_pt_regs(task));
	return !bpf_seq_write(to, stack, RLS_STACK_HEAD_BYTES);
}

#endif
