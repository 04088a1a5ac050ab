/* Totals: what the kernel side adds up for the monitor, instead of sending records.
 *
 * `totals_mode` is set before loading. Then the kernel side sends no records of transitions and edges,
 * and adds up times instead.
 */
#ifndef RLS_WIRE_TOTALS_H
#define RLS_WIRE_TOTALS_H

#include "bpf/wire/types.h"

/* cells: what a process did in an operation, a phase and a category. Operations and phases are
 * names by the id that RLS_WIRE_NAME gave them; 0: none. */
#define RLS_TOTALS_UNREADABLE 0xfffffffeU /* instead of an id */
#define RLS_TOTALS_OTHER 0xfffffffdU /* the same: its process has named more than its share */
#define RLS_TOTALS_NAMES_MAX 512 /* of a process */
#define RLS_TOTALS_CELLS_MAX 8192 /* the same; then its phases are not distinguished any more */
struct rls_wire_cell_key {
	RLS_U32 pid;
	RLS_U32 operation;
	RLS_U32 phase;
	RLS_U32 category; /* enum rls_category, or RLS_TOTALS_CLOSED */
};
#define RLS_TOTALS_CLOSED 15 /* between windows: the category is not known */
#define RLS_TOTALS_CATEGORIES 8 /* room for enum rls_category */
struct rls_wire_cell {
	RLS_U64 ns;
	RLS_U64 off_cpu_ns; /* of ns: waiting, for a free CPU too */
	RLS_U64 hits;
	RLS_U64 cost_ns; /* of those hits */
	RLS_U64 to[RLS_TOTALS_CATEGORIES]; /* transitions out of the category */
};

/* scopes: thread group id → what its threads are in. Whoever adds a thread's time takes it
 * with a compare-and-swap of its word, so that nothing is added twice. */
struct rls_wire_thread_totals {
	RLS_U64 word; /* since_ns << 5 | waits << 4 | category; 0: it has not begun */
	RLS_U32 tid; /* 0: free */
	RLS_U32 operation; /* its own innermost, or RLS_TOTALS_INHERITS */
	RLS_U32 phase; /* the process's at that instant */
	RLS_U32 kept_ns; /* of the word's time: ready to run, without a CPU */
};
#define RLS_TOTALS_INHERITS 0xffffffffU /* never had one: it has its process's */
#define RLS_TOTALS_THREADS_MAX 64 /* threads of a process whose time is cut at others' edges */
struct rls_wire_scope {
	RLS_U64 since_ns; /* watched since then */
	RLS_U64 phase_ns; /* in this phase since then */
	RLS_U32 operation; /* the source's */
	RLS_U32 phase;
	RLS_U32 source; /* tid of the annotated thread that the others inherit from; 0: none */
	RLS_U32 names; /* given to it */
	RLS_U32 places; /* those beyond were never used */
	RLS_U32 bridged; /* a CUPTI bridge in it has sent something */
	RLS_U32 cells; /* made for it */
	RLS_U32 reserved;
	struct rls_wire_thread_totals totals[RLS_TOTALS_THREADS_MAX];
};

#ifndef __VMLINUX_H__
_Static_assert(sizeof(struct rls_wire_cell_key) == 16, "cell key");
_Static_assert(sizeof(struct rls_wire_cell) == 32 + 8 * RLS_TOTALS_CATEGORIES, "cell");
_Static_assert(sizeof(struct rls_wire_scope) == 48 + 24 * RLS_TOTALS_THREADS_MAX, "scope");
#endif

#endif
