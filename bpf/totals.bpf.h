/* Totals: each thread's time is added up here, where a recorder would be sent an event instead.
 *
 *     a transition ─┐
 *     an edge       ├─▶ take the time since the last of these ─▶ totals of (process, operation,
 *     a flush ──────┘                                             phase, category)
 *
 * The state of a thread is one word, its category and since when, and its operation. The states of
 * a process lie together in its scope, so that an edge of one thread can divide the time of the
 * threads that inherit its operation. Threads beyond RLS_TOTALS_THREADS_MAX keep a state of their own.
 * Their time is divided only at their own transitions and at flushes, and goes to the operation
 * that their process is in then. A change of phase divides the time of every thread.
 *
 * An edge is read when its thread next meets a probe, a sample or a flush of the annotation
 * library, or when it waits. What another thread adds in between goes to the operation before the
 * edge.
 *
 * The functions are global: the verifier checks each once, not once for every call.
 */
#ifndef RLS_TOTALS_BPF_H
#define RLS_TOTALS_BPF_H

#include "bpf/shared/maps.bpf.h"

struct rls_edge;

/* Whether the process may have one more name. */
extern int totals_may_name(__u32 pid);
/* The thread's totals begin; its scope too if user space has not. */
extern int totals_begin(struct thread_state *thread, __u64 since_ns, __u32 category);
/* It has gone over into category. */
extern int totals_transition(struct thread_state *thread, __u64 now_ns, __u32 category, __u32 site);
/* Its operation is this name (0: none) from at_ns on. */
extern int totals_operation(struct thread_state *thread, __u64 at_ns, __u32 operation);
/* Its process's phase is. */
extern int totals_phase(struct thread_state *thread, __u64 at_ns, __u32 phase);
/* Up to now, with what its hits have cost: on the thread itself. */
extern int totals_hits(struct thread_state *thread, __u64 now_ns);
/* Up to now, from anywhere. */
extern int totals_flush(struct thread_state *thread, __u64 now_ns);
/* It leaves its CPU to wait, on the thread itself. What it is in between windows is not known while
 * it runs; while it waits it stays where it was. */
extern int totals_leave(struct thread_state *thread, __u64 now_ns);
/* Nobody saw it leave: it waits, as far as is known since its totals began. From anywhere. */
extern int totals_waits(struct thread_state *thread);
/* It comes back to a CPU after away_ns, of its own will or not. */
extern int totals_return(struct thread_state *thread, __u64 now_ns, __u64 away_ns);
/* The child goes on where its parent is. */
extern int totals_fork(struct thread_state *parent, struct thread_state *child, __u64 now_ns);
/* A new program: in no operation, no phase, nothing known. */
extern int totals_exec(struct thread_state *thread, __u64 now_ns);
/* The thread ends. */
extern int totals_close(struct thread_state *thread, __u64 now_ns);
/* A CUPTI bridge of the process sends what the GPU did: from now on the categories of its
 * threads are sent to user space, and first those that they are in already. */
extern int totals_bridge(__u32 pid);
/* Fills in what its time is added to now. */
extern int totals_sample(struct thread_state *thread, struct rls_wire_category_sample *sample);

#endif
