/* Thread life: which thread an event is about, and where the thread's time is added up while it
 * lives. Private to the sweep (sweep.h), which says when a life begins and ends.
 *
 * Functions that return int: 0 or -ENOMEM.
 */
#ifndef RLS_THREAD_LIFE_H
#define RLS_THREAD_LIFE_H

#include "analysis/timeline/timeline.h"

/* The process, made if it was never heard of. *out NULL: there is none, nothing to do. */
int rls_thread_life_find_process(struct rls_timeline *timeline, const struct rls_event *event,
				 struct rls_process **out);
/* The living thread, begun if it was never heard of or if the event proves it alive again.
 * *out NULL: there is none, nothing to do. */
int rls_thread_life_find_thread(struct rls_timeline *timeline, const struct rls_event *event,
				struct rls_thread **out);

/* Adds the thread's time up to now. */
int rls_thread_life_close_span(struct rls_timeline *timeline, struct rls_thread *thread);
/* Before the thread's category, stack or phase changes: passes the time in it to the observer. */
int rls_thread_life_show_state(struct rls_timeline *timeline, struct rls_thread *thread);
/* The same of the process's phase. */
int rls_thread_life_show_phase(struct rls_timeline *timeline, struct rls_process *process);
/* The scope of the thread's stack in the process's phase, made if it is not there. NULL: no memory. */
struct rls_scope *rls_thread_life_scope(struct rls_timeline *timeline, struct rls_thread *thread);
/* Adds what the GPU did since the process was left without threads. */
int rls_thread_life_add_alone(struct rls_timeline *timeline, struct rls_process *process,
			      uint64_t busy_ns);

void rls_thread_life_start_process(struct rls_timeline *timeline, struct rls_process *process);
int rls_thread_life_end_thread(struct rls_timeline *timeline, struct rls_thread *thread);
int rls_thread_life_end_process(struct rls_timeline *timeline, struct rls_process *process);
int rls_thread_life_end_processes(struct rls_timeline *timeline);

#endif
