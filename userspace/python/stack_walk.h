/* Stack walk: the Python frames of a thread that waits, read from outside.
 *
 * As the kernel side walks the stack of the thread that runs (bpf/shared/python.bpf.h), by the
 * same offsets. The thread is not held: whoever asks finds out whether it ran meanwhile. All that
 * is read is hostile: each frame's code object must be one by its type, and the walk ends after
 * RLS_WALK_FRAMES_MAX frames, with or without code.
 */
#ifndef RLS_STACK_WALK_H
#define RLS_STACK_WALK_H

#include <stdint.h>

#include "bpf/wire/stack.h"
#include "userspace/process/space.h"

/* thread_pointer: what its thread-local variables are found by. stack->stack_pointer: the thread's, or 0: then a thread in
 * a subinterpreter may have the frames of the interpreter that it was entered from. Fills in frame, frames and end. */
void rls_stack_walk(const struct rls_space *space, const struct rls_wire_interpreter *interpreter,
		    uint64_t thread_pointer, struct rls_wire_stack *stack);

#endif
