/* Inherit: the operations of helper threads.
 *
 * A thread that never had an operation of its own (autograd, data loading) works for the one
 * that waits for it: it has that thread's operations. Who waits is not known; it is taken to
 * be the process's annotated thread, the main one if there are several. Edges are heard of
 * late, so what a new helper inherits is told with the next edge, when it is certain.
 */
#ifndef RLS_OPERATION_OPERATION_INHERIT_H
#define RLS_OPERATION_OPERATION_INHERIT_H

#include "userspace/record/events/event_sink.h"
#include "userspace/record/events/thread_table.h"

/* Before an operation of the thread's own changes at time_ns. */
int rls_operation_inherit_before(const struct rls_event_sink *sink,
				 struct rls_live_process *process, struct rls_live_thread *thread,
				 uint64_t time_ns);
/* After it: tells the thread's operations, and those of its helpers. */
int rls_operation_inherit_after(const struct rls_event_sink *sink, struct rls_live_process *process,
				const struct rls_live_thread *thread, uint64_t time_ns);
/* The thread ends, or the recording: no later edge will come. */
int rls_operation_inherit_last(const struct rls_event_sink *sink, struct rls_live_process *process,
			       struct rls_live_thread *thread);

#endif
