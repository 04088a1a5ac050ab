#include "userspace/record/events/operation_inherit.h"

#include <string.h>

/* Of a helper that was only now met, and has lived for long, what the source was in before is not known any more: it has
 * slept through that. */
static int tell_inherited(const struct rls_event_sink *sink, uint32_t pid,
			  struct rls_live_thread *helper, const struct rls_live_thread *source,
			  uint64_t since_ns)
{
	if (since_ns < source->operations_since_ns)
		since_ns = source->operations_since_ns;
	helper->operations = source->operations;
	return rls_emit_operation(sink, pid, helper, since_ns);
}

/* What the source is in up to time_ns is certain: helpers born before then have it. */
static int settle_helpers(const struct rls_event_sink *sink, struct rls_live_process *process,
			  const struct rls_live_thread *source, uint64_t time_ns)
{
	struct rls_live_thread *helper = process->all_threads;
	int r = 0;

	for (; !r && helper; helper = helper->next) {
		uint64_t since_ns = helper->inherits_since_ns;

		if (!helper->announced || helper->annotated || !since_ns || since_ns >= time_ns)
			continue;
		helper->inherits_since_ns = 0;
		if (source->operations.count)
			r = tell_inherited(sink, process->event.pid, helper, source, since_ns);
	}
	return r;
}

static struct rls_live_thread *source_of(const struct rls_live_process *process)
{
	return process->annotated_tid
		       ? rls_index_map_get(&process->threads, process->annotated_tid, 0)
		       : NULL;
}

int rls_operation_inherit_before(const struct rls_event_sink *sink,
				 struct rls_live_process *process, struct rls_live_thread *thread,
				 uint64_t time_ns)
{
	struct rls_live_thread *source = source_of(process);

	if (!thread->annotated) {
		if (source && source != thread)
			memset(&thread->operations, 0, sizeof(thread->operations));
		thread->annotated = true;
		if (!source || thread->tid == process->event.pid)
			process->annotated_tid = thread->tid;
	}
	return thread->tid == process->annotated_tid
		       ? settle_helpers(sink, process, thread, time_ns)
		       : 0;
}

int rls_operation_inherit_after(const struct rls_event_sink *sink, struct rls_live_process *process,
				const struct rls_live_thread *thread, uint64_t time_ns)
{
	struct rls_live_thread *helper = process->all_threads;
	int r = rls_emit_operation(sink, process->event.pid, thread, time_ns);

	if (thread->tid != process->annotated_tid)
		return r;
	for (; !r && helper; helper = helper->next) {
		if (helper->announced && !helper->annotated && !helper->inherits_since_ns)
			r = tell_inherited(sink, process->event.pid, helper, thread, time_ns);
	}
	return r;
}

int rls_operation_inherit_last(const struct rls_event_sink *sink, struct rls_live_process *process,
			       struct rls_live_thread *thread)
{
	const struct rls_live_thread *source = source_of(process);
	uint64_t since_ns;

	if (!source || thread->annotated || !thread->inherits_since_ns)
		return 0;
	if (!source->operations.count)
		return 0;
	since_ns = thread->inherits_since_ns;
	thread->inherits_since_ns = 0;
	return tell_inherited(sink, process->event.pid, thread, source, since_ns);
}
