/* Memory windows: what blocks are counted, so that counting costs no more than a share of the time. Pure.
 *
 *     every block, from birth to end ── the allowance is used up ──▶ of the most expensive source: births, in windows
 *
 * Windows are equally long and open at random instants; the allowance decides how often. A source never leaves windows
 * again, as its blocks that began between two of them are not known.
 */
#ifndef RLS_MEMORY_WINDOWS_H
#define RLS_MEMORY_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/memory.h"

/* Zeroed but for share. Its times, but for opened_ns, are times that the targets have run. */
struct rls_memory_windows {
	double share; /* of the time; below 0: no limit, and never a window */
	double credit_ns;
	uint64_t at_ns; /* of the latest step */
	uint64_t narrowed_ns; /* when a source last went into windows */
	uint64_t source_ns[RLS_MEMORY_SOURCES]; /* what each has cost, at the latest step */
	uint64_t narrowed_source_ns[RLS_MEMORY_SOURCES]; /* and at narrowed_ns */
	uint32_t windowed; /* sources in windows: a bit each */
	bool open;
	uint64_t opened_ns;
	uint64_t turned_ns; /* when the last window closed; what the others had cost by then: */
	double others_ns;
	double window_ns; /* what a window costs, about */
	double spent_ns; /* by this one so far */
	uint64_t due_ns; /* when the next one opens */
	uint64_t random;
};

enum rls_memory_step {
	RLS_MEMORY_STEP_STAY,
	RLS_MEMORY_STEP_NARROW, /* the source goes into windows; none is open */
	RLS_MEMORY_STEP_OPEN, /* a window opens for all sources in `windowed` */
	RLS_MEMORY_STEP_CLOSE,
};

/* Called often. ran_ns: how long the targets have run so far; where several do side by side that is their time, not the sum.
 * What a target that is kept from running pays is then still no more than the share of what it runs. source_ns: what the hits
 * of each source have cost so far. The caller does what is returned at once. */
enum rls_memory_step rls_memory_windows_step(struct rls_memory_windows *windows, uint64_t time_ns,
					     uint64_t ran_ns,
					     const uint64_t source_ns[RLS_MEMORY_SOURCES],
					     uint32_t *source);

#endif
