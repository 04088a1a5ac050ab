/* Reading a thread's annotation record (userspace/annotate/annotate_wire.h).
 *
 * The annotation library never traps; whatever the thread wrote since its last probe hit
 * is read at the next one, with the times it wrote. All of it is the target's memory:
 * counts are bounded, pointers only ever dereferenced by bpf_probe_read_user.
 */
#ifndef RLS_OPERATION_BPF_H
#define RLS_OPERATION_BPF_H

#include "bpf/shared/clock.bpf.h"
#include "bpf/state.bpf.h"
#include "userspace/annotate/annotate_wire.h"

#define EDGES_PER_HIT RLS_EDGE_FLUSH
#define RECORD_FIELD(record, field) ((record) + __builtin_offsetof(struct rls_thread_record, field))
#define EDGE_AT(record, number)                                                                    \
	(RECORD_FIELD(record, edges) + ((number) & (RLS_EDGE_RING - 1)) * sizeof(struct rls_edge))

/* The text of a name goes ahead of its first use, once per process. Returns its id in totals_mode,
 * else 1; 0 for no name, and when there was no room to send it. */
extern int send_name(struct thread_state *thread, __u64 address);

/* One edge, to user space or the totals; flags: RLS_WIRE_STACK_END or none. A global function: the verifier looks at it
 * once, not at each step of the loops that call it. */
extern int send_edge(struct thread_state *thread, const struct rls_edge *edge, __u32 flags);

/* The whole stack as it is now, where single edges cannot tell. */
SUBPROGRAM void send_stack(struct thread_state *thread, __u64 head)
{
	struct rls_edge edge = {.kind = RLS_WIRE_EDGE_STACK};
	__u64 record = thread->record;
	__u32 depth = 0;

	if (head)
		bpf_probe_read_user(&edge.time_ns, sizeof(edge.time_ns),
				    (void *)EDGE_AT(record, head - 1));
	edge.time_ns -= thread->clock_ahead_ns;
	if (!head || edge.time_ns < recording_since_ns)
		edge.time_ns = recording_since_ns;
	bpf_probe_read_user(&depth, sizeof(depth), (void *)RECORD_FIELD(record, depth));
	if (depth > RLS_STACK_MAX)
		depth = RLS_STACK_MAX;
	if (totals_mode) { /* the innermost will do */
		edge.depth = depth;
		if (depth)
			edge.name = word_at(RECORD_FIELD(record, stack) +
					    ((depth - 1) & (RLS_STACK_MAX - 1)) * sizeof(__u64));
		send_edge(thread, &edge, RLS_WIRE_STACK_END);
		return;
	}
	if (!depth)
		send_edge(thread, &edge, RLS_WIRE_STACK_END);
	for (__u32 i = 0; i < RLS_STACK_MAX; i++) {
		if (i >= depth || thread->missed & MISSED_EDGES)
			break;
		edge.name = word_at(RECORD_FIELD(record, stack) + i * sizeof(__u64));
		edge.depth = i + 1;
		send_edge(thread, &edge, i + 1 == depth ? RLS_WIRE_STACK_END : 0);
	}
}

/* First sight of the record. Edges made since recording began can be replayed when the ring
 * still holds all there ever were; else the stack as it is has to do. */
static __always_inline bool replayable(const struct thread_state *thread, __u64 head)
{
	__u64 first_ns = 0;

	if (!head || head > RLS_EDGE_RING)
		return false;
	bpf_probe_read_user(&first_ns, sizeof(first_ns), (void *)EDGE_AT(thread->record, 0));
	return first_ns - thread->clock_ahead_ns >= recording_since_ns;
}

/* Up to RLS_EDGES_SENT of them; number: which one of the hit's comes first. Returns how many. */
extern int send_edges(struct thread_state *thread, __u64 head, __u32 number);

/* At most EDGES_PER_HIT: the library calls its flush site as often, the rest comes then. */
static __always_inline void read_edges(struct thread_state *thread, __u64 head)
{
	for (__u32 i = 0; i < EDGES_PER_HIT; i += RLS_EDGES_SENT) {
		if (thread->edges_seen == head || !send_edges(thread, head, i))
			break;
	}
}

/* Where edges are gone, unread or unsent: the stack, and what was not read is counted. */
static __always_inline bool must_send_stack(struct thread_state *thread, __u64 head)
{
	bool missed = thread->missed & MISSED_EDGES;

	thread->missed &= ~MISSED_EDGES; /* what is sent now may raise it anew */
	if (!thread->record_seen) {
		thread->record_seen = 1;
		thread->edges_seen = 0;
		return !replayable(thread, head);
	}
	if (head - thread->edges_seen <= RLS_EDGE_RING)
		return missed;
	__sync_fetch_and_add(&drops[RLS_DROP_EDGES], head - thread->edges_seen);
	return true;
}

SUBPROGRAM void find_record(struct thread_state *thread)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 thread_pointer = BPF_CORE_READ(task, thread.fsbase);

	thread->record = word_at(thread_pointer + thread->annotate_offset);
}

/* Sends every edge that the running thread has made since it was last here. */
static __always_inline void sync_operations(struct thread_state *thread)
{
	__u64 head = 0;

	if (!thread->annotated)
		return;
	if (!thread->record) {
		find_record(thread);
		if (!thread->record)
			return;
	}
	if (bpf_probe_read_user(&head, sizeof(head), (void *)RECORD_FIELD(thread->record, head)))
		return;
	if (thread->record_seen && head == thread->edges_seen && !(thread->missed & MISSED_EDGES))
		return;
	thread->clock_ahead_ns = clock_ahead_ns(bpf_get_current_task_btf());
	if (must_send_stack(thread, head)) {
		send_stack(thread, head);
		thread->edges_seen = head;
	}
	read_edges(thread, head);
}

/* The same of a thread that may not have met a probe yet, if it ever does. On the thread itself; edges only while none
 * of our other programs is under way on it. */
static __always_inline void read_annotations(struct thread_state *thread, struct task_struct *task,
					     bool edges)
{
	if (thread->generation != settings_generation) {
		struct rls_wire_process *process = bpf_map_lookup_elem(&tracked, &thread->pid);

		if (!process)
			return;
		load_settings(thread, process);
	}
	if (!thread->annotated)
		return;
	if (!thread->announced) {
		find_record(thread);
		if (!thread->record)
			return;
		announce(thread, task);
	}
	if (edges)
		sync_operations(thread);
}

#endif
