/* A part of a trace as a trace of its own: from one instant to another.
 *
 * What lies before is read and swept (sweep.h), and stands at the cut's beginning as the state
 * that each process and thread is in then; of what lies behind, what holds for the whole trace is
 * told: losses, the budget, warnings. GPU work is clipped to the part. A thread's reports of hits or of
 * waiting, and samples of waits, tell of a time that may begin before the cut or end after it: the
 * share by time is kept, and told at the cut's end at the latest. For that all is read before the end
 * is told. GPU work launched before the cut has no launch.
 */
#ifndef RLS_SLICE_SOURCE_H
#define RLS_SLICE_SOURCE_H

#include "analysis/event/event_source.h"

/* Takes the source over, also on failure. Nanoseconds since the trace's first instant;
 * from_ns < to_ns; to_ns UINT64_MAX: to its end. Reading fails with -ERANGE when the trace ends
 * before from_ns. 0 and *out, or -ENOMEM. */
int rls_slice_source_new(struct rls_event_source *source, uint64_t from_ns, uint64_t to_ns,
			 struct rls_event_source **out);

#endif
