/* The end of a thread's off-CPU period: which records are sent of it.
 *
 *     out: begins (sample.bpf.c) ── away ── in: how long (emit.bpf.h) ─▶ at once, or when it is out again
 *
 * The kernel may not report a return. Then the next hit of a probe detects and notes it, and the
 * records are sent at the next switch.
 */
#ifndef RLS_WAIT_BPF_H
#define RLS_WAIT_BPF_H

#include "bpf/category_sample.bpf.h"
#include "bpf/wire/stack.h"

extern struct ring_map samples SEC(".maps");

static __always_inline void send_waited(const struct thread_state *thread)
{
	struct rls_wire_waited *record = bpf_ringbuf_reserve(&samples, sizeof(*record), 0);

	if (!record) {
		count_drop(RLS_DROP_SAMPLES);
		return;
	}
	fill_header(&record->header, sizeof(*record), RLS_WIRE_WAITED, thread->pid, thread->tid,
		    thread->wait.end_ns);
	record->since_ns = thread->wait.since_ns;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* The wait is over. add_off_cpu was called before. */
SUBPROGRAM void end_wait(struct thread_state *thread, struct task_struct *task)
{
	__u8 open = thread->wait.open;

	if (!open)
		return;
	thread->wait.open = 0;
	if (open & WAIT_ASLEEP)
		note_phase(thread->wait.end_ns);
	if (category_samples_taken() && !totals_mode && open & WAIT_KEPT)
		send_pause(thread, task, thread->wait.away_ns);
	if (stacks_sampled && open & WAIT_REPORTED)
		send_waited(thread);
}

#endif
