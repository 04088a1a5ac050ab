/* Operations: the annotation library's flush site. */
#include "bpf/operation.bpf.h"
#include "bpf/name.bpf.h"
#include "bpf/range_totals.bpf.h"

_Static_assert(sizeof(((struct rls_wire_edges *)0)->edges) ==
		       RLS_EDGES_SENT * sizeof(struct rls_edge),
	       "they are copied as they are");
_Static_assert(RLS_NAME_BYTES == RLS_WIRE_NAME_BYTES, "so are names");

__attribute__((noinline)) int send_name(struct thread_state *thread, __u64 address)
{
	__u64 text = address + __builtin_offsetof(struct rls_name, text);
	struct rls_wire_name *record;
	struct name_key key;
	__u32 id, head[2]; /* length, flags */
	__u8 last;

	if (!thread || !address)
		return 0;
	id = find_name(thread, address, &key);
	if (id)
		return id;
	/* On two pages at most: with both ends all of the text can be read. It is not read here, as the stack has no room
	 * for it. What lies behind the text may be on a page that libraries before 0.2.0 have never touched. */
	if (bpf_probe_read_user(head, sizeof(head), (void *)address))
		return RLS_TOTALS_UNREADABLE;
	if (head[0] >= RLS_WIRE_NAME_BYTES)
		head[0] = RLS_WIRE_NAME_BYTES - 1;
	if (bpf_probe_read_user(&last, sizeof(last), (void *)(text + head[0])))
		return RLS_TOTALS_UNREADABLE;
	record = begin_name(thread, &key);
	if (!record)
		return 0;
	record->length = head[0];
	if (head[1] & RLS_NAME_STANDS_FOR_OTHERS)
		record->header.flags = RLS_WIRE_NAME_OTHERS;
	/* Else as far as its end. */
	if (bpf_probe_read_user(record->text, RLS_WIRE_NAME_BYTES, (void *)text))
		bpf_probe_read_user_str(record->text, RLS_WIRE_NAME_BYTES, (void *)text);
	return end_name(record, &key);
}

/* Nothing is sent of an edge in totals_mode but its name. Its time is the target's word. */
static __always_inline void totals_edge(struct thread_state *thread, const struct rls_edge *edge)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 name = send_name(thread, edge->name);

	if (edge->name && !name)
		thread->missed |= MISSED_EDGES;
	if (edge->time_ns < now_ns)
		now_ns = edge->time_ns;
	if (edge->kind == RLS_EDGE_PHASE)
		totals_phase(thread, now_ns, name);
	else if (edge->kind == RLS_EDGE_POP || edge->kind == RLS_WIRE_EDGE_STACK ||
		 (edge->kind == RLS_EDGE_PUSH && edge->depth <= RLS_STACK_MAX))
		range_totals_annotation(thread, now_ns, name, edge);
}

__attribute__((noinline)) int send_edge(struct thread_state *thread, const struct rls_edge *edge,
					__u32 flags)
{
	struct rls_wire_edge *record;

	if (!thread || !edge)
		return 0;
	if (totals_mode) {
		totals_edge(thread, edge);
		return 0;
	}
	send_name(thread, edge->name);
	record = control_reserve(struct rls_wire_edge, RLS_WIRE_EDGE, thread->pid, thread->tid,
				 edge->time_ns);
	if (!record) {
		thread->missed |= MISSED_EDGES;
		return 0;
	}
	record->header.flags = flags;
	record->name = edge->name;
	record->edge = edge->kind;
	record->depth = edge->depth;
	record->flags = edge->flags;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

/* The name's text has been sent, or there is none. */
static __always_inline bool is_named(struct thread_state *thread, __u64 address)
{
	struct name_key key;

	return !address || find_name(thread, address, &key);
}

static __always_inline bool are_named(struct thread_state *thread,
				      const struct rls_wire_edges *record)
{
	for (int i = 0; i < RLS_EDGES_SENT; i++) {
		if (!is_named(thread, record->edges[i].name))
			return false;
	}
	return true;
}

static __always_inline void to_host_clock(const struct thread_state *thread,
					  struct rls_wire_edges *record)
{
	__s64 ahead_ns = thread->clock_ahead_ns;

	for (int i = 0; ahead_ns && i < RLS_EDGES_SENT; i++)
		record->edges[i].time_ns -= ahead_ns;
}

/* All of them in one record. Not where a name is new, the annotation ring ends amid them, or there is no room. */
static __always_inline bool send_together(struct thread_state *thread)
{
	struct rls_wire_edges *record;

	if (totals_mode ||
	    (thread->edges_seen & (RLS_EDGE_RING - 1)) > RLS_EDGE_RING - RLS_EDGES_SENT)
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
	to_host_clock(thread, record);
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
		edge.time_ns -= thread->clock_ahead_ns;
		send_edge(thread, &edge, 0);
		thread->edges_seen++;
	}
	return i;
}

/* By the calibration, which has no totals. */
static __always_inline __u32 edges_cost(__u32 number, __u32 count)
{
	__u32 cold;

	if (totals_mode)
		return count * RLS_TOTALS_EDGE * edge_cost_ns;
	cold = number < RLS_EDGES_COLD ? RLS_EDGES_COLD - number : 0;
	if (cold > count)
		cold = count;
	return cold * edge_cost_ns + (count - cold) * later_edge_cost_ns;
}

/* A global function: verified by itself, and not with all that follows it. */
__attribute__((noinline)) int send_edges(struct thread_state *thread, __u64 head, __u32 number)
{
	__u32 sent = RLS_EDGES_SENT;

	if (!thread)
		return 0;
	if (head - thread->edges_seen < RLS_EDGES_SENT || !send_together(thread))
		sent = send_singly(thread, head - thread->edges_seen);
	thread->hit_totals.cost_ns += edges_cost(number, sent);
	return sent;
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
	thread->hit_totals.hits++;
	thread->hit_totals.cost_ns += RLS_COOKIE_COST_NS(bpf_get_attach_cookie(ctx));
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
