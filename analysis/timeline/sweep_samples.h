/* Handlers of the sweep: what samples say of threads. Private to sweep*.c. Each returns 0 or -ENOMEM. */
#ifndef RLS_SWEEP_SAMPLES_H
#define RLS_SWEEP_SAMPLES_H

#include "analysis/event/event.h"
#include "analysis/timeline/timeline.h"

/* SHARE: a category sample. */
int rls_sweep_share(struct rls_timeline *timeline, const struct rls_event *event);

/* SAMPLE, FRAME, OPERATION_RULE: stack samples, their frames, and what operations they are in. */
int rls_sweep_sample(struct rls_timeline *timeline, const struct rls_event *event);
int rls_sweep_frame(struct rls_timeline *timeline, const struct rls_event *event);
int rls_sweep_operation_rule(struct rls_timeline *timeline, const struct rls_event *event);

#endif
