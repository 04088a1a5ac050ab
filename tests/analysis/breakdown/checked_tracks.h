/* A track sink that checks what it is given: slices nest, in time order, and their sums are
 * those of the report. */
#ifndef RLS_TEST_CHECKED_TRACKS_H
#define RLS_TEST_CHECKED_TRACKS_H

#include "analysis/report/report.h"
#include "analysis/timeline/tracks.h"

/* A failed assertion when out of memory. Give rls_report_build_tracks what it returns, then
 * call rls_tracks_finish with the report: that is where sums are compared. */
struct rls_tracks *checked_tracks_new(void);

#endif
