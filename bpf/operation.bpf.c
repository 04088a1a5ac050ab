/* Operations: the annotation library's flush site. */
#include "bpf/operation.bpf.h"

_Static_assert(sizeof(((struct rls_wire_edges *)0)->edges) == RLS_EDGES_SENT * sizeof(struct rls_edge),
	       "they are copied as they are");

/* The name's text has been sent, or there is none. */
static __always_inline bool is_named(struct thread_state *thread, __u64 address)
{
	struct name_key key;

	return !address || find_name(thread, address, &key);
}

static __always_inline bool are_named(struct thread_state *thread, const struct rls_wire_edges *record)
{
	for (int i = 0; i < RLS_EDGES_SENT; i++) {
		if (!is_named(thread, record->edges[i].name))
			return false;
	}
	return true;
}

/* All of them in one record. Not where a name is new, the annotation ring ends amid them, or there is no room. */
static __always_inline bool send_together(struct thread_state *thread)
{
	struct rls_wire_edges *record;

	if (booking || (thread->edges_seen & (RLS_EDGE_RING - 1)) > RLS_EDGE_RING - RLS_EDGES_SENT)
		return false;
	record = bpf_ringbuf_reserve(&control, sizeof(*record), 0);
	if (!record)
		return false;
	if (bpf_probe_read_user(record->edges, sizeof(record->edges),
				(void *)EDGE_AT(thread->record, thread->edges_seen)) ||
	    !are_named(thread, record)) {
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return false;
	}
	fill_header(&record->header, sizeof(*record), RLS_WIRE_EDGES, thread->pid, thread->tid,
		    record->edges[0].time_ns);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	thread->edges_seen += RLS_EDGES_SENT;
	return true;
}

static __always_inline __u32 send_singly(struct thread_state *thread, __u64 count)
{
	struct rls_edge edge;
	__u32 i;

	for (i = 0; i < RLS_EDGES_SENT; i++) {
		if (i >= count ||
		    bpf_probe_read_user(&edge, sizeof(edge),
					(void *)EDGE_AT(thread->record, thread->edges_seen)))
			break;
		send_edge(thread, &edge, 0);
		thread->edges_seen++;
	}
	return i;
}

/* By the calibration, which books none. */
static __always_inline __u32 edges_cost(__u32 number, __u32 count)
{
	__u32 cold;

	if (booking)
		return count * RLS_BOOKED_EDGE * edge_cost_ns;
	cold = number < RLS_EDGES_COLD ? RLS_EDGES_COLD - number : 0;
	if (cold > count)
		cold = count;
	return cold * edge_cost_ns + (count - cold) * later_edge_cost_ns;
}

/* Global functions: verified by themselves, and not with all that follows them. */
__attribute__((noinline)) int send_edges(struct thread_state *thread, __u64 head, __u32 number)
{
	__u32 sent = RLS_EDGES_SENT;

	if (!thread)
		return 0;
	if (head - thread->edges_seen < RLS_EDGES_SENT || !send_together(thread))
		sent = send_singly(thread, head - thread->edges_seen);
	thread->pile.cost_ns += edges_cost(number, sent);
	return sent;
}

__attribute__((noinline)) int sync_before_switch(struct thread_state *thread)
{
	if (booking && thread)
		sync_operations(thread);
	return 0;
}

/* What no hit came after. Its record may be gone since the last one, so it is looked up anew. */
__attribute__((noinline)) int sync_before_exit(struct thread_state *thread)
{
	if (!thread || !thread->annotated || !recording_since_ns)
		return 0;
	find_record(thread);
	if (thread->record)
		sync_operations(thread);
	return 0;
}

/* Hit every RLS_EDGE_FLUSH edges and at a thread's end, only while someone listens. */
static __always_inline int handle_flush(struct pt_regs *ctx)
{
	__u64 record = READ_REGISTER(PT_REGS_PARM1(ctx));
	struct thread_state *thread = current_thread();

	if (!thread)
		return 0;
	/* At thread end the library has already hidden its record: the site's argument is it. */
	if (thread->annotated && !thread->record)
		thread->record = record;
	thread->pile.hits++;
	thread->pile.cost_ns += RLS_COOKIE_COST_NS(bpf_get_attach_cookie(ctx));
	sync_operations(thread);
	return 0;
}

/* Twice: for uprobe_multi links (kernel >= 6.6) and for perf events. */
SEC("uprobe.multi")
int on_flush_multi(struct pt_regs *ctx)
{
	return handle_flush(ctx);
}

SEC("uprobe")
int on_flush(struct pt_regs *ctx)
{
	return handle_flush(ctx);
}
