/* Series: a trace's time per call of its operations, phase by phase, in blocks of calls.
 *
 * The variation of a call's time between blocks of one recording shows how far its mean can be
 * trusted when recordings are compared (compare.h). A block is so many consecutive calls of an
 * operation in a phase; a call's time goes to its block when the next call begins. There are at
 * most RLS_SERIES_BLOCKS of them, however long the trace: when they are used up, each two become
 * one. All threads and processes together.
 *
 * Untraced time (untraced_time.h) is part of the block in which it passed. Its division among
 * categories is known for the whole only, so it is the same in each block.
 *
 * An outer operation that is entered once, such as a training loop, is measured per inner call: a
 * call of an operation directly within it.
 */
#ifndef RLS_SERIES_H
#define RLS_SERIES_H

#include "analysis/report/report.h"

#define RLS_SERIES_BLOCKS 64
/* Beyond so many pairs of phase and operation, what is new is left out: cut says so. */
#define RLS_SERIES_STRATA_MAX 1024

enum rls_series_unit {
	RLS_SERIES_CALL = 0,
	RLS_SERIES_INNER_CALL = 1,
	RLS_SERIES_UNIT_MAX = 2,
};

/* Behind the categories: time in none of them yet. 0 when reading is over. */
#define RLS_SERIES_CLOSED RLS_CATEGORY_MAX
#define RLS_SERIES_TIMES (RLS_CATEGORY_MAX + 1)

struct rls_series_times {
	double wall_ns[RLS_SERIES_TIMES];
	double corrected_ns[RLS_SERIES_TIMES];
	double cpu_ns[RLS_SERIES_TIMES]; /* of corrected_ns, what the threads really ran */
	double ran_ns[RLS_SERIES_TIMES]; /* of wall_ns */
};

struct rls_series_block {
	double units;
	struct rls_series_times times;
};

struct rls_series_blocks {
	struct rls_series_block *blocks; /* in order of time; the last may be begun only */
	size_t count, capacity;
	double units_each; /* in every whole block */
};

struct rls_series_stratum {
	const char *phase, *operation;
	double units[RLS_SERIES_UNIT_MAX]; /* of the whole trace, as are the times */
	struct rls_series_times times;
	double sampled_error_ns[RLS_CATEGORY_MAX]; /* half width, of what is known by samples */
	struct rls_series_blocks blocks[RLS_SERIES_UNIT_MAX];
};

struct rls_series {
	struct rls_series_stratum *strata;
	size_t count, capacity;
	bool cut;
	uint64_t duration_ns;
	struct rls_report *report; /* of the same trace; owns the names */
};

/* Reads a source to its end. 0 and *out; -errno. */
int rls_series_read(struct rls_event_source *source, struct rls_series **out);
void rls_series_free(struct rls_series *series);

#endif
