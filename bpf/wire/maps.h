/* Maps that the kernel side shares with user space, and what is counted in them. */
#ifndef RLS_WIRE_MAPS_H
#define RLS_WIRE_MAPS_H

#include "bpf/wire/record.h"

/* transitions: a ring of places, an array that user space maps.
 *
 *      read ─▶ │ p │ p+1 │ p+2 │ … │ ◀─ taken
 *
 * Who writes takes the next position, fills its place and then says so: position + 1 is its turn. The reader goes up to
 * the first place whose turn has not come. The kernel's own ring buffers take a lock and two calls a record, which is half of
 * what an event costs. Between a look at the room and the taking others may take some: so
 * many places as SPARE says are kept free for those. */
struct rls_wire_place {
	RLS_U64 turn; /* written last */
	struct rls_wire_category event; /* both are a line of memory */
};

#define RLS_PLACES_SPARE(places) ((places) / 4 < 1024 ? (places) / 4 : 1024)

/* Positions in transition_ends: they are counted on and never begin anew. A line of memory each. */
#define RLS_END_TAKEN 0
#define RLS_END_READ 8
#define RLS_ENDS 16

/* tracked: thread group id → this. Children inherit it at fork. */
struct rls_wire_process {
	RLS_U64 annotate_offset; /* (int64) thread pointer → address of the record's pointer; 0: none */
	RLS_U64 phase_address; /* of the word that has its phase's name; 0: none */
	RLS_U32 flags; /* RLS_PROCESS_* */
	RLS_U32 reserved;
};
#define RLS_PROCESS_FOLLOW 1 /* its children are tracked too */
#define RLS_PROCESS_ANNOTATED 2 /* annotate_offset is valid */

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
#define RLS_TOTALS_EDGE 3 /* in totals_mode each costs so many times as much */

/* site_calls: calls that were seen to begin and end, by site, on each CPU. */
struct rls_wire_calls {
	RLS_U64 calls;
	RLS_U64 time_ns;
};

/* burden: what hits have cost so far, by RLS_BURDEN_OF their thread. */
#define RLS_BURDENS 4096
#define RLS_BURDEN_OF(tid) ((tid) & (RLS_BURDENS - 1))

#define RLS_FRAMES_MAX 256 /* nested category changes distinguished per thread */

enum rls_drop_counter {
	RLS_DROP_TRANSITIONS = 0,
	RLS_DROP_CONTROL = 1,
	RLS_DROP_EDGES = 2, /* annotation edges overwritten before they were read */
	RLS_DROP_THREADS = 3, /* hits of threads whose state could not be allocated */
	RLS_DROP_GPU = 4, /* batches */
	RLS_DROP_SAMPLES = 5,
	RLS_DROP_CELLS = 6, /* stretches of time for which there was no cell */
	RLS_DROP_MAX = 7,
};

#ifndef __VMLINUX_H__
_Static_assert(sizeof(struct rls_wire_place) == 64, "place");
#endif

#endif
