/* Records: what the kernel side sends to the recorder, in its ring buffers.
 *
 * `transitions` carries what the boundary probes see (struct rls_wire_category), in a ring of our
 * own (bpf/wire/maps.h). `control` carries processes, threads, operations and losses. No record of
 * `control` is left out by sampling, and transitions cannot take its room. `gpu` carries the
 * batches of the targets' CUPTI bridges (struct rls_wire_gpu_batch).
 *
 * Every record begins with the same header. Sizes and offsets are asserted; numbers are
 * append-only.
 */
#ifndef RLS_WIRE_RECORD_H
#define RLS_WIRE_RECORD_H

#include "bpf/wire/types.h"

#define RLS_WIRE_COMM_BYTES 16
#define RLS_WIRE_NAME_BYTES 128

enum rls_wire_kind {
	RLS_WIRE_CATEGORY = 1,
	RLS_WIRE_THREAD = 2, /* a thread was first seen to run */
	RLS_WIRE_FORK = 3, /* a tracked process made a child process */
	RLS_WIRE_EXEC = 4,
	RLS_WIRE_THREAD_EXIT = 5,
	RLS_WIRE_NAME = 6, /* text of an operation's name, before its first edge */
	RLS_WIRE_EDGE = 7, /* an edge from a thread's annotation ring */
	RLS_WIRE_RANGE_PUSH = 8, /* a range of someone else's API (NVTX, record_function) */
	RLS_WIRE_RANGE_POP = 9,
	RLS_WIRE_LOSS = 10, /* transitions lost on this thread */
	RLS_WIRE_FINAL = 11, /* a thread's state when recording stops */
	RLS_WIRE_RENAME = 12, /* a task's new comm */
	/* 13: no longer sent */
	RLS_WIRE_GPU_BATCH = 14, /* as a CUPTI bridge gave it */
	RLS_WIRE_EDGES =
		15, /* some edges in a row: they leave userspace/attach as so many RLS_WIRE_EDGE */
	RLS_WIRE_CATEGORY_SAMPLE = 20, /* what a thread executes, or has waited in, and its stack */
	/* 24, 25: wire/stack.h */
	RLS_WIRE_NAME_CHANGE =
		26, /* in totals_mode, of a process with a CUPTI bridge: its operations */
	/* 27: was an off-CPU period as well */
	RLS_WIRE_OFF_CPU = 28, /* a thread was off its CPU */
	RLS_WIRE_LAYER = 29, /* a call of a layer begins or ends (wire/layer.h) */
	RLS_WIRE_LAYER_OBJECT = 30, /* a layer is called for the first time (the same) */
};

struct rls_wire_header {
	RLS_U16 size; /* of the whole record */
	RLS_U8 kind;
	RLS_U8 flags;
	RLS_U32 pid; /* thread group, in user space's pid namespace; tid too */
	RLS_U32 tid;
	RLS_U32 sequence; /* per thread, over the transitions ring; wraps */
	RLS_U64 time_ns; /* CLOCK_MONOTONIC */
};

/* A thread's hits and off-CPU time since its previous record with one of these. */
struct rls_wire_hit_totals {
	RLS_U32 hits; /* probe hits, the one that emits included */
	RLS_U32 cost_ns; /* what they cost by the calibration in the cookies */
	RLS_U64 off_cpu_ns; /* not running */
	RLS_U64 sent_ns; /* of that, what rls_wire_off_cpu has reported by itself */
};

struct rls_wire_category {
	struct rls_wire_header header;
	struct rls_wire_hit_totals hit_totals;
	RLS_U8 category; /* after the event */
	RLS_U8 from; /* before it */
	RLS_U16 depth; /* frames on the thread's stack of categories */
	RLS_U32 site;
};

struct rls_wire_thread {
	struct rls_wire_header header; /* time: when the thread's life began */
	RLS_U32 ns_tid;
	RLS_U32 category; /* since then: its parent's where the fork's record was lost; else 0 */
	char comm[RLS_WIRE_COMM_BYTES];
};

struct rls_wire_fork {
	struct rls_wire_header header; /* pid, tid: the parent's */
	RLS_U32 child_pid;
	RLS_U32 child_ns_pid;
	RLS_U8 category; /* what the child's only thread is in: its parent's state */
	RLS_U8 reserved[7];
	char comm[RLS_WIRE_COMM_BYTES];
};

struct rls_wire_exec {
	struct rls_wire_header header; /* tid: the caller's until then; now it is pid */
	char comm[RLS_WIRE_COMM_BYTES];
};

struct rls_wire_exit {
	struct rls_wire_header header;
	struct rls_wire_hit_totals hit_totals;
	RLS_U8 process_over; /* it was the last thread of its process */
	RLS_U8 traced; /* the thread had been announced */
	RLS_U8 out_of_memory; /* the kernel chose the process to die for that */
	RLS_U8 reserved[5];
};

struct rls_wire_name {
	struct rls_wire_header header;
	RLS_U64 address; /* of the name in the process's memory */
	RLS_U32 length;
	RLS_U32 id; /* in cells: of this name in this process; else 0 */
	char text[RLS_WIRE_NAME_BYTES];
};

/* Flag of its header: it stands for all names that the library had no room for. */
#define RLS_WIRE_NAME_OTHERS 1

struct rls_wire_edge {
	struct rls_wire_header header; /* time: the edge's own */
	RLS_U64 name; /* address, as in rls_wire_name; 0 for none */
	RLS_U16 edge; /* enum rls_edge_kind, or RLS_WIRE_EDGE_STACK */
	RLS_U16 depth;
	RLS_U32 flags; /* enum rls_edge_flag */
};
/* Part of a whole stack, sent when a thread's record is first seen or edges were missed:
 * depth is the entry's place from 1; the last one has flag RLS_WIRE_STACK_END. An empty
 * stack is one record of depth 0 with that flag. */
#define RLS_WIRE_EDGE_STACK 100
#define RLS_WIRE_STACK_END 1

/* The oldest first, as the annotation library left them (struct rls_edge). A flush has many: they cost a fifth of
 * what they cost one by one. */
#define RLS_EDGES_SENT 8
struct rls_wire_edges {
	struct rls_wire_header header; /* time: the first one's */
	struct {
		RLS_U64 time_ns;
		RLS_U64 name;
		RLS_U16 edge;
		RLS_U16 depth;
		RLS_U32 flags;
	} edges[RLS_EDGES_SENT];
};

struct rls_wire_range {
	struct rls_wire_header header;
	RLS_U64 token; /* pairs a push with its pop; 0: innermost */
	RLS_U32 length; /* of text, may be cut */
	RLS_U32 reserved;
	char text[RLS_WIRE_NAME_BYTES];
};
/* Flag of its header: others before it were lost, so what is open is not known. */
#define RLS_WIRE_RANGE_AFTER_LOSS 1

/* What a thread's time is added to from a moment on, so that its launches are found in it. */
struct rls_wire_name_change {
	struct rls_wire_header
		header; /* time: since then; 0: since before. tid 0: the process's phase */
	RLS_U32 name; /* id of the operation, of the phase; 0: none */
	RLS_U32 source; /* 1: threads that have no operation of their own have this one */
};

/* Shorter periods are not sent by themselves, but with the one that makes them so much together; unless the
 * recorder asks for each by itself, as `calibrate --pid` does. */
#define RLS_OFF_CPU_SENT_NS 50000U
struct rls_wire_off_cpu {
	struct rls_wire_header header; /* time: when it came back */
	RLS_U64 away_ns; /* until then */
	RLS_U64 before_ns; /* and so much before, since the last such record or hit totals */
};

struct rls_wire_loss {
	struct rls_wire_header header; /* time: when the thread's next event got through */
	RLS_U64 since_ns; /* when the first one was lost */
	RLS_U32 lost;
	RLS_U32 reserved;
};

struct rls_wire_final {
	struct rls_wire_header header;
	struct rls_wire_hit_totals hit_totals;
	RLS_U64 record; /* the thread's annotation record, 0 for none */
	RLS_U64 edges_seen;
	RLS_U32 overflowed_frames; /* entries beyond RLS_FRAMES_MAX */
	RLS_U32 reserved;
	RLS_S64 clock_ahead_ns; /* the thread's own clock, of ours */
};

#define RLS_SAMPLE_WORDS 128
struct rls_wire_category_sample {
	struct rls_wire_header header;
	struct rls_wire_hit_totals hit_totals; /* empty unless it was found in user mode */
	RLS_U64 ip; /* in user mode, or where it was left for the kernel */
	RLS_U64 waited_ns; /* 0: it is running; else it stands for so much waiting */
	RLS_U32 operation, phase; /* ids of names, in totals_mode; 0: none */
	RLS_U8 category; /* the same: what its time is added to, RLS_TOTALS_CLOSED too */
	RLS_U8 reserved[3];
	RLS_U32 frame_pointer; /* how far it is above the stack pointer; 0: not within words */
	RLS_U64 words[RLS_SAMPLE_WORDS]; /* the top of its stack; zero where that is not there */
};
#define RLS_TICK_PHASES 16 /* parts of the time between two ticks (attach/tick_phases.h) */
#define RLS_TICK_NS_MAX 100000000U /* no tick stands for more */

/* Flags of their headers. */
#define RLS_SAMPLE_KERNEL 1 /* the thread is in the kernel */
#define RLS_SAMPLE_TRAPPED 4 /* a trap took it into the kernel: it is served as a probe's hit */
#define RLS_SAMPLE_CLOSE                                                                           \
	8 /* of the timer that ticks in windows: its cost is in the thread's hit totals */

#define RLS_SAMPLE_NO_PYTHON 16 /* the thread has no Python frame */

/* `bytes` bytes of what a target calls a batch (cupti_bridge/batch.h) follow, unchecked, and
 * then rubbish up to header.size: records of a few sizes only can be reserved. */
struct rls_wire_gpu_batch {
	struct rls_wire_header header; /* tid: the bridge's own thread */
	RLS_U32 bytes;
	RLS_U32 reserved;
	RLS_S64 clock_ahead_ns; /* the target's own clock, of ours: its times are on that */
};

#ifndef __VMLINUX_H__
_Static_assert(sizeof(struct rls_wire_header) == 24, "header");
_Static_assert(offsetof(struct rls_wire_header, time_ns) == 16, "header");
_Static_assert(sizeof(struct rls_wire_category) == 56, "category");
_Static_assert(sizeof(struct rls_wire_thread) == 48, "thread");
_Static_assert(sizeof(struct rls_wire_fork) == 56, "fork");
_Static_assert(sizeof(struct rls_wire_exec) == 40, "exec");
_Static_assert(sizeof(struct rls_wire_exit) == 56, "exit");
_Static_assert(sizeof(struct rls_wire_name) == 168, "name");
_Static_assert(sizeof(struct rls_wire_edge) == 40, "edge");
_Static_assert(sizeof(struct rls_wire_edges) == 24 + 24 * RLS_EDGES_SENT, "edges");
_Static_assert(sizeof(struct rls_wire_range) == 168, "range");
_Static_assert(sizeof(struct rls_wire_name_change) == 32, "name change");
_Static_assert(sizeof(struct rls_wire_off_cpu) == 40, "off cpu");
_Static_assert(sizeof(struct rls_wire_loss) == 40, "loss");
_Static_assert(sizeof(struct rls_wire_final) == 80, "final");
_Static_assert(sizeof(struct rls_wire_category_sample) == 80 + 8 * RLS_SAMPLE_WORDS,
	       "category sample");
_Static_assert(sizeof(struct rls_wire_gpu_batch) == 40, "gpu batch");
#endif

#endif
