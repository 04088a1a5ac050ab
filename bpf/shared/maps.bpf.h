/* The kernel side's memory: maps and globals, defined in maps.bpf.c. */
#ifndef RLS_MAPS_BPF_H
#define RLS_MAPS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/wire/cookie.h"
#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "bpf/wire/totals.h"

/* Reads a register of the probed thread here and now: without it clang may form a pointer
 * into ctx first and dereference it later, which the verifier refuses. */
#define READ_REGISTER(expression)                                                                  \
	({                                                                                         \
		__u64 register_ = (expression);                                                    \
		asm volatile("" : "+r"(register_));                                                \
		register_;                                                                         \
	})

/* x86: the privilege level is in the code segment. By its place, which is the same everywhere:
 * the field is 8 bytes wide in some kernels and 2 in others, and only 8 may be read of a perf
 * event's registers. */
#define CS_REGISTER 17
#define FROM_USER_MODE(regs) ((READ_REGISTER(((const __u64 *)(regs))[CS_REGISTER]) & 3) != 0)

/* A function of its own in the kernel (not inlined), shared through a header. */
#define SUBPROGRAM static __attribute__((noinline, unused))

/* Ranges of other people's APIs that are open on a thread, the outermost first (range_totals.bpf.h). */
#define RLS_RANGES_OPEN 32
struct open_range {
	__u64 token; /* pairs it with its end; 0: none */
	__u32 name; /* id; 0: not to be seen, there for its end only */
	__u32 over; /* so many of the annotations that are open were before it */
};

struct open_ranges {
	__u32 count;
	__u32 unkept; /* open ones without a token that found no room */
	__u32 annotation; /* the innermost annotation's id, and how deep it is */
	__u32 depth;
	struct open_range range[RLS_RANGES_OPEN];
	__u32 length; /* of text */
	__u32 reserved;
	char text[RLS_WIRE_NAME_BYTES]; /* the name of one that begins now */
};

/* A thread's time off its CPU (off_cpu.bpf.h). */
struct away {
	__u64 since_ns; /* 0: it is on one, as far as is known */
	__u64 ran_ns; /* what it had run for until then */
	__u64 left_ns; /* when the latest began, over or not */
	__u64 away_ns; /* how long that was */
	__u64 excess_ns; /* by how much the earlier ones were too long */
};

/* How often a thread has waited of late, in one of the two ways. */
struct frequency {
	__u64 window_ns; /* when the window began */
	__u32 waits; /* in it, so far */
	__u32 every; /* one of so many is sent, as the window before it suggests */
};

/* What is sent of a thread's time off its CPU (wait.bpf.h). */
struct wait {
	struct frequency blocked, preempted;
	__u64 since_ns;
	__u64 end_ns; /* of the last that is over, and how long it was */
	__u64 away_ns;
	__u64 ticked_ran_ns; /* what the thread had run for at its last tick, or when first seen */
	__s64 owed_ns; /* of that, what its ticks did not stand for yet; less than 0: they stood for more */
	__u8 open; /* WAIT_*, of the last until its end has been sent */
};
#define WAIT_ASLEEP 1 /* for something else than a CPU */
#define WAIT_KEPT 2 /* it is in `pauses` */
#define WAIT_REPORTED 4 /* its beginning has been sent, with its stack */

/* Names that a thread had lately, each in its place: most need no looking up. */
#define NAMES_KNOWN 8
#define NAME_PLACE(address) ((address)*0x9e3779b97f4a7c15ULL >> 61)
struct known_name {
	__u64 address;
	__u32 id; /* in totals_mode, else 1; 0: there is none */
	__u32 reserved;
};

/* One frame per change of category: everything at or below its stack pointer is inside it. */
struct thread_state {
	__u32 pid, tid;
	__u32 sequence;
	__u32 generation; /* of the process settings copied below */
	struct rls_wire_hit_totals hit_totals;
	__u64 event_ns; /* of the last transition: the next one is later */
	struct away away; /* since_ns: 0 while running */
	struct wait wait;
	struct { /* off the CPU, to be sent; away_ns 0: none */
		__u64 until_ns, away_ns, before_ns; /* as in rls_wire_off_cpu */
	} period;
	__u64 lost_since_ns; /* first transition lost since the last that got through */
	__u32 lost;
	__u32 overflowed;
	__u64 record; /* annotation record, 0 while not found */
	__u64 annotate_offset;
	__u64 phase_address; /* where its process keeps its phase; 0: nowhere */
	__u64 edges_seen;
	__s64 clock_ahead_ns; /* of the host's, when edges were last read (clock.bpf.h) */
	struct known_name names[NAMES_KNOWN]; /* that have been sent, by NAME_PLACE */
	__u8 annotated;
	__u8 finalizing; /* it ends its interpreter: what it frees now is no news (memory.bpf.c) */
	__u8 noted; /* its helpers may have its operations (memory.bpf.h) */
	__u8 record_seen;
	__u8 announced;
	__u8 base; /* category below the first frame */
	__u8 category; /* now: of the top frame, or base */
	__u8 missed; /* MISSED_*: what has not been sent to user space */
	__u16 depth;
	__u32 window; /* value of window_edges when the frames below were begun */
	struct rls_wire_thread_totals
		totals; /* totals_mode: where its process's scope has no room for it */
	__u32 begun; /* totals_mode: its totals have begun */
	__u32 place; /* totals_mode: those in the scope, from 1; 0: none */
	__u32 entered_site; /* the same: the call that its last transition began */
	__u32 entered_window;
	__u16 entered_depth;
	__u64 entered_ns;
	__u64 frames[RLS_FRAMES_MAX]; /* FRAME_SP, and what FRAME_KIND says above it */
	struct { /* the tensor that is copied to, if that goes on (memory.bpf.c) */
		__u64 sp, return_address; /* where its function was entered, and what lies there */
		__u64 start, bytes;
		__u64 left; /* not yet copied, as far as is seen */
	} copying;
	struct { /* the last block of the C library's that was counted; 0: reported */
		__u64 bytes; /* its head included */
		__u32 line; /* its place in memory_lines */
	} unreported;
	struct open_ranges ranges; /* totals_mode; the text also where not */
};

/* For want of room on the control ring. */
#define MISSED_EDGES 1
#define MISSED_RANGES 2

struct threads_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
};

struct tracked_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct rls_wire_process);
};

struct ranges_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct rls_wire_ranges);
};

struct name_key {
	__u64 address;
	__u32 pid;
	__u32 image; /* tells programs apart that had this pid and this address */
};

struct names_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct name_key);
	__type(value, __u32); /* its id in totals_mode, else 1 */
};

/* The thread of a process whose operations its helpers have (memory.bpf.h). */
struct annotated_thread {
	__u64 record;
	__u32 tid; /* as it sees itself */
	__u32 reserved;
};

struct annotated_threads_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct annotated_thread);
};

struct site_hits_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RLS_SITES_COUNTED);
	__type(key, __u32);
	__type(value, __u64);
};

/* For totals_mode; user space leaves them a single entry otherwise. Cells are also made while the
 * scheduler switches, where nothing may be allocated. */
struct cells_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct rls_wire_cell_key);
	__type(value, struct rls_wire_cell);
};

struct scopes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct rls_wire_scope);
};

struct site_calls_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RLS_SITES_COUNTED);
	__type(key, __u32);
	__type(value, struct rls_wire_calls);
};

struct transitions_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536); /* user space resizes before load */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rls_wire_place);
};

struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024); /* user space resizes before load */
};

extern struct threads_map threads SEC(".maps");
extern struct tracked_map tracked SEC(".maps");
extern struct ranges_map ranges SEC(".maps");
extern struct names_map names_sent SEC(".maps");
extern struct annotated_threads_map annotated_threads SEC(".maps");
extern struct site_hits_map site_hits SEC(".maps");
extern struct cells_map cells SEC(".maps");
extern struct scopes_map scopes SEC(".maps");
extern struct site_calls_map site_calls SEC(".maps");
extern struct transitions_map transitions SEC(".maps");
extern struct ring_map control SEC(".maps");
extern struct ring_map gpu SEC(".maps");

/* Transitions and edges are summed up in cells, not sent. Set before loading: the verifier
 * leaves out what is not asked for. */
extern const volatile bool totals_mode;
/* Sites will go on and off while recording, and be chosen by how often each was hit. */
extern const volatile bool windows;
/* Stacks are sampled. */
extern const volatile bool stacks_sampled;
/* Each off-CPU period of a thread is sent by itself. */
extern const volatile bool each_off_cpu;
/* Of transitions: places, a power of two, less one; and how many may be taken and unread. */
extern const volatile __u32 transitions_mask;
extern const volatile __u32 transitions_room;
extern __u64 transition_ends[RLS_ENDS];
/* Nothing counts until every probe is in place: entry and return links go live ~20 ms
 * apart. Zero: before and after recording. */
extern __u64 recording_since_ns;
extern __u64 stopped_ns; /* the trace's end: what threads still hold is of before it */
/* Goes up at each edge of a window, when windowed sites begin to count and when they cease
 * to: what was known of a thread's frames before is stale. Odd: they do not count. */
extern __u32 window_edges;
extern __u64 window_edge_ns; /* when it last did: written first */
extern bool hits_uncounted; /* nobody asks for site_hits any more */
/* Ends of other people's ranges are probed in windows only: none may begin. */
extern bool ranges_windowed;
extern __u64 ranges_begun[2]; /* somebody's; of PyTorch's own making */
/* Raised by user space when a process's settings in `tracked` change. */
extern __u32 settings_generation;
/* Whose numbers user space goes by: the inode of its pid namespace; 0: the initial one. */
extern __u32 pid_namespace;
extern __u32 event_cost_ns; /* what emitting adds to a hit's cost */
extern __u32 edge_cost_ns; /* and each edge read from an annotation record, */
extern __u32 later_edge_cost_ns; /* from the RLS_EDGES_COLD'th of a hit on */
/* How much of a hit's cost is over when its time is taken: at sites, at return probes. */
extern __u32 cost_before_ns[2];
/* User space has begun to listen to them. */
extern bool category_samples_wanted, stacks_wanted;
/* Threads that are met first now were off their CPUs since then, if they are. */
extern __u64 states_since_ns;
extern __u32 waits_per_window; /* whose stacks are walked, of a thread in 100 ms (stack.bpf.h) */
extern __u32 close_sample_cost_ns; /* of a tick of the timer that samples in windows */
extern __u64 drops[RLS_DROP_MAX];
/* Times the batch site was hit, by whomever: user space tries out what a probe sees. */
extern __u64 batch_hits;
extern __u32 names_given; /* ids, in totals_mode */
extern __u64 burden[RLS_BURDENS];

static __always_inline void count_drop(enum rls_drop_counter which)
{
	__sync_fetch_and_add(&drops[which], 1);
}

#endif
