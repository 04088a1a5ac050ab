/* Untraced time: apportioned among categories and operations once a sweep is over. */
#ifndef RLS_ESTIMATE_UNTRACED_H
#define RLS_ESTIMATE_UNTRACED_H

#include "analysis/timeline/timeline.h"

/* After rls_sweep_end: Python's time in code without a role becomes native (roleless_code.h),
 * untraced time goes into the cells of the scopes (untraced_time.h), and time without an operation
 * into operations found by samples (sampled_operations.h). 0, or -ENOMEM. */
int rls_estimate_untraced(struct rls_timeline *timeline);

#endif
