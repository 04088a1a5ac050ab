/* Kernel → recorder: the records in the ring buffers, and the probes' cookies.
 *
 * `transitions` carries what the boundary probes see (struct rls_wire_category), in a ring of our own (below).
 * `control` carries all the rest: processes, threads, operations, losses. It is never
 * sampled and never starved by transition traffic.
 * `gpu` carries what the CUPTI bridges of the targets hand over (struct rls_wire_gpu_batch).
 *
 * Every record begins with the same header. Compiled by clang -target bpf and by gcc;
 * sizes and offsets are asserted. Numbers are append-only.
 */
#ifndef RLS_WIRE_H
#define RLS_WIRE_H

#ifdef __VMLINUX_H__
#define RLS_U8 __u8
#define RLS_U16 __u16
#define RLS_U32 __u32
#define RLS_U64 __u64
#else
#include <stddef.h>
#include <stdint.h>
#define RLS_U8 uint8_t
#define RLS_U16 uint16_t
#define RLS_U32 uint32_t
#define RLS_U64 uint64_t
#endif

#define RLS_WIRE_COMM_BYTES 16
#define RLS_WIRE_NAME_BYTES 128

enum rls_wire_kind {
	RLS_WIRE_CATEGORY = 1,
	RLS_WIRE_THREAD = 2,        /* a thread's first hit */
	RLS_WIRE_FORK = 3,          /* a tracked process made a child process */
	RLS_WIRE_EXEC = 4,
	RLS_WIRE_THREAD_EXIT = 5,
	RLS_WIRE_NAME = 6,          /* text of an operation's name, before its first edge */
	RLS_WIRE_EDGE = 7,          /* an edge from a thread's annotation ring */
	RLS_WIRE_RANGE_PUSH = 8,    /* a range of someone else's API (NVTX, record_function) */
	RLS_WIRE_RANGE_POP = 9,
	RLS_WIRE_LOSS = 10,         /* transitions lost on this thread */
	RLS_WIRE_FINAL = 11,        /* a thread's state when recording stops */
	RLS_WIRE_RENAME = 12,       /* a task's new comm */
	/* 13: no longer sent */
	RLS_WIRE_GPU_BATCH = 14,    /* as a CUPTI bridge gave it */
	RLS_WIRE_EDGES = 15,        /* some edges in a row: they leave userspace/attach as so many RLS_WIRE_EDGE */
	RLS_WIRE_LOOK = 20,         /* what a thread executes, or has waited in, and its stack */
	/* 24, 25: stack_wire.h */
	RLS_WIRE_BOOKED = 26,       /* booking, of a process with a CUPTI bridge: its operations */
	RLS_WIRE_ABSENCE = 27,      /* a thread was off its CPU, if that is to be told */
};

struct rls_wire_header {
	RLS_U16 size;               /* of the whole record */
	RLS_U8 kind;
	RLS_U8 flags;
	RLS_U32 pid;                /* thread group, in user space's pid namespace; tid too */
	RLS_U32 tid;
	RLS_U32 sequence;           /* per thread, over the transitions ring; wraps */
	RLS_U64 time_ns;            /* CLOCK_MONOTONIC */
};

/* What has piled up on a thread since its previous record with one of these. */
struct rls_wire_pile {
	RLS_U32 hits;               /* probe hits, the one that emits included */
	RLS_U32 cost_ns;            /* what they cost by the calibration in the cookies */
	RLS_U64 off_cpu_ns;         /* not running */
};

struct rls_wire_category {
	struct rls_wire_header header;
	struct rls_wire_pile pile;
	RLS_U8 category;            /* after the event */
	RLS_U8 from;                /* before it */
	RLS_U16 depth;              /* frames on the thread's stack of categories */
	RLS_U32 site;
};

struct rls_wire_thread {
	struct rls_wire_header header; /* time: when the thread's life began */
	RLS_U32 ns_tid;
	RLS_U32 category;           /* since then: its parent's where a fork could not be told; else 0 */
	char comm[RLS_WIRE_COMM_BYTES];
};

struct rls_wire_fork {
	struct rls_wire_header header; /* pid, tid: the parent's */
	RLS_U32 child_pid;
	RLS_U32 child_ns_pid;
	RLS_U8 category;            /* what the child's only thread is in: its parent's state */
	RLS_U8 reserved[7];
	char comm[RLS_WIRE_COMM_BYTES];
};

struct rls_wire_exec {
	struct rls_wire_header header; /* tid: the caller's until then; now it is pid */
	char comm[RLS_WIRE_COMM_BYTES];
};

struct rls_wire_exit {
	struct rls_wire_header header;
	struct rls_wire_pile pile;
	RLS_U8 process_over;        /* it was the last thread of its process */
	RLS_U8 traced;              /* the thread had been announced */
	RLS_U8 reserved[6];
};

struct rls_wire_name {
	struct rls_wire_header header;
	RLS_U64 address;            /* of the name in the process's memory */
	RLS_U32 length;
	RLS_U32 id;                 /* in cells: of this name in this process; else 0 */
	char text[RLS_WIRE_NAME_BYTES];
};

struct rls_wire_edge {
	struct rls_wire_header header; /* time: the edge's own */
	RLS_U64 name;               /* address, as in rls_wire_name; 0 for none */
	RLS_U16 edge;               /* enum rls_edge_kind, or RLS_WIRE_EDGE_STACK */
	RLS_U16 depth;
	RLS_U32 reserved;
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
		RLS_U32 reserved;
	} edges[RLS_EDGES_SENT];
};

struct rls_wire_range {
	struct rls_wire_header header;
	RLS_U64 token;              /* pairs a push with its pop; 0: innermost */
	RLS_U32 length;             /* of text, may be cut */
	RLS_U32 reserved;
	char text[RLS_WIRE_NAME_BYTES];
};
/* Flag of its header: others before it were lost, so what is open is not known. */
#define RLS_WIRE_RANGE_AFTER_LOSS 1

/* What a thread is booked in from a moment on, so that its launches are found in it. */
struct rls_wire_booked {
	struct rls_wire_header header; /* time: since then; 0: since before. tid 0: the process's phase */
	RLS_U32 name;               /* id of the operation, of the phase; 0: none */
	RLS_U32 source;             /* 1: threads that have no operation of their own have this one */
};

struct rls_wire_absence {
	struct rls_wire_header header; /* time: when it came back */
	RLS_U64 away_ns;            /* before that; the next pile has it, too */
};

struct rls_wire_loss {
	struct rls_wire_header header; /* time: when the thread's next event got through */
	RLS_U64 since_ns;           /* when the first one was lost */
	RLS_U32 lost;
	RLS_U32 reserved;
};

struct rls_wire_final {
	struct rls_wire_header header;
	struct rls_wire_pile pile;
	RLS_U64 record;             /* the thread's annotation record, 0 for none */
	RLS_U64 edges_seen;
	RLS_U32 overflowed_frames;  /* entries beyond RLS_FRAMES_MAX */
	RLS_U32 reserved;
};

#define RLS_LOOK_WORDS 128
struct rls_wire_look {
	struct rls_wire_header header;
	struct rls_wire_pile pile;  /* empty unless it was found in user mode */
	RLS_U64 ip;                 /* in user mode, or where it was left for the kernel */
	RLS_U64 waited_ns;          /* 0: it is running; else it stands for so much waiting */
	RLS_U32 operation, phase;   /* ids of names, when booking; 0: none */
	RLS_U8 category;            /* the same: what its time is booked in, RLS_BOOK_CLOSED too */
	RLS_U8 reserved[7];
	RLS_U64 words[RLS_LOOK_WORDS]; /* the top of its stack; zero where that is not there */
};
#define RLS_TICK_PHASES 16          /* parts of the time between two ticks (attach/tick_phases.h) */
#define RLS_TICK_NS_MAX 100000000U  /* no tick stands for more */

/* Flags of their headers. */
#define RLS_SAMPLE_KERNEL 1     /* the thread is in the kernel */
#define RLS_LOOK_TRAPPED 4      /* a trap took it into the kernel: it is served as a probe's hit */
#define RLS_LOOK_CLOSE 8        /* of the timer that ticks in windows: its cost is in the thread's pile */

/* `bytes` bytes of what a target calls a batch (cupti_bridge/batch.h) follow, unchecked, and
 * then rubbish up to header.size: records of a few sizes only can be reserved. */
struct rls_wire_gpu_batch {
	struct rls_wire_header header; /* tid: the bridge's own thread */
	RLS_U32 bytes;
	RLS_U32 reserved;
};

/* ---- cookies: all that a probe needs to know about its site, without a map look-up ----
 *
 *  bits  0..31 site id   32..35 kind (enum rls_site_kind, plan/site.h)   36..39 category
 *  bit   40 from_python  41..42 site class  43..44 exit (enum rls_site_exit)  45 jumped_to
 *  bits 36..45 of a LEAVE_RET, which says nothing of these: how many words above the stack pointer the
 *             return address lies
 *  bit   46 windowed: on only in windows (attach/groups.h)
 *  bit   47 within: of an ENTER, the return address lies one word above the stack pointer
 *  bits 48..63 cost of one hit in ns: 48..51 an exponent of 2, 52..63 what it multiplies.
 *  Up to 4095 ns it is exact, beyond to 1 in 4096, saturated at 134 ms (rls_cookie_cost).
 */
#define RLS_COOKIE_SITE(c) ((RLS_U32)(c))
#define RLS_COOKIE_KIND(c) ((RLS_U8)(((c) >> 32) & 15))
#define RLS_COOKIE_CATEGORY(c) ((RLS_U8)(((c) >> 36) & 15))
#define RLS_COOKIE_SLOT_BYTES(c) ((RLS_U32)(((c) >> 36) & 1023) * 8)
#define RLS_COOKIE_FROM_PYTHON(c) ((RLS_U8)(((c) >> 40) & 1))
#define RLS_COOKIE_CLASS(c) ((RLS_U8)(((c) >> 41) & 3))
#define RLS_COOKIE_EXIT(c) ((RLS_U8)(((c) >> 43) & 3))
#define RLS_COOKIE_JUMPED_TO(c) ((RLS_U8)(((c) >> 45) & 1))
#define RLS_COOKIE_WINDOWED(c) ((RLS_U8)(((c) >> 46) & 1))
#define RLS_COOKIE_WITHIN(c) ((RLS_U8)(((c) >> 47) & 1))
#define RLS_COOKIE_COST_NS(c) ((RLS_U32)((c) >> 52) << ((c) >> 48 & 15))
#define RLS_COOKIE_AS_WINDOWED(c) ((c) | (RLS_U64)1 << 46)
#define RLS_COOKIE(site, category, kind, from_python, site_class, exit, jumped_to, within, cost)   \
	((RLS_U64)(RLS_U32)(site) | (RLS_U64)(kind) << 32 | (RLS_U64)(category) << 36 |            \
	 (RLS_U64)(from_python) << 40 | (RLS_U64)(site_class) << 41 | (RLS_U64)(exit) << 43 |      \
	 (RLS_U64)(jumped_to) << 45 | (RLS_U64)(within) << 47 | (RLS_U64)(cost) << 48)
#define RLS_LEAVE_COOKIE(site, kind, slot_bytes, cost)                                             \
	((RLS_U64)(RLS_U32)(site) | (RLS_U64)(kind) << 32 |                                        \
	 (RLS_U64)((slot_bytes) / 8 & 1023) << 36 | (RLS_U64)(cost) << 48)

/* A range site's cookie: bits 0..7 kind (enum rls_range_kind of
 * userspace/annotate/foreign_ranges.h), 8..15 the argument register with the name, 16..23
 * the one with the token that pairs push and pop (other than 0..5: none), 48..63 as above. */
#define RLS_RANGE_COOKIE(kind, name, token, cost) \
	((RLS_U64)(kind) | (RLS_U64)(name) << 8 | (RLS_U64)(token) << 16 | (RLS_U64)(cost) << 48)

/* ---- maps shared with user space ---- */

/* transitions: a ring of places, an array that user space maps.
 *
 *      read ─▶ │ p │ p+1 │ p+2 │ … │ ◀─ taken
 *
 * Who writes takes the next position, fills its place and then says so: position + 1 is its turn. The reader goes up to
 * the first place whose turn has not come. The kernel's own ring buffers take a lock and two calls a record, which is half of
 * what an event costs (scripts/bench/README.md). Between a look at the room and the taking others may take some: so
 * many places as SPARE says are kept free for those. */
struct rls_wire_place {
	RLS_U64 turn;               /* written last */
	struct rls_wire_category event;
	RLS_U64 reserved;           /* a line of memory each */
};

#define RLS_PLACES_SPARE(places) ((places) / 4 < 1024 ? (places) / 4 : 1024)

/* Positions in transition_ends: they are counted on and never begin anew. A line of memory each. */
#define RLS_END_TAKEN 0
#define RLS_END_READ 8
#define RLS_ENDS 16

/* tracked: thread group id → this. Children inherit it at fork. */
struct rls_wire_process {
	RLS_U64 annotate_offset;    /* (int64) thread pointer → address of the record's pointer; 0: none */
	RLS_U32 flags;              /* RLS_PROCESS_* */
	RLS_U32 reserved;
};
#define RLS_PROCESS_FOLLOW 1        /* its children are tracked too */
#define RLS_PROCESS_ANNOTATED 2     /* annotate_offset is valid */

/* ranges: thread group id → executable ranges of libraries with a role; tells where a
 * caller that was never seen entering must have been. */
#define RLS_RANGES_MAX 64
struct rls_wire_ranges {
	RLS_U32 count;
	RLS_U32 reserved;
	struct {
		RLS_U64 start, end;
		RLS_U64 category;
	} range[RLS_RANGES_MAX];
};

/* site_hits: hits of a site by its id, on each CPU; ids beyond are not counted one by one. */
#define RLS_SITES_COUNTED 16384

/* Operation edges that one hit reads: the first ones are charged what they cost amid cold code, as the calibration
 * measures it of so many at once, those after them what they cost in a loop. */
#define RLS_EDGES_COLD 4
#define RLS_BOOKED_EDGE 3       /* booking: each costs so many times as much (scripts/bench/HISTORY.md) */

/* ---- booking (`booking` set before loading): no records of transitions and edges, but sums ----
 *
 * cells: what a process did in an operation, a phase and a category. Operations and phases are
 * names by the id that RLS_WIRE_NAME gave them; 0: none. */
#define RLS_BOOK_UNREADABLE 0xfffffffeU /* instead of an id */
#define RLS_BOOK_OTHER 0xfffffffdU      /* the same: its process has named more than its share */
#define RLS_BOOK_NAMES_MAX 512          /* of a process */
#define RLS_BOOK_CELLS_MAX 8192         /* the same; then its phases are not told apart any more */
struct rls_wire_cell_key {
	RLS_U32 pid;
	RLS_U32 operation;
	RLS_U32 phase;
	RLS_U32 category;           /* enum rls_category, or RLS_BOOK_CLOSED */
};
#define RLS_BOOK_CLOSED 15      /* between windows: the category is not known */
#define RLS_BOOK_CATEGORIES 8   /* room for enum rls_category */
struct rls_wire_cell {
	RLS_U64 ns;
	RLS_U64 off_cpu_ns;         /* of ns: waiting, for a free CPU too */
	RLS_U64 hits;
	RLS_U64 cost_ns;            /* of those hits */
	RLS_U64 to[RLS_BOOK_CATEGORIES]; /* transitions out of the category */
};

/* scopes: thread group id → what its threads are in. Whoever books a thread's time takes it
 * with a compare-and-swap of its word, so that nothing is booked twice. */
struct rls_wire_book {
	RLS_U64 word;               /* since_ns << 5 | waits << 4 | category; 0: it has not begun */
	RLS_U32 tid;                /* 0: free */
	RLS_U32 operation;          /* its own innermost, or RLS_BOOK_INHERITS */
	RLS_U32 phase;              /* the process's at that instant */
	RLS_U32 kept_ns;            /* of the word's time: ready to run, without a CPU */
};
#define RLS_BOOK_INHERITS 0xffffffffU /* never had one: it has its process's */
#define RLS_BOOKS_MAX 64        /* threads of a process whose time is cut at others' edges */
struct rls_wire_scope {
	RLS_U64 since_ns;           /* watched since then */
	RLS_U64 phase_ns;           /* in this phase since then */
	RLS_U32 operation;          /* the source's */
	RLS_U32 phase;
	RLS_U32 source;             /* tid of the annotated thread that the others inherit from; 0: none */
	RLS_U32 names;              /* given to it */
	RLS_U32 places;             /* books beyond were never used */
	RLS_U32 bridged;            /* a CUPTI bridge in it has sent something */
	RLS_U32 cells;              /* made for it */
	RLS_U32 reserved;
	struct rls_wire_book book[RLS_BOOKS_MAX];
};

/* site_calls: calls that were seen to begin and end, by site, on each CPU. */
struct rls_wire_calls {
	RLS_U64 calls;
	RLS_U64 time_ns;
};

/* burden: what hits have cost so far, by RLS_BURDEN_OF their thread. */
#define RLS_BURDENS 4096
#define RLS_BURDEN_OF(tid) ((tid) & (RLS_BURDENS - 1))

#define RLS_FRAMES_MAX 256          /* nested category changes told apart per thread */

enum rls_drop_counter {
	RLS_DROP_TRANSITIONS = 0,
	RLS_DROP_CONTROL = 1,
	RLS_DROP_EDGES = 2,             /* annotation edges overwritten before they were read */
	RLS_DROP_THREADS = 3,           /* hits of threads whose state could not be allocated */
	RLS_DROP_GPU = 4,               /* batches */
	RLS_DROP_SAMPLES = 5,
	RLS_DROP_CELLS = 6,             /* stretches of time for which there was no cell */
	RLS_DROP_MAX = 7,
};

#ifndef __VMLINUX_H__
_Static_assert(sizeof(struct rls_wire_header) == 24, "header");
_Static_assert(offsetof(struct rls_wire_header, time_ns) == 16, "header");
_Static_assert(sizeof(struct rls_wire_category) == 48, "category");
_Static_assert(sizeof(struct rls_wire_place) == 64, "place");
_Static_assert(sizeof(struct rls_wire_thread) == 48, "thread");
_Static_assert(sizeof(struct rls_wire_fork) == 56, "fork");
_Static_assert(sizeof(struct rls_wire_exec) == 40, "exec");
_Static_assert(sizeof(struct rls_wire_exit) == 48, "exit");
_Static_assert(sizeof(struct rls_wire_name) == 168, "name");
_Static_assert(sizeof(struct rls_wire_edge) == 40, "edge");
_Static_assert(sizeof(struct rls_wire_edges) == 24 + 24 * RLS_EDGES_SENT, "edges");
_Static_assert(sizeof(struct rls_wire_range) == 168, "range");
_Static_assert(sizeof(struct rls_wire_booked) == 32, "booked");
_Static_assert(sizeof(struct rls_wire_absence) == 32, "absence");
_Static_assert(sizeof(struct rls_wire_loss) == 40, "loss");
_Static_assert(sizeof(struct rls_wire_final) == 64, "final");
_Static_assert(sizeof(struct rls_wire_look) == 72 + 8 * RLS_LOOK_WORDS, "look");
_Static_assert(sizeof(struct rls_wire_gpu_batch) == 32, "gpu batch");
_Static_assert(sizeof(struct rls_wire_cell_key) == 16, "cell key");
_Static_assert(sizeof(struct rls_wire_cell) == 32 + 8 * RLS_BOOK_CATEGORIES, "cell");
_Static_assert(sizeof(struct rls_wire_scope) == 48 + 24 * RLS_BOOKS_MAX, "scope");
#endif

#endif
