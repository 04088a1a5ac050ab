/* Sweep: one pass over the events in time order, from which every figure comes.
 *
 * The algorithm is RL-Scope's cross-stack overlap (MLSys 2021, 3.3), made streaming. A thread has
 * one open span. It is closed and added to the totals whenever the thread's category, operation or
 * phase changes. The process's busy function (gpu_busy.h) says for how much of a closed span the
 * GPU was busy, so no thread is sliced at GPU edges.
 *
 * The life of a thread or process begins at its THREAD or PROCESS event, or without one at the
 * first event about it. It ends at THREAD_END, PROCESS_END, the end mark, or the last instant of
 * the trace. Warnings, losses, calibration, host and libraries have no instant that matters.
 */
#ifndef RLS_SWEEP_H
#define RLS_SWEEP_H

#include "analysis/timeline/timeline.h"

/* Whether the next event's instant counts: a trace begins with the first one that does. It does not
 * for kinds without one, for GPU work whose times cannot be, and when it lies before the last one. */
bool rls_sweep_counts(const struct rls_timeline *timeline, const struct rls_event *event);

/* The next event, not before the last one. 0, or -ENOMEM. */
int rls_sweep_event(struct rls_timeline *timeline, const struct rls_event *event);

/* No event is left: ends every life. 0, or -ENOMEM. */
int rls_sweep_end(struct rls_timeline *timeline);

#endif
