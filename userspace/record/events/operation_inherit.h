/* Inheritance: the operations of helper threads.
 *
 * A thread that never had an operation of its own (autograd, data loading) works for a thread that
 * waits for it, and has the operations of that thread, its source. Which thread waits is not known.
 * It is assumed to be the process's annotated thread, the main one if there are several.
 *
 *     source   ───┤ rollout ├───────┤ update ├──▶ edges arrive late, with the time they were made
 *     helper           ├──────────────────┤       gets each of them that lies in its life
 *
 * Operations at an instant are certain when a later edge of the source has arrived, or when none
 * will come any more. Until then a new helper waits for its first operation, and a helper that has
 * ended stays known. The latest edges are kept for helpers that are met late.
 *
 * Helpers do not enter the operations that they inherit (event.h: continued).
 */
#ifndef RLS_OPERATION_INHERIT_H
#define RLS_OPERATION_INHERIT_H

#include "userspace/record/events/event_sink.h"
#include "userspace/record/events/thread_table.h"

/* Ended helpers whose last operations are not certain; of more the oldest are let go. */
#define RLS_ENDED_HELPERS_MAX 4096
/* Edges of the source that are kept. */
#define RLS_SOURCE_EDGES_KEPT 32

/* Before an operation of the thread's own changes at time_ns. */
int rls_operation_inherit_before(const struct rls_event_sink *sink,
				 struct rls_live_process *process, struct rls_live_thread *thread,
				 uint64_t time_ns);
/* After it: emits the operations of its helpers. 0, -ENOMEM or the sink's error. */
int rls_operation_inherit_after(const struct rls_event_sink *sink, struct rls_live_process *process,
				const struct rls_live_thread *thread, uint64_t time_ns);
/* The thread ends; its own last edge has arrived. */
int rls_operation_inherit_end(const struct rls_event_sink *sink, struct rls_live_process *process,
			      struct rls_live_thread *thread, uint64_t time_ns);
/* Of this process no more edges will come. */
int rls_operation_inherit_finish(const struct rls_event_sink *sink,
				 struct rls_live_process *process);

#endif
