/* Where C enters Python, in interpreters that keep a C frame for each entry (3.11, 3.12).
 *
 *     thread's state ─▶ C frame ────────back────────▶ C frame
 *                          │frame                        │frame
 *                          ▼                             ▼
 *                       frame ─back─▶ … entry frame ─back─▶ frame ─back─▶ …
 *
 * The interpreter names its new C frame in the thread's state before it fills it in: for some
 * instructions both of its pointers are what another call left on the stack, and so is what
 * they lead to. A walk therefore holds what its first entry frame goes on with against what
 * the C frame before says. Where these differ it tells of no frame rather than of others: in
 * one of some hundred samples of a program that does nothing but call Python from C.
 */
#ifndef RLS_PYTHON_ENTRY_BPF_H
#define RLS_PYTHON_ENTRY_BPF_H

#include "bpf/shared/interpreter.bpf.h"

#define OBJECT_TYPE 8 /* where every object has its type */

/* Entries from C have a frame of their own, without code. */
static __always_inline bool is_shim(__u64 frame, const struct rls_wire_interpreter *interpreter)
{
	__u8 owner = 0;

	return interpreter->frame_owner != RLS_STACK_NO_OFFSET &&
	       !bpf_probe_read_user(&owner, sizeof(owner),
				    (void *)(frame + interpreter->frame_owner)) &&
	       owner >= interpreter->owner_of_shims;
}

/* Whether a frame is the one by which C entered. */
__weak __noinline int is_entry(__u64 frame, const struct rls_wire_interpreter *interpreter)
{
	__u8 flag = 0;

	if (!interpreter)
		return 0;
	if (!interpreter->frame_is_entry)
		return is_shim(frame, interpreter);
	return !bpf_probe_read_user(&flag, sizeof(flag),
				    (void *)(frame + interpreter->frame_is_entry)) &&
	       flag;
}

/* Whether a frame is of a code object, or needs none. */
static __always_inline bool has_code(__u64 frame, const struct rls_wire_interpreter *interpreter)
{
	__u64 code = 0, type = 0;

	return is_shim(frame, interpreter) || !interpreter->code_type ||
	       (read_word(frame + interpreter->frame_code, &code) &&
		read_word(code + OBJECT_TYPE, &type) && type == interpreter->code_type);
}

/* Whether a C frame has been filled in; one whose entry is deeper than is walked has. A global
 * function: the verifier then looks at it once. */
__weak __noinline int is_filled_in(__u64 c_frame, const struct rls_wire_interpreter *interpreter)
{
	__u64 frame = 0, back = 0, caller = 0;
	bool entered = false;

	if (!interpreter || !read_word(c_frame + interpreter->c_frame_frame, &frame) ||
	    !read_word(c_frame + interpreter->c_frame_back, &back))
		return 0;
	if (!back) /* the first one, which nobody entered by */
		return !frame;
	if (!read_word(back + interpreter->c_frame_frame, &caller) || !frame ||
	    !has_code(frame, interpreter))
		return 0;
	for (int step = 0; step < RLS_WALK_FRAMES_MAX; step++) {
		if (entered)
			return frame == caller;
		if (!frame)
			return 0;
		entered = is_entry(frame, interpreter);
		if (!read_word(frame + interpreter->frame_back, &frame))
			return 0;
	}
	return 1;
}

#endif
