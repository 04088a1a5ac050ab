/* The state in which a waiting thread is in Python, where it is not that of its slot: as bpf/shared/state_in_use.bpf.h
 * finds it for the thread that runs, but without its registers, and all states are looked at.
 */
#ifndef RLS_STATE_IN_USE_H
#define RLS_STATE_IN_USE_H

#include <stdint.h>

#include "bpf/wire/stack.h"
#include "userspace/process/space.h"

/* Of the thread with this thread pointer and stack pointer, whose slot has `state`. That is returned too where nothing
 * shows another, and with a stack pointer of 0. What is read is hostile: lists may be circles. */
uint64_t rls_state_in_use(const struct rls_space *space,
			  const struct rls_wire_interpreter *interpreter, uint64_t thread_pointer,
			  uint64_t stack_pointer, uint64_t state);

#endif
