/* The threads' overviews as JSON, for the page to draw a timeline from. */
#ifndef RLS_HTML_OVERVIEW_H
#define RLS_HTML_OVERVIEW_H

#include <stdio.h>

#include "analysis/report/rows.h"

/* {"start_ns": 0, "end_ns": 0, "threads": [{"pid": 1, "tid": 1, "shift": 20, "first": 0,
 *   "keys": [["phase", "operation", "category"], ...],
 *   "runs": [skip, buckets, key, wall_ns, gpu_ns, ...]}]}
 *
 * A run is one key for so many buckets of 2^shift ns, beginning `skip` buckets after the
 * beginning of the run before it, the first at bucket `first`. In a run of several buckets
 * the key has all of the time. An operation is null where several are not distinguished.
 * 0, or -ENOMEM. */
int rls_html_overview_write(const struct rls_report *report, FILE *out);

#endif
