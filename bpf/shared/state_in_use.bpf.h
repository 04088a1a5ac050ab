/* The state in which a thread runs Python, where it is not that of its slot.
 *
 * Before CPython 3.12 a thread's slot keeps the first state that the thread had, also while the thread runs a
 * subinterpreter. All interpreters share one GIL, and the runtime says which state holds it: that is the one of a
 * thread that runs Python. No state says which thread runs it: its thread_id is that of the thread that made it. So a
 * state is taken only if this thread's own stack shows it: 3.10 and 3.11 have an address of the C stack in each state;
 * before that the state's innermost frame is a word of the registers or of the top of the stack. Else the slot says:
 * its frames end where the subinterpreter was entered.
 */
#ifndef RLS_STATE_IN_USE_BPF_H
#define RLS_STATE_IN_USE_BPF_H

#include "bpf/shared/maps.bpf.h"
#include "bpf/wire/stack.h"

#define SEARCHED_STATES 32
#define SEARCHED_STACKS 8 /* each takes some microseconds */
#define SEARCHED_CHUNKS 128 /* of the top of a stack */
#define CHUNK_WORDS 16

static __always_inline bool read_word(__u64 address, __u64 *out)
{
	return !bpf_probe_read_user(out, sizeof(*out), (void *)address);
}

static __always_inline bool is_in_registers(__u64 value)
{
	const struct pt_regs *regs =
		(const struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	return regs->bx == value || regs->bp == value || regs->r12 == value || regs->r13 == value ||
	       regs->r14 == value || regs->r15 == value;
}

/* A global function, as those below: the verifier then looks at it once. */
__weak __noinline int is_on_top_of_stack(__u64 value, __u64 stack_pointer)
{
	__u64 words[CHUNK_WORDS];

	if (is_in_registers(value))
		return 1;
	for (int chunk = 0; chunk < SEARCHED_CHUNKS; chunk++) {
		if (bpf_probe_read_user(words, sizeof(words),
					(void *)(stack_pointer + chunk * sizeof(words))))
			return 0;
		for (int i = 0; i < CHUNK_WORDS; i++) {
			if (words[i] == value)
				return 1;
		}
	}
	return 0;
}

/* Where on its stack this thread runs Python in the state, the lower the later; 0: it does not. */
__weak __noinline __u64 place_on_stack(__u64 state, const struct rls_wire_interpreter *interpreter,
				       __u64 thread_pointer, __u64 stack_pointer)
{
	__u64 at = 0;

	if (!interpreter)
		return 0;
	if (!interpreter->thread_c_stack)
		return read_word(state + interpreter->thread_frame, &at) && at &&
				       is_on_top_of_stack(at, stack_pointer)
			       ? stack_pointer
			       : 0;
	if (!read_word(state + interpreter->thread_c_stack, &at) || at < stack_pointer)
		return 0;
	/* A thread's descriptor ends its stack; the first thread's is elsewhere, and nothing is above its stack. */
	return thread_pointer > stack_pointer && at >= thread_pointer ? 0 : at;
}

struct state_search {
	__u64 state, place; /* found; the lowest place */
	__u64 own; /* the interpreter of the slot's state, which has no other state of this thread */
	__u64 thread_pointer, stack_pointer;
	__u64 searched; /* no padding: what global functions take has no gaps */
};

__weak __noinline int consider_state(struct state_search *search, __u64 state,
				     const struct rls_wire_interpreter *interpreter)
{
	__u64 of = 0, place;

	if (!search || !interpreter || !state ||
	    !read_word(state + interpreter->thread_interpreter, &of) || of == search->own)
		return 0;
	if (!interpreter->thread_c_stack && search->searched++ >= SEARCHED_STACKS)
		return 0;
	place = place_on_stack(state, interpreter, search->thread_pointer, search->stack_pointer);
	if (!place || place >= search->place)
		return 0;
	search->state = state;
	search->place = place;
	return 1;
}

/* The states of other interpreters: those that hold the GIL, or did so last, then all. */
__weak __noinline __u64 state_of_others(const struct rls_wire_interpreter *interpreter, __u64 state,
					__u64 thread_pointer, __u64 stack_pointer)
{
	struct state_search search = {.state = state,
				      .place = ~0ULL,
				      .thread_pointer = thread_pointer,
				      .stack_pointer = stack_pointer};
	__u64 at = 0, thread = 0, place;

	if (!interpreter)
		return state;
	if (state) {
		read_word(state + interpreter->thread_interpreter, &search.own);
		place = interpreter->thread_c_stack
				? place_on_stack(state, interpreter, thread_pointer, stack_pointer)
				: 0;
		search.place = place ? place : ~0ULL;
	}
	for (int i = 0; i < 2; i++) {
		if (read_word(interpreter->holders[i], &thread))
			consider_state(&search, thread, interpreter);
	}
	if (!read_word(interpreter->interpreters, &at))
		return search.state;
	thread = 0;
	for (int step = 0; step < SEARCHED_STATES && (thread || at); step++) {
		if (thread) {
			consider_state(&search, thread, interpreter);
			if (!read_word(thread + interpreter->thread_next, &thread))
				thread = 0;
			continue;
		}
		if (at != search.own && !read_word(at + interpreter->interpreter_threads, &thread))
			thread = 0;
		if (!read_word(at + interpreter->interpreter_next, &at))
			at = 0;
	}
	return search.state;
}

/* Of the thread that runs here. 0: it has none. */
static __always_inline __u64 state_in_use(const struct rls_wire_interpreter *interpreter,
					  __u64 thread_pointer, __u64 state)
{
	__u64 ends[2] = {0}, holder = 0;

	if (!interpreter->interpreters ||
	    bpf_probe_read_user(ends, sizeof(ends), (void *)interpreter->interpreters) ||
	    ends[0] == ends[1])
		return state;
	if (state && read_word(interpreter->holders[0], &holder) && holder == state)
		return state;
	return state_of_others(
		interpreter, state, thread_pointer,
		((const struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()))->sp);
}

#endif
