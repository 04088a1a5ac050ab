/* Walking a Python stack: frames of the thread that runs here and now, innermost first.
 *
 * The thread itself is interrupted, so its stack stands still; it may be in the midst of
 * entering or leaving a frame. All of it is the target's memory: every pointer is read with
 * bpf_probe_read_user, and the walk ends after RLS_WALK_FRAMES_MAX steps whatever it meets.
 */
#ifndef RLS_PYTHON_BPF_H
#define RLS_PYTHON_BPF_H

#include "bpf/shared/interpreter.bpf.h"
#include "bpf/shared/python_entry.bpf.h"

/* 3.14 keeps what kind of reference it is in a pointer's lowest bits. */
#define POINTER_BITS (~3ULL)

/* The thread's innermost frame; 0: none, and *end says why. */
static __always_inline __u64 innermost_frame(struct task_struct *task,
					     const struct rls_wire_interpreter *interpreter,
					     __u8 *end)
{
	__u64 thread_pointer = BPF_CORE_READ(task, thread.fsbase), state = 0, frame = 0;

	*end = RLS_STACK_NO_STATE;
	if (!thread_pointer || !read_word(thread_pointer + interpreter->slot, &state))
		return 0;
	state = state_in_use(interpreter, thread_pointer, state);
	if (!state)
		return 0;
	*end = RLS_STACK_FAULT;
	if (!read_word(state + interpreter->thread_frame, &frame))
		return 0;
	if (interpreter->c_frame_frame != RLS_STACK_NO_OFFSET) {
		__u64 c_frame = frame;

		if (!c_frame)
			return 0;
		*end = RLS_STACK_ENTERING;
		if (!is_filled_in(c_frame, interpreter))
			return 0;
		*end = RLS_STACK_FAULT;
		if (!read_word(c_frame + interpreter->c_frame_frame, &frame))
			return 0;
	}
	*end = RLS_STACK_WHOLE; /* without a frame: it runs no code of Python's now */
	return frame;
}

/* A global function: the verifier then looks at it once, not at each step of the walk. Weak, as are those below: several
 * programs walk. How many frames are filled
 * in: none for what is no frame of Python's own; -1: not all could be read. */
__weak __noinline int read_python_frame(__u64 frame, const struct rls_wire_interpreter *interpreter,
					struct rls_wire_frame *out)
{
	__u64 code = 0, instruction = 0, pointers[RLS_CODE_POINTERS] = {0};
	__u32 first_line = 0, more;

	if (!interpreter || !out)
		return -1;
	if (is_shim(frame, interpreter))
		return 0;
	more = interpreter->code_pointers_more & (RLS_CODE_POINTERS - 1);
	if (!read_word(frame + interpreter->frame_code, &code) ||
	    !read_word(frame + interpreter->frame_instruction, &instruction))
		return -1;
	code &= POINTER_BITS;
	if (bpf_probe_read_user(&first_line, sizeof(first_line),
				(void *)(code + interpreter->code_first_line)) ||
	    bpf_probe_read_user(pointers, (more + 1) * sizeof(pointers[0]),
				(void *)(code + interpreter->code_file)))
		return -1;
	out->code = code;
	out->identity = rls_code_identity(first_line, pointers);
	if (interpreter->index_unit_bytes)
		out->at = (__s32)instruction * interpreter->index_unit_bytes;
	else
		out->at = instruction - code - interpreter->code_start;
	return 1;
}

/* Fills in the stack's frames. How many there are is kept in the stack, in a map, where the
 * verifier does not follow it: it would try every number of frames at every step. */
static __always_inline void walk_python(struct task_struct *task,
					const struct rls_wire_interpreter *interpreter,
					struct rls_wire_stack *stack)
{
	__u64 frame = innermost_frame(task, interpreter, &stack->end);

	stack->frames = 0;
	for (int step = 0; step < RLS_WALK_FRAMES_MAX; step++) {
		int found;

		if (!frame)
			return;
		found = read_python_frame(frame, interpreter,
					  &stack->frame[stack->frames & (RLS_WALK_FRAMES_MAX - 1)]);
		if (found < 0)
			break;
		stack->frames += found;
		if (!read_word(frame + interpreter->frame_back, &frame))
			break;
		if (step == RLS_WALK_FRAMES_MAX - 1) {
			stack->end = RLS_STACK_TOO_DEEP;
			return;
		}
	}
	stack->end = RLS_STACK_FAULT;
}

#endif
