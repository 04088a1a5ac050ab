/* Slice: a part of a trace as a trace of its own, from one instant to another.
 *
 * What lies before the slice is read and swept (sweep.h). The slice begins with the state that
 * each process and thread has then. Of what lies behind, only what holds for the whole trace is
 * passed on: losses, the budget, warnings. GPU work is clipped to the slice. A thread's reports of
 * hits or of waiting, and samples of waits, cover a time that may begin before the slice or end
 * after it: the share by time is kept, and is passed on at the slice's end at the latest. So the
 * whole trace is read before the end is passed on. GPU work launched before the slice has no
 * launch.
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
