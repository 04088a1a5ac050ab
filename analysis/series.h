/* Series: a trace's figures by operation and category, window of time by window of time.
 *
 * How much a figure varies from window to window within one recording says how far it can be
 * trusted when two recordings are compared (compare.h). Windows are equally long; there are at
 * most RLS_SERIES_WINDOWS of them, however long the trace: when they are used up, each two
 * become one. Summed over threads, processes and phases.
 */
#ifndef RLS_SERIES_H
#define RLS_SERIES_H

#include "report.h"

#define RLS_SERIES_WINDOWS 64
/* The first width; it only grows. */
#define RLS_SERIES_WIDTH_NS 50000000

struct rls_series_figure {
	const char *operation;
	enum rls_category category;
	double wall_ns[RLS_SERIES_WINDOWS];
	double corrected_ns[RLS_SERIES_WINDOWS];
	double cpu_ns[RLS_SERIES_WINDOWS];      /* of corrected_ns, what the threads really ran */
};

struct rls_series_operation {
	const char *operation;
	double entries[RLS_SERIES_WINDOWS];
};

struct rls_series {
	size_t window_count;
	uint64_t width_ns;
	uint64_t last_width_ns;     /* of the last, which is shorter */
	struct rls_series_figure *figures;
	size_t figure_count;
	struct rls_series_operation *operations;
	size_t operation_count;
	struct rls_report *report;      /* of the same trace; owns the names */
};

/* Reads a source to its end. 0 and *out; -errno. */
int rls_series_read(struct rls_event_source *source, struct rls_series **out);
void rls_series_free(struct rls_series *series);

#endif
