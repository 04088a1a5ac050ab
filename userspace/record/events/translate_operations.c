/* Operations, phases and ranges: records of names and edges become events. */
#include <string.h>

#include "analysis/base/index_map.h"
#include "userspace/annotate/foreign_ranges.h"
#include "userspace/record/cost/hit_cost.h"
#include "userspace/record/events/operation_inherit.h"
#include "userspace/record/events/translator.h"

int rls_translate_phase(struct rls_translator *translator, struct rls_live_process *process,
			uint64_t time_ns, rls_string_id phase)
{
	struct rls_event event = rls_event_at(RLS_EVENT_PHASE, process->event.pid, 0, time_ns);

	process->phase = phase;
	event.phase.phase = phase;
	return rls_emit(&translator->sink, &event);
}

int rls_translate_operations(struct rls_translator *translator, uint32_t pid,
			     const struct rls_live_thread *thread, uint64_t time_ns, bool continued)
{
	const struct rls_thread_operations of = {
		.pid = pid,
		.tid = thread->tid,
		.operations = &thread->operations,
		.continued = continued ? thread->operations.count : 0,
	};

	return rls_emit_operation(&translator->sink, &of, time_ns);
}

/* The thread's operations have changed: edge has all but what is the innermost since. continued: it has entered none. */
static int translate_switch(struct rls_translator *translator, struct rls_live_process *process,
			    struct rls_live_thread *thread, struct rls_queued_edge edge,
			    bool continued)
{
	int r = rls_translate_operations(translator, process->event.pid, thread, edge.time_ns,
					 continued);

	if (!r)
		r = rls_operation_inherit_after(&translator->sink, process, thread, edge.time_ns);
	edge.now = rls_operation_stack_innermost(&thread->operations);
	if (!r)
		r = rls_hit_cost_turn(&process->cost, &thread->cost, &edge);
	if (!r && translator->watcher.turned)
		r = translator->watcher.turned(translator->watcher.context, thread->tid, &edge);
	return r;
}

static int learn_name(struct rls_translator *translator, uint32_t pid, uint64_t address,
		      const char *text, size_t length, rls_string_id *out)
{
	struct rls_live_process *process;
	rls_string_id id;
	int r = rls_live_process(&translator->living, pid, &process);

	if (!r)
		r = rls_emit_intern(&translator->sink, text, length, &id);
	if (!r)
		r = rls_index_map_put(&process->names, address, 0, (void *)(uintptr_t)(id + 1UL));
	if (!r)
		*out = id;
	return r;
}

int rls_translate_name(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_name *record = data;
	size_t length =
		record->length < sizeof(record->text) ? record->length : sizeof(record->text);
	rls_string_id ignored;

	translator->oddities.names_left_out |= record->header.flags & RLS_WIRE_NAME_OTHERS;
	return learn_name(translator, record->header.pid, record->address, record->text, length,
			  &ignored);
}

static int rename_process(struct rls_translator *translator, struct rls_live_process *process,
			  uint64_t time_ns, rls_string_id name)
{
	struct rls_event event = process->event;

	if (!event.kind)
		return 0; /* not described yet: whoever does knows better */
	event.time_ns = time_ns;
	event.process.name = name;
	return rls_translator_describe(translator, &event);
}

/* An edge whose name is known: the thread's stack after it, or the process's phase. */
static int apply_edge(struct rls_translator *translator, uint32_t pid, uint32_t tid,
		      const struct rls_edge *edge, rls_string_id name)
{
	struct rls_live_process *process;
	struct rls_live_thread *thread;
	int r = rls_live_thread(&translator->living, pid, tid, &process, &thread);

	if (r)
		return r;
	translator->oddities.disorders += (edge->flags & RLS_EDGE_DISORDER) != 0;
	if (edge->kind == RLS_EDGE_PUSH || edge->kind == RLS_EDGE_POP)
		r = rls_operation_inherit_before(&translator->sink, process, thread, edge->time_ns);
	if (r)
		return r;
	switch (edge->kind) {
	case RLS_EDGE_PUSH:
		rls_operation_stack_push(&thread->operations, edge->depth, name);
		translator->oddities.too_deep |= thread->operations.overflowed;
		break;
	case RLS_EDGE_POP:
		rls_operation_stack_pop(&thread->operations, edge->depth);
		break;
	case RLS_EDGE_PHASE:
		return rls_translate_phase(translator, process, edge->time_ns, name);
	case RLS_EDGE_PROCESS_NAME:
		return rename_process(translator, process, edge->time_ns, name);
	default:
		translator->ignored++;
		return 0;
	}
	return translate_switch(translator, process, thread,
				(struct rls_queued_edge){.time_ns = edge->time_ns},
				edge->flags & RLS_EDGE_RESUMED);
}

static int apply_stack_entry(struct rls_translator *translator, const struct rls_wire_edge *record,
			     rls_string_id name)
{
	struct rls_live_process *process;
	struct rls_live_thread *thread;
	int r = rls_live_thread(&translator->living, record->header.pid, record->header.tid,
				&process, &thread);

	if (r)
		return r;
	if (!record->depth && !thread->annotated)
		return 0; /* it has annotated, but is in no operation */
	if (record->depth <= 1)
		r = rls_operation_inherit_before(&translator->sink, process, thread,
						 record->header.time_ns);
	if (r)
		return r;
	if (record->depth <= 1)
		rls_operation_stack_clear_annotations(&thread->operations);
	rls_operation_stack_push(&thread->operations, record->depth, name);
	if (!(record->header.flags & RLS_WIRE_STACK_END))
		return 0;
	return translate_switch(
		translator, process, thread,
		(struct rls_queued_edge){.time_ns = record->header.time_ns, .gap = true}, false);
}

int rls_translate_edge(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_edge *record = data;
	struct rls_edge edge = {.time_ns = record->header.time_ns,
				.name = record->name,
				.kind = record->edge,
				.depth = record->depth,
				.flags = record->flags};
	struct rls_live_process *process;
	uintptr_t known;
	rls_string_id name;
	int r = rls_live_process(&translator->living, record->header.pid, &process);

	if (r)
		return r;
	known = (uintptr_t)rls_index_map_get(&process->names, record->name, 0);
	name = known ? (rls_string_id)(known - 1) : 0;
	if (record->name && !known) {
		/* Its text was lost or unreadable: an operation all the same. */
		r = rls_emit_intern(&translator->sink, "(unreadable)", strlen("(unreadable)"),
				    &name);
		if (r)
			return r;
	}
	if (record->edge == RLS_WIRE_EDGE_STACK)
		return apply_stack_entry(translator, record, name);
	return apply_edge(translator, record->header.pid, record->header.tid, &edge, name);
}

/* The library's own ranges are not the user's operations. *seen: something has changed. */
static int push_range(struct rls_translator *translator, struct rls_live_process *process,
		      struct rls_live_thread *thread, const struct rls_wire_range *record,
		      bool *seen)
{
	char text[RLS_WIRE_NAME_BYTES];
	rls_string_id name;
	int r;

	memcpy(text, record->text, sizeof(text));
	text[record->length < sizeof(text) ? record->length : sizeof(text) - 1] = '\0';
	*seen = true;
	if (!rls_range_is_library_own(text)) {
		r = rls_emit_intern(&translator->sink, text, strlen(text), &name);
		if (!r)
			r = rls_operation_inherit_before(&translator->sink, process, thread,
							 record->header.time_ns);
		if (!r)
			rls_operation_stack_push_range(&thread->operations, name, record->token);
		translator->oddities.too_deep |= thread->operations.overflowed;
		return r;
	}
	if (record->token) { /* whatever had it is over; its own pop will find nothing to end */
		*seen = rls_operation_stack_pop_range(&thread->operations, record->token);
	} else {
		rls_operation_stack_push_hidden(&thread->operations);
		*seen = false;
	}
	return 0;
}

int rls_translate_range(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_range *record = data;
	const struct rls_wire_header *header = &record->header;
	struct rls_live_process *process;
	struct rls_live_thread *thread;
	bool seen = false, lost = header->flags & RLS_WIRE_RANGE_AFTER_LOSS;
	int r = rls_live_thread(&translator->living, header->pid, header->tid, &process, &thread);

	if (!r && lost) /* none, rather than one that may be over */
		rls_operation_stack_clear_ranges(&thread->operations);
	if (!r && header->kind == RLS_WIRE_RANGE_PUSH)
		r = push_range(translator, process, thread, record, &seen);
	else if (!r && thread->annotated) /* false too when it was begun before recording */
		seen = rls_operation_stack_pop_range(&thread->operations, record->token);
	if (!r && lost && thread->annotated)
		seen = true;
	if (r || !seen)
		return r;
	return translate_switch(
		translator, process, thread,
		(struct rls_queued_edge){.time_ns = header->time_ns, .gap = lost, .hit = true},
		false);
}

int rls_translator_add_edge(struct rls_translator *translator, uint32_t pid, uint32_t tid,
			    const struct rls_edge *edge, const char *name, size_t name_bytes)
{
	rls_string_id id = 0;
	int r = 0;

	if (edge->name)
		r = learn_name(translator, pid, edge->name, name, name_bytes, &id);
	return r ? r : apply_edge(translator, pid, tid, edge, id);
}

int rls_translator_name(const struct rls_translator *translator, uint32_t pid, uint64_t address,
			rls_string_id *out)
{
	const struct rls_live_process *process = rls_thread_table_find(&translator->living, pid);
	uintptr_t known = process ? (uintptr_t)rls_index_map_get(&process->names, address, 0) : 0;

	if (!known)
		return 0;
	*out = (rls_string_id)(known - 1);
	return 1;
}
