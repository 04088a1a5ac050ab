/* Ranges while totals are kept: the innermost operation of a thread that also has ranges of other
 * APIs.
 *
 * A recorder is sent every push and pop, and it keeps the stack (record/events/operation_stack.h).
 * Where the kernel side adds up times, it keeps the stack itself. Ranges and annotations nest in
 * the order of time. Of the annotations only the innermost one and their depth are needed: each
 * range holds the lowest depth that they have had since it was pushed.
 *
 *     annotations   depth 1 "train"   depth 2 "step"
 *     ranges                 ^ "forward", over 1      inner: step, for 2 > 1; after its pop: forward
 *
 * The RLS_RANGES_OPEN outermost ranges of a thread are distinguished. The functions are global, so
 * the verifier checks each once.
 */
#ifndef RLS_RANGE_TOTALS_BPF_H
#define RLS_RANGE_TOTALS_BPF_H

#include "bpf/shared/maps.bpf.h"

struct rls_edge;

/* An edge of the thread's annotations, at at_ns; `name` is the id of what is innermost after it. */
extern int range_totals_annotation(struct thread_state *thread, __u64 at_ns, __u32 name,
				   const struct rls_edge *edge);
/* A range begins whose name is in thread->ranges.text, padded with zeros. The token pairs it with
 * its end; 0: that of the innermost one. */
extern int range_totals_push(struct thread_state *thread, __u64 now_ns, __u64 token);
extern int range_totals_pop(struct thread_state *thread, __u64 now_ns, __u64 token);
/* Whether the range whose name is in thread->ranges.text is of PyTorch's own making. */
extern int is_library_own(struct thread_state *thread);
/* Which are open is not known any more. */
extern int range_totals_clear(struct thread_state *thread);
/* The child has those of its parent. */
extern int range_totals_fork(const struct thread_state *parent, struct thread_state *child);

#endif
