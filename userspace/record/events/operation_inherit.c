#include "userspace/record/events/operation_inherit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"

static int emit_inherited(const struct rls_event_sink *sink, uint32_t pid, uint32_t tid,
			  const struct rls_operation_stack *operations, uint64_t time_ns)
{
	return rls_emit_operation(
		sink, &(struct rls_thread_operations){pid, tid, operations, operations->count},
		time_ns);
}

static struct rls_live_thread *source_of(const struct rls_live_process *process)
{
	return process->annotated_tid
		       ? rls_index_map_get(&process->threads, process->annotated_tid, 0)
		       : NULL;
}

/* ---- the source's latest edges ---- */

static const struct rls_source_edge *edge_at(const struct rls_inheritance *heirs, uint64_t number)
{
	return &heirs->edges[number % RLS_SOURCE_EDGES_KEPT];
}

static int keep_edge(struct rls_inheritance *heirs, const struct rls_operation_stack *operations,
		     uint64_t time_ns)
{
	struct rls_source_edge *edge;

	if (!heirs->edges)
		heirs->edges = calloc(RLS_SOURCE_EDGES_KEPT, sizeof(*heirs->edges));
	if (!heirs->edges)
		return -ENOMEM;
	edge = &heirs->edges[heirs->edge_count++ % RLS_SOURCE_EDGES_KEPT];
	edge->time_ns = time_ns;
	edge->operations = *operations;
	return 0;
}

/* The source's operations from since_ns on, and their changes before until_ns, as the helper's. */
static int replay(const struct rls_event_sink *sink, const struct rls_live_process *process,
		  uint32_t tid, uint64_t since_ns, uint64_t until_ns)
{
	const struct rls_inheritance *heirs = &process->heirs;
	uint64_t kept = heirs->edge_count < RLS_SOURCE_EDGES_KEPT ? heirs->edge_count
								  : RLS_SOURCE_EDGES_KEPT;
	uint64_t number = heirs->edge_count - kept;
	bool inside = false;
	int r = 0;

	while (number + 1 < heirs->edge_count && edge_at(heirs, number + 1)->time_ns <= since_ns)
		number++;
	for (; !r && number < heirs->edge_count; number++) {
		const struct rls_source_edge *edge = edge_at(heirs, number);
		uint64_t at_ns = edge->time_ns > since_ns ? edge->time_ns : since_ns;

		if (at_ns >= until_ns)
			break;
		if (!inside && !edge->operations.count)
			continue;
		inside = true;
		r = emit_inherited(sink, process->event.pid, tid, &edge->operations, at_ns);
	}
	return r;
}

/* ---- helpers ---- */

/* What the source is in up to time_ns is certain: helpers born before then have it. */
static int inherit_until(const struct rls_event_sink *sink, struct rls_live_process *process,
			 const struct rls_live_thread *source, uint64_t time_ns)
{
	struct rls_live_thread *helper = process->all_threads;
	struct rls_inheritance *heirs = &process->heirs;
	int r = 0;

	for (; !r && helper; helper = helper->next) {
		uint64_t since_ns = helper->inherits_since_ns;

		if (!helper->announced || helper->annotated || !since_ns || since_ns >= time_ns)
			continue;
		helper->inherits_since_ns = 0;
		helper->operations = source->operations;
		r = replay(sink, process, helper->tid, since_ns, time_ns);
	}
	for (size_t i = 0; !r && i < heirs->ended_count; i++) {
		struct rls_ended_helper *ended = &heirs->ended[i];
		uint64_t since_ns = ended->since_ns;

		if (!since_ns || since_ns >= time_ns)
			continue;
		ended->since_ns = 0;
		r = replay(sink, process, ended->tid, since_ns,
			   ended->until_ns < time_ns ? ended->until_ns : time_ns);
	}
	return r;
}

/* All that the helper's life can still get is known by then. */
static void forget_ended(struct rls_inheritance *heirs, uint64_t time_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < heirs->ended_count; i++) {
		if (heirs->ended[i].until_ns > time_ns)
			heirs->ended[kept++] = heirs->ended[i];
	}
	heirs->ended_count = kept;
}

/* The thread is no helper any more, but edges from before until_ns may still arrive. */
static int keep_ended(const struct rls_event_sink *sink, struct rls_live_process *process,
		      struct rls_live_thread *thread, uint64_t until_ns)
{
	struct rls_inheritance *heirs = &process->heirs;
	struct rls_ended_helper *oldest = heirs->ended;
	int r;

	if (heirs->ended_count == RLS_ENDED_HELPERS_MAX) {
		r = oldest->since_ns
			    ? replay(sink, process, oldest->tid, oldest->since_ns, oldest->until_ns)
			    : 0;
		if (r)
			return r;
		memmove(oldest, oldest + 1, --heirs->ended_count * sizeof(*oldest));
	}
	r = rls_grow(&heirs->ended, &heirs->ended_room, heirs->ended_count);
	if (r)
		return r;
	heirs->ended[heirs->ended_count++] = (struct rls_ended_helper){
		.tid = thread->tid,
		.since_ns = thread->inherits_since_ns,
		.until_ns = until_ns,
	};
	thread->inherits_since_ns = 0;
	return 0;
}

/* A helper enters an operation of its own, of whatever name: it leaves those that it inherited. */
static int leave_inherited(const struct rls_event_sink *sink, struct rls_live_process *process,
			   struct rls_live_thread *thread, uint64_t time_ns)
{
	static const struct rls_operation_stack none;
	/* Or will be, once that is certain. */
	bool inside = thread->operations.count || thread->inherits_since_ns;
	int r;

	memset(&thread->operations, 0, sizeof(thread->operations));
	if (time_ns <= thread->inherits_since_ns + 1)
		return 0;
	r = keep_ended(sink, process, thread, time_ns - 1);
	if (!r && inside)
		r = emit_inherited(sink, process->event.pid, thread->tid, &none, time_ns - 1);
	return r;
}

int rls_operation_inherit_before(const struct rls_event_sink *sink,
				 struct rls_live_process *process, struct rls_live_thread *thread,
				 uint64_t time_ns)
{
	struct rls_live_thread *source = source_of(process);
	int r = 0;

	if (!thread->annotated) {
		thread->annotated = true;
		if (source && source != thread)
			r = leave_inherited(sink, process, thread, time_ns);
		if (thread->tid == process->event.pid)
			source = NULL;
	}
	if (!source)
		process->annotated_tid = thread->tid;
	if (!r && thread->tid == process->annotated_tid)
		r = inherit_until(sink, process, thread, time_ns);
	return r;
}

/* To the living and to those who lived then. */
static int report_to_helpers(const struct rls_event_sink *sink, struct rls_live_process *process,
			     const struct rls_operation_stack *operations, uint64_t time_ns)
{
	struct rls_live_thread *helper = process->all_threads;
	struct rls_inheritance *heirs = &process->heirs;
	int r = 0;

	for (; !r && helper; helper = helper->next) {
		if (!helper->announced || helper->annotated || helper->inherits_since_ns)
			continue;
		helper->operations = *operations;
		r = emit_inherited(sink, process->event.pid, helper->tid, operations, time_ns);
	}
	forget_ended(heirs, time_ns);
	for (size_t i = 0; !r && i < heirs->ended_count; i++) {
		if (!heirs->ended[i].since_ns)
			r = emit_inherited(sink, process->event.pid, heirs->ended[i].tid,
					   operations, time_ns);
	}
	return r;
}

int rls_operation_inherit_after(const struct rls_event_sink *sink, struct rls_live_process *process,
				const struct rls_live_thread *thread, uint64_t time_ns)
{
	int r;

	if (thread->tid != process->annotated_tid)
		return 0;
	r = keep_edge(&process->heirs, &thread->operations, time_ns);
	return r ? r : report_to_helpers(sink, process, &thread->operations, time_ns);
}

/* With the source its operations end. The next thread that enters one is the source then. */
static int end_source(const struct rls_event_sink *sink, struct rls_live_process *process,
		      struct rls_live_thread *source, uint64_t time_ns)
{
	bool inside = source->operations.count;
	int r = inherit_until(sink, process, source, time_ns);

	memset(&source->operations, 0, sizeof(source->operations));
	if (!r && inside)
		r = rls_operation_inherit_after(sink, process, source, time_ns);
	process->annotated_tid = 0;
	forget_ended(&process->heirs, UINT64_MAX);
	return r;
}

int rls_operation_inherit_end(const struct rls_event_sink *sink, struct rls_live_process *process,
			      struct rls_live_thread *thread, uint64_t time_ns)
{
	struct rls_live_thread *source = source_of(process);

	if (!source || !thread->announced)
		return 0;
	if (source == thread)
		return end_source(sink, process, source, time_ns);
	return thread->annotated ? 0 : keep_ended(sink, process, thread, time_ns);
}

int rls_operation_inherit_finish(const struct rls_event_sink *sink,
				 struct rls_live_process *process)
{
	struct rls_live_thread *source = source_of(process);
	int r = source ? inherit_until(sink, process, source, UINT64_MAX) : 0;

	forget_ended(&process->heirs, UINT64_MAX);
	return r;
}
