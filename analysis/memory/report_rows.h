/* Rows of a report that are about memory, as plain data (report/rows.h has the others). */
#ifndef RLS_REPORT_ROWS_H
#define RLS_REPORT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/event/bounded.h"
#include "analysis/event/event.h"
#include "analysis/memory/lifetimes.h"
#include "analysis/memory/live_curve.h"

/* What a source line allocated, by its innermost Python frame and in an operation and phase. Frees are
 * those of blocks that were allocated there while it was recorded. Figures that need frees are
 * RLS_COUNT_UNKNOWN or NAN where the source does not say when blocks are freed. */
struct rls_memory_line_row {
	uint32_t pid;
	const char *file; /* "", line 0: in no Python code */
	uint32_t line;
	const char *function;
	const char *phase;
	const char *operation;
	enum rls_memory_source source;
	int32_t device; /* -1: main memory */
	uint64_t allocs, alloc_bytes;
	uint64_t frees, freed_bytes;
	uint64_t growth_bytes; /* alloc_bytes - freed_bytes, never below 0 */
	uint64_t live_bytes; /* at the end of the recording or of the process */
	uint64_t peak_bytes; /* of rows that are summed, at least so much */
	uint64_t bytes_at_process_peak;
	uint64_t temporary_bytes; /* of freed_bytes: lived less than 10 ms */
	uint64_t median_lifetime_ns; /* of freed blocks; 0 without any */
	uint64_t error_bytes; /* one standard deviation */
	enum rls_memory_method method;
	double leak_score; /* memory/leak.h */
	double growth_bytes_per_s; /* over the last half */
	uint64_t survivors, observed; /* memory/lifetimes.h */

	/* Of which others follow, and which sums need. */
	double variance_bytes2;
	uint64_t ageless_allocs, ageless_frees; /* of blocks whose ages the trace does not say */
	struct rls_live_curve curve;
	struct rls_lifetimes lifetimes;
};

/* Adds what is summed otherwise than figure by figure. */
void rls_memory_line_add(void *into, const void *more);
/* What follows from the others. */
void rls_memory_line_derive(void *row);

/* What was copied by a source line: bytes are those that were written. */
struct rls_copy_row {
	uint32_t pid;
	const char *file;
	uint32_t line;
	const char *function;
	const char *phase;
	const char *operation;
	enum rls_copy_kind kind;
	uint64_t copies;
	uint64_t bytes;
	double bytes_per_s; /* of the process's life */
};

/* A process's main memory, device -1, or what it allocated of a GPU's. */
struct rls_memory_row {
	uint32_t pid;
	int32_t device;
	uint64_t rss_start_bytes, rss_end_bytes; /* resident; of a GPU, allocated */
	uint64_t rss_peak_bytes;
	uint64_t peak_time_ns;
	uint64_t tracked_growth_bytes; /* of its lines: live_bytes */
	int64_t untracked_bytes; /* of the growth from start to end, the rest */
	double growth_bytes_per_s; /* over the last half */
	uint64_t limit_bytes; /* RLS_COUNT_UNKNOWN: not known */
	double limit_in_s; /* from the end, at that rate; NAN: it does not grow, or no limit is known */
	bool out_of_memory; /* an allocation failed, or the kernel ended it */
};

/* The same over time, reduced to what shows its course. */
struct rls_memory_timeline_row {
	uint32_t pid;
	int32_t device;
	uint64_t time_ns;
	uint64_t rss_bytes;
	uint64_t live_bytes; /* of its lines; RLS_COUNT_UNKNOWN: some were counted in windows */
};

#endif
