/* Inheritance: the operations of helper threads.
 *
 * A thread that never had an operation of its own (autograd, data loading) works for a thread that
 * waits for it, and has the operations of that thread. Which thread waits is not known. It is
 * assumed to be the process's annotated thread, the main one if there are several. Edges arrive
 * late, so what a new helper thread inherits is reported with the next edge, when it is certain.
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
