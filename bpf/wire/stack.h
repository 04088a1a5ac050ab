/* Kernel → recorder: samples with Python stacks, on a ring buffer of their own (`samples`).
 * Records begin with record.h's header. Compiled by clang -target bpf and by gcc.
 */
#ifndef RLS_WIRE_STACK_H
#define RLS_WIRE_STACK_H

#include "bpf/wire/record.h"

/* Kinds, of enum rls_wire_kind's numbers. */
#define RLS_WIRE_STACK 24 /* what a thread executes, or where it begins to wait */
#define RLS_WIRE_WAITED 25 /* a wait whose beginning was sent is over */

/* A thread's Python stack, innermost frame first, at an instant: found running by the timer
 * (flags RLS_SAMPLE_*), or (flag RLS_STACK_WAITS) when it stopped running. Only as
 * many frames as `frames` says are sent. */
#define RLS_WALK_FRAMES_MAX 256
struct rls_wire_frame {
	RLS_U64 code; /* address of the code object */
	RLS_U32 at; /* (int32) byte offset of the instruction */
	RLS_U32 identity; /* of the code object: tells one from its successors there */
};
struct rls_wire_stack {
	struct rls_wire_header header;
	RLS_U64 ip; /* in user mode, or where it was left for the kernel */
	RLS_U8 category; /* the thread's state */
	RLS_U8 end; /* enum rls_stack_end */
	RLS_U16 frames;
	RLS_U32 syscall; /* waits: (int32) the system call it is in, -1 for none */
	RLS_U32 every; /* waits: one of so many is sent, at random */
	RLS_U32 argument; /* waits: low half of that call's first argument; else ns that it
				     * stands for, twice RLS_TICK_NS_MAX at most */
	RLS_U64 thread_pointer, stack_pointer; /* waits: in user mode */
	struct rls_wire_frame frame[RLS_WALK_FRAMES_MAX];
};
#define RLS_STACK_HEAD_BYTES 64 /* up to frame */
/* More flags of its header. */
#define RLS_STACK_WAITS 4
#define RLS_STACK_PREEMPTED 8 /* it could have gone on: it waits for a CPU */
#define RLS_STACK_STOPPED 16 /* by a signal or a debugger */

/* Why a walk ended where it did. */
enum rls_stack_end {
	RLS_STACK_WHOLE = 0,
	RLS_STACK_NO_INTERPRETER = 1, /* the process runs no Python that is known */
	RLS_STACK_NO_STATE = 2, /* the thread does not run Python */
	RLS_STACK_FAULT = 3, /* memory that cannot be read now */
	RLS_STACK_TOO_DEEP = 4, /* the outer frames are missing */
	RLS_STACK_ENTERING = 5, /* C enters Python: its frames are not linked yet */
	RLS_STACK_ELSEWHERE = 6, /* of a thread that waited already: its frames are in its memory */
	RLS_STACK_END_MAX = 7,
};

struct rls_wire_waited {
	struct rls_wire_header header; /* time: when it runs again */
	RLS_U64 since_ns;
};

/* interpreters: thread group id → how to walk its Python stacks (python/python_frames.h). */
#define RLS_STACK_NO_OFFSET 0xffff
struct rls_wire_interpreter {
	RLS_U32 slot; /* thread pointer → address of the thread's state */
	RLS_U16 thread_frame, c_frame_frame;
	RLS_U16 frame_back, frame_code, frame_instruction, frame_owner;
	RLS_U16 code_start, code_first_line;
	RLS_U16 code_file; /* and what follows: names and line table */
	RLS_U8 owner_of_shims;
	RLS_U8 index_unit_bytes;
	RLS_U8 code_pointers_more; /* after the first, code_file */
	RLS_U8 c_frame_back;
	RLS_U8 frame_is_entry; /* 0: entry frames are the shims */
	/* With the addresses below, where the state is that a thread runs in (bpf/shared/state_in_use.bpf.h). */
	RLS_U8 interpreter_next, interpreter_threads, thread_next, thread_interpreter;
	RLS_U8 thread_c_stack; /* where a state has an address of its thread's C stack; 0: nowhere */
	RLS_U64 code_type; /* what code objects point to as their type; 0: unknown */
	RLS_U64 interpreters; /* where the first of the list is, the main one behind it; 0: the slot says */
	RLS_U64 holders[2]; /* where the state is that holds the GIL, and that did so last */
};

/* images: what is executed → as above, but for these addresses: for a process as soon as it executes it. */
#define RLS_IMAGES_MAX 256
struct rls_wire_image {
	RLS_U64 inode;
	RLS_U32 device; /* as the kernel has it: major << 20 | minor */
	RLS_U32 reserved;
};

/* A code object's identity: of its first line and of its pointers to its file, its names and
 * its line table. One that takes the place of another, as where code is made by exec all the
 * time, may well be called the same and begin in the same line; hardly ever all of this. */
#define RLS_CODE_POINTERS 4 /* before 3.11 three: the last is 0 */
static inline RLS_U32 rls_code_identity(RLS_U32 first_line, const RLS_U64 *pointers)
{
	RLS_U64 mixed = first_line;

	for (int i = 0; i < RLS_CODE_POINTERS; i++)
		mixed = (mixed ^ pointers[i]) * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */
	return (RLS_U32)(mixed >> 32); /* the half that all bits reach */
}

#ifndef __VMLINUX_H__
_Static_assert(offsetof(struct rls_wire_stack, frame) == RLS_STACK_HEAD_BYTES, "stack");
_Static_assert(sizeof(struct rls_wire_stack) == RLS_STACK_HEAD_BYTES + 16 * RLS_WALK_FRAMES_MAX,
	       "stack");
_Static_assert(sizeof(struct rls_wire_waited) == 32, "waited");
_Static_assert(sizeof(struct rls_wire_interpreter) == 64, "interpreter");
_Static_assert(sizeof(struct rls_wire_image) == 16, "image");
#endif

#endif
