/* Interpreters: where in a thread's memory Python keeps what it runs.
 *
 *     thread pointer ─slot─▶ thread's state ─▶ (C frame ─▶) innermost frame, 0 for none
 */
#ifndef RLS_INTERPRETER_BPF_H
#define RLS_INTERPRETER_BPF_H

#include "bpf/shared/maps.bpf.h"
#include "bpf/shared/state_in_use.bpf.h"
#include "bpf/wire/stack.h"

struct interpreters_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct rls_wire_interpreter);
};

struct images_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RLS_IMAGES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct rls_wire_image);
	__type(value, struct rls_wire_interpreter);
};

extern struct interpreters_map interpreters SEC(".maps");
extern struct images_map images SEC(".maps");

/* Whether the thread that runs here may be in Python when it is in nothing that is probed. An engine's own thread
 * (autograd's) is not, though it frees Python's objects and is called back by libraries that nobody knows: it
 * has no Python frame. */
SUBPROGRAM bool may_be_in_python(__u32 pid)
{
	struct rls_wire_interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &pid);
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 thread_pointer = BPF_CORE_READ(task, thread.fsbase), state = 0, frame = 0;

	if (!interpreter || !read_word(thread_pointer + interpreter->slot, &state))
		return true;
	state = state_in_use(interpreter, thread_pointer, state);
	/* Of an image the slot is another process's, and is looked up anew. */
	if (!state)
		return !interpreter->code_type;
	if (!read_word(state + interpreter->thread_frame, &frame))
		return true;
	/* A C frame that is not filled in yet leads anywhere: that is Python being entered. */
	if (frame && interpreter->c_frame_frame != RLS_STACK_NO_OFFSET &&
	    !read_word(frame + interpreter->c_frame_frame, &frame))
		return true;
	return frame != 0;
}

#endif
