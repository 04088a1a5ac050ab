/* Sending records: reserve a place, fill it, submit it. Every refusal is counted.
 *
 * The transitions ring is our own (bpf/wire/). It never wakes its reader: user space reads it
 * every few milliseconds, which costs the target nothing. The control ring wakes its reader, for
 * records that must be acted on.
 */
#ifndef RLS_EMIT_BPF_H
#define RLS_EMIT_BPF_H

#include "bpf/shared/control.bpf.h"
#include "bpf/shared/maps.bpf.h"
#include "bpf/shared/off_cpu.bpf.h"
#include "bpf/totals.bpf.h"

/* Half of the ring is kept for records that must not be lost. The next hit totals show an
 * off-CPU period that was not sent. */
static __always_inline bool submit_off_cpu(const struct thread_state *thread, __u64 until_ns,
					   __u64 away_ns, __u64 before_ns)
{
	struct rls_wire_off_cpu *record;

	if (bpf_ringbuf_query(&control, BPF_RB_AVAIL_DATA) >
	    bpf_ringbuf_query(&control, BPF_RB_RING_SIZE) / 2)
		return false;
	record = bpf_ringbuf_reserve(&control, sizeof(*record), 0);
	if (!record)
		return false;
	fill_header(&record->header, sizeof(*record), RLS_WIRE_OFF_CPU, thread->pid, thread->tid,
		    until_ns);
	record->away_ns = away_ns;
	record->before_ns = before_ns;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return true;
}

static __always_inline bool send_off_cpu(struct thread_state *thread)
{
	if (!submit_off_cpu(thread, thread->period.until_ns, thread->period.away_ns,
			    thread->period.before_ns))
		return false;
	thread->hit_totals.sent_ns += thread->period.away_ns + thread->period.before_ns;
	thread->period.away_ns = 0;
	return true;
}

/* A period by itself, with its begin and end, as the thread may have changed operations since the last hit and may
 * again before the next. Where there is no room, the next hit totals have it alone; before the thread is announced
 * the latest waits for that. */
static __always_inline void report_off_cpu(struct thread_state *thread, __u64 until_ns,
					   __u64 away_ns)
{
	__u64 unsent_ns = thread->hit_totals.off_cpu_ns - thread->hit_totals.sent_ns;
	__u64 latest_ns = thread->period.away_ns ? thread->period.until_ns : 0;

	/* What the latest one waits with is known: only what came since counts. */
	if (latest_ns &&
	    unsent_ns - thread->period.away_ns - thread->period.before_ns < RLS_OFF_CPU_SENT_NS)
		return;
	if (unsent_ns < RLS_OFF_CPU_SENT_NS)
		return;
	thread->period.until_ns = until_ns;
	thread->period.away_ns = away_ns;
	thread->period.before_ns = unsent_ns - away_ns;
	if (thread->announced && !send_off_cpu(thread))
		thread->period.away_ns = 0;
}

static __always_inline __u64 add_off_cpu(struct thread_state *thread,
					 const struct task_struct *task, __u64 now_ns)
{
	__u64 since_ns = thread->away.since_ns, away_ns = end_away(&thread->away, task, now_ns);

	thread->hit_totals.off_cpu_ns += away_ns;
	if (since_ns) {
		thread->wait.end_ns = since_ns + away_ns;
		thread->wait.away_ns = away_ns;
	}
	if (each_off_cpu && away_ns && thread->sequence)
		submit_off_cpu(thread, since_ns + away_ns, away_ns, 0);
	if (!each_off_cpu && !totals_mode && away_ns)
		report_off_cpu(thread, since_ns + away_ns, away_ns);
	return away_ns;
}

/* The thread runs, but the kernel did not report its return. (Nothing is known from before a
 * pause of the recording.) */
static __always_inline bool returned_unseen(const struct thread_state *thread)
{
	return thread->away.since_ns >= recording_since_ns;
}

static __always_inline void take_hit_totals(struct thread_state *thread,
					    struct rls_wire_hit_totals *out)
{
	*out = thread->hit_totals;
	thread->hit_totals.hits = 0;
	thread->hit_totals.cost_ns = 0;
	thread->hit_totals.off_cpu_ns = 0;
	thread->hit_totals.sent_ns = 0;
	thread->period.away_ns = 0;
}

/* Tells user space what stretch of the thread's time is uncertain. False when there is no
 * room for it either: kept for the next try. */
static __always_inline bool emit_loss(struct thread_state *thread, __u64 now_ns)
{
	struct rls_wire_loss *loss = control_reserve(struct rls_wire_loss, RLS_WIRE_LOSS,
						     thread->pid, thread->tid, now_ns);

	if (!loss)
		return false;
	loss->since_ns = thread->lost_since_ns;
	loss->lost = thread->lost;
	loss->reserved = 0;
	bpf_ringbuf_submit(loss, BPF_RB_NO_WAKEUP);
	thread->lost = 0;
	thread->lost_since_ns = 0;
	return true;
}

static __always_inline bool has_room(void)
{
	volatile __u64 *ends = transition_ends;
	__u64 read =
		ends[RLS_END_READ]; /* first: it goes up meanwhile, but never beyond the other */

	return ends[RLS_END_TAKEN] - read < transitions_room;
}

/* A place on the transitions ring, in which there is room, and what to say when it is filled. */
static __always_inline struct rls_wire_place *take_place(__u64 *turn)
{
	__u64 position = __sync_fetch_and_add(&transition_ends[RLS_END_TAKEN], 1);
	__u32 key = position & transitions_mask;

	*turn = position + 1;
	return bpf_map_lookup_elem(&transitions, &key);
}

/* x86 shows stores in their order. */
static __always_inline void hand_over(struct rls_wire_place *place, __u64 turn)
{
	asm volatile("" ::: "memory");
	*(volatile __u64 *)&place->turn = turn;
}

/* NULL when there is no room: then the record is lost. Earlier losses are sent first, one record for
 * each stretch of losses, at its end: losses must not fill the control ring, and the record that
 * follows must not be lost itself. */
static __always_inline struct rls_wire_place *take_place_after_losses(struct thread_state *thread,
								      __u64 now_ns, __u64 *turn)
{
	struct rls_wire_place *place = NULL;

	if (has_room() && (!thread->lost || emit_loss(thread, now_ns)))
		place = take_place(turn);
	if (!place) {
		if (!thread->lost)
			thread->lost_since_ns = now_ns;
		thread->lost++;
		count_drop(RLS_DROP_TRANSITIONS);
	}
	return place;
}

/* Of the thread's next record. The clock is read where it is needed: most hits are silent. Times on a
 * thread differ, so that sorting by them keeps the order. */
static __always_inline __u64 next_event_ns(struct thread_state *thread)
{
	__u64 now_ns = bpf_ktime_get_ns();

	if (now_ns <= thread->event_ns)
		now_ns = thread->event_ns + 1;
	thread->event_ns = now_ns;
	return now_ns;
}

/* What each record on the transitions ring begins with. */
static __always_inline void fill_event(struct thread_state *thread, struct rls_wire_header *header,
				       __u16 bytes, __u8 kind, __u64 now_ns,
				       struct rls_wire_hit_totals *hit_totals)
{
	if (returned_unseen(thread))
		add_off_cpu(thread, bpf_get_current_task_btf(), now_ns);
	fill_header(header, bytes, kind, thread->pid, thread->tid, now_ns);
	header->sequence = thread->sequence;
	take_hit_totals(thread, hit_totals);
}

/* The thread's category becomes `category` now; one record on the transitions ring. */
static __always_inline void emit_category_here(struct thread_state *thread, __u8 category,
					       __u32 site)
{
	struct rls_wire_place *place;
	struct rls_wire_category *event;
	__u64 now_ns = next_event_ns(thread), turn;
	__u8 from = thread->category;

	thread->category = category;
	thread->sequence++;
	if (totals_mode) {
		totals_transition(thread, now_ns, category, site);
		return;
	}
	place = take_place_after_losses(thread, now_ns, &turn);
	if (!place)
		return;
	event = &place->event;
	fill_event(thread, &event->header, sizeof(*event), RLS_WIRE_CATEGORY, now_ns,
		   &event->hit_totals);
	thread->hit_totals.cost_ns += event_cost_ns; /* it is yet to come: the next event's */
	event->category = category;
	event->from = from;
	event->depth = thread->depth;
	event->site = site;
	hand_over(place, turn);
}

/* The same as a function of its own, which the verifier walks once and not for each frame that is left. */
extern int emit_category(struct thread_state *thread, __u8 category, __u32 site);

#endif
