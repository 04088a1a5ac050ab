/* Edits of a report while it is made: strings, warnings, the order of its tables. */
#ifndef RLS_REPORT_EDIT_H
#define RLS_REPORT_EDIT_H

#include "analysis/report/rows.h"
#include "analysis/timeline/timeline.h"

/* An empty report with its string pool. 0, or -ENOMEM. */
int rls_report_new(struct rls_report **out);

/* Interns text; "" and *err = -ENOMEM when there is no memory. *err is left alone otherwise,
 * so that a run of calls needs one check. */
const char *rls_report_keep(struct rls_report *report, const char *text, int *err);

/* Appends a warning. 0, or -ENOMEM. */
int rls_report_warn(struct rls_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Fills an empty report from a finished timeline whose strings are in `strings`. 0, or
 * -ENOMEM. */
int rls_report_from_timeline(struct rls_report *report, const struct rls_timeline *timeline,
			     const struct rls_string_pool *strings, bool damaged);

/* Sorts every table by its keys, and sums those whose rows are distinct. */
void rls_report_sort(struct rls_report *report);

/* percent from estimated_ns and the threads' wall time. */
void rls_report_set_percent(struct rls_report *report);

#endif
