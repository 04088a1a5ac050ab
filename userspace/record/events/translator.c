#include "userspace/record/events/translator.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/index_map.h"
#include "bpf/wire/layer.h"
#include "userspace/record/cost/hit_cost.h"
#include "userspace/record/events/event_sink.h"
#include "userspace/record/events/operation_inherit.h"
#include "userspace/record/events/thread_table.h"

/* Helpers work for the annotated thread (operation_inherit.h). */
static struct rls_live_thread *whose_operation(const struct rls_live_process *process,
					       struct rls_live_thread *thread)
{
	if (!thread || thread->annotated || !process->annotated_tid)
		return thread;
	return rls_index_map_get(&process->threads, process->annotated_tid, 0);
}

/* category: what the thread was in until now. */
static int add_hit_totals(struct rls_translator *translator, const struct rls_wire_header *header,
			  const struct rls_wire_hit_totals *hit_totals, enum rls_category category)
{
	const struct rls_live_process *process =
		rls_thread_table_find(&translator->living, header->pid);
	struct rls_live_thread *thread =
		process ? rls_index_map_get(&process->threads, header->tid, 0) : NULL;
	struct rls_live_thread *source = process ? whose_operation(process, thread) : NULL;
	const struct rls_charged by = {
		.factors = process ? &process->cost : NULL,
		.thread = thread ? &thread->cost : NULL,
		.source = source ? &source->cost : NULL,
	};
	struct rls_wire_hit_totals charged = *hit_totals;

	charged.cost_ns =
		rls_hit_cost(&by, translator->excess_ns, hit_totals, category, header->time_ns);
	return rls_emit_hit_totals(&translator->sink, header, &charged);
}

/* ---- one function per record kind ---- */

static int on_category(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_category *record = data;
	int r = 0;

	/* A thread's first: what it was in before is known when it has inherited that, and its
	 * fork may have been lost. */
	if (record->header.sequence == 1 && record->from)
		r = rls_emit_category(&translator->sink, record->header.pid, record->header.tid,
				      record->header.time_ns - 1, record->from);
	/* In the order of event_order.h, so that nothing is left to sort. */
	if (!r)
		r = rls_emit_category(&translator->sink, record->header.pid, record->header.tid,
				      record->header.time_ns, record->category);
	return r ? r
		 : add_hit_totals(translator, &record->header, &record->hit_totals,
				  record->from < RLS_CATEGORY_MAX ? record->from
								  : RLS_CATEGORY_UNKNOWN);
}

/* With its hits, as a category. */
static int on_layer(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_layer *record = data;
	struct rls_event event = rls_event_at(RLS_EVENT_LAYER, record->header.pid,
					      record->header.tid, record->header.time_ns);
	int r;

	event.layer.id = record->number;
	event.layer.depth = record->depth;
	event.layer.begun = record->begun != 0;
	event.layer.pass = record->number ? RLS_PASS_FORWARD : RLS_PASS_OUTSIDE;
	r = rls_emit(&translator->sink, &event);
	return r ? r
		 : add_hit_totals(translator, &record->header, &record->hit_totals,
				  record->category < RLS_CATEGORY_MAX ? record->category
								      : RLS_CATEGORY_UNKNOWN);
}

static int on_thread(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_thread *record = data;
	struct rls_live_process *process;
	struct rls_live_thread *thread;
	int r = rls_live_thread(&translator->living, record->header.pid, record->header.tid,
				&process, &thread);

	if (r)
		return r;
	thread->announced = true;
	if (!thread->annotated)
		thread->inherits_since_ns = record->header.time_ns;
	r = rls_emit_thread(&translator->sink, record->header.pid, record->header.tid,
			    record->ns_tid, record->header.time_ns, record->comm);
	if (r || !record->category)
		return r;
	return rls_emit_category(&translator->sink, record->header.pid, record->header.tid,
				 record->header.time_ns, record->category);
}

/* The child's description begins as its parent's; its thread goes on where the parent's was. */
static int describe_child(struct rls_translator *translator, const struct rls_wire_fork *record,
			  const struct rls_live_process *parent)
{
	struct rls_event event = parent->event;
	int r;

	event.kind = RLS_EVENT_PROCESS;
	event.pid = record->child_pid;
	event.tid = 0;
	event.time_ns = record->header.time_ns;
	event.process.ppid = record->header.pid;
	event.process.ns_pid = record->child_ns_pid == record->child_pid ? 0 : record->child_ns_pid;
	r = rls_emit_intern(&translator->sink, record->comm,
			    strnlen(record->comm, sizeof(record->comm)), &event.process.name);
	return r ? r : rls_translator_describe(translator, &event);
}

static int on_fork(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_fork *record = data;
	uint64_t time_ns = record->header.time_ns;
	struct rls_live_process *parent, *child;
	struct rls_live_thread *parent_thread, *thread;
	int r;

	if (record->child_pid != record->header.pid) /* the number may have been used before */
		rls_thread_table_forget_process(&translator->living, record->child_pid);
	r = rls_live_thread(&translator->living, record->header.pid, record->header.tid, &parent,
			    &parent_thread);
	if (!r)
		r = describe_child(translator, record, parent);
	if (!r)
		r = rls_live_thread(&translator->living, record->child_pid, record->child_pid,
				    &child, &thread);
	if (!r)
		r = rls_emit_thread(&translator->sink, record->child_pid, record->child_pid,
				    record->child_ns_pid, time_ns, record->comm);
	if (r)
		return r;
	r = rls_hit_cost_copy_factors(&child->cost, &parent->cost);
	if (!r && parent->phase)
		r = rls_translate_phase(translator, child, time_ns, parent->phase);
	thread->operations = parent_thread->operations;
	rls_hit_cost_begin(&thread->cost, rls_operation_stack_innermost(&thread->operations));
	thread->announced = true;
	thread->annotated = parent_thread->annotated;
	child->annotated_tid = thread->annotated ? thread->tid : 0;
	if (!r && thread->operations.count)
		r = rls_translate_operations(translator, record->child_pid, thread, time_ns, true);
	if (!r)
		r = rls_operation_inherit_after(&translator->sink, child, thread, time_ns);
	if (!r && record->category)
		r = rls_emit_category(&translator->sink, record->child_pid, record->child_pid,
				      time_ns, record->category);
	if (!r && translator->watcher.forked)
		translator->watcher.forked(translator->watcher.context, record->header.pid,
					   record->child_pid, time_ns);
	return r;
}

/* One thread is left, the one that called; from now on it has the process's number. */
static int keep_first_thread(struct rls_translator *translator, struct rls_live_process *process,
			     const struct rls_wire_header *header)
{
	if (header->tid == header->pid)
		return 0;
	rls_thread_table_forget_thread(process, header->tid);
	return rls_emit_thread_end(&translator->sink, header->pid, header->tid, header->time_ns);
}

static int on_exec(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_exec *record = data;
	uint32_t pid = record->header.pid;
	uint64_t time_ns = record->header.time_ns;
	struct rls_live_process *process;
	struct rls_live_thread *thread;
	int r = rls_live_thread(&translator->living, pid, pid, &process, &thread);

	if (!r)
		r = rls_operation_inherit_finish(&translator->sink, process);
	if (!r)
		r = keep_first_thread(translator, process, &record->header);
	if (r)
		return r;
	process->heirs.edge_count = 0;
	rls_index_map_free(&process->names);
	process->names = (struct rls_index_map){0};
	memset(&thread->operations, 0, sizeof(thread->operations));
	thread->announced = true;
	thread->annotated = false;
	process->annotated_tid = 0;
	r = rls_emit_thread(&translator->sink, pid, pid, process->event.process.ns_pid, time_ns,
			    record->comm);
	rls_hit_cost_begin(&thread->cost, 0);
	if (!r)
		r = rls_translate_operations(translator, pid, thread, time_ns, false);
	if (!r)
		r = rls_translate_phase(translator, process, time_ns, 0);
	if (!r)
		r = rls_emit_category(&translator->sink, pid, pid, time_ns, RLS_CATEGORY_UNKNOWN);
	if (!r && translator->watcher.execed)
		translator->watcher.execed(translator->watcher.context, pid, time_ns);
	return r;
}

static int emit_out_of_memory(struct rls_translator *translator,
			      const struct rls_wire_header *header)
{
	struct rls_event event =
		rls_event_at(RLS_EVENT_MEMORY_USE, header->pid, 0, header->time_ns);

	event.memory_use.out_of_memory = true;
	return rls_emit(&translator->sink, &event);
}

static int on_thread_exit(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_exit *record = data;
	const struct rls_wire_header *header = &record->header;
	struct rls_live_process *process = rls_thread_table_find(&translator->living, header->pid);
	struct rls_live_thread *thread;
	struct rls_event event;
	int r = 0;

	thread = process ? rls_index_map_get(&process->threads, header->tid, 0) : NULL;
	if (record->traced || thread) {
		if (thread)
			r = rls_operation_inherit_end(&translator->sink, process, thread,
						      header->time_ns);
		if (!r)
			r = add_hit_totals(translator, header, &record->hit_totals,
					   RLS_CATEGORY_UNKNOWN);
		if (!r)
			r = rls_emit_thread_end(&translator->sink, header->pid, header->tid,
						header->time_ns);
		if (process)
			rls_thread_table_forget_thread(process, header->tid);
	}
	if (!r && record->process_over && process)
		r = rls_operation_inherit_finish(&translator->sink, process);
	if (r || !record->process_over)
		return r;
	if (record->out_of_memory)
		r = emit_out_of_memory(translator, header);
	event = rls_event_at(RLS_EVENT_PROCESS_END, header->pid, 0, header->time_ns);
	if (!r)
		r = rls_emit(&translator->sink, &event);
	rls_thread_table_forget_process(&translator->living, header->pid);
	if (!r && translator->watcher.ended)
		translator->watcher.ended(translator->watcher.context, header->pid,
					  header->time_ns);
	return r;
}

/* Its begin is reported too: what lies before it and after it was spent running, but for before_ns. */
static int on_off_cpu(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_off_cpu *record = data;
	const struct rls_wire_header *header = &record->header;
	struct rls_event event =
		rls_event_at(RLS_EVENT_OFF_CPU, header->pid, header->tid, header->time_ns);
	int r;

	if (record->away_ns > header->time_ns) {
		translator->ignored++;
		return 0;
	}
	event.time_ns -= record->away_ns;
	event.off_cpu.ns = record->before_ns;
	r = rls_emit(&translator->sink, &event);
	event.time_ns = header->time_ns;
	event.off_cpu.ns = record->away_ns;
	return r ? r : rls_emit(&translator->sink, &event);
}

static int on_loss(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_loss *record = data;

	return rls_emit_category(&translator->sink, record->header.pid, record->header.tid,
				 record->since_ns, RLS_CATEGORY_UNKNOWN);
}

static int on_final(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_final *record = data;
	struct rls_live_process *process;
	struct rls_live_thread *thread;
	int r = rls_live_thread(&translator->living, record->header.pid, record->header.tid,
				&process, &thread);

	if (!r)
		r = add_hit_totals(translator, &record->header, &record->hit_totals,
				   RLS_CATEGORY_UNKNOWN);
	if (!r && translator->watcher.final)
		translator->watcher.final(translator->watcher.context, record);
	return r;
}

/* What it tells of the thread's category is for record/samples/infer_category.h. */
static int on_category_sample(struct rls_translator *translator, const void *data)
{
	const struct rls_wire_category_sample *record = data;

	return add_hit_totals(translator, &record->header, &record->hit_totals,
			      RLS_CATEGORY_UNKNOWN);
}

static const struct {
	size_t size;
	int (*handle)(struct rls_translator *translator, const void *data);
} handlers[] = {
	[RLS_WIRE_CATEGORY] = {sizeof(struct rls_wire_category), on_category},
	[RLS_WIRE_THREAD] = {sizeof(struct rls_wire_thread), on_thread},
	[RLS_WIRE_FORK] = {sizeof(struct rls_wire_fork), on_fork},
	[RLS_WIRE_EXEC] = {sizeof(struct rls_wire_exec), on_exec},
	[RLS_WIRE_THREAD_EXIT] = {sizeof(struct rls_wire_exit), on_thread_exit},
	[RLS_WIRE_NAME] = {sizeof(struct rls_wire_name), rls_translate_name},
	[RLS_WIRE_EDGE] = {sizeof(struct rls_wire_edge), rls_translate_edge},
	[RLS_WIRE_RANGE_PUSH] = {sizeof(struct rls_wire_range), rls_translate_range},
	[RLS_WIRE_RANGE_POP] = {sizeof(struct rls_wire_range), rls_translate_range},
	[RLS_WIRE_LOSS] = {sizeof(struct rls_wire_loss), on_loss},
	[RLS_WIRE_FINAL] = {sizeof(struct rls_wire_final), on_final},
	[RLS_WIRE_OFF_CPU] = {sizeof(struct rls_wire_off_cpu), on_off_cpu},
	[RLS_WIRE_LAYER] = {sizeof(struct rls_wire_layer), on_layer},
	[RLS_WIRE_CATEGORY_SAMPLE] = {sizeof(struct rls_wire_category_sample), on_category_sample},
};

/* ---- the door ---- */

int rls_translator_new(const struct rls_event_sink *sink, const struct rls_process_watcher *watcher,
		       struct rls_translator **out)
{
	struct rls_translator *translator = calloc(1, sizeof(*translator));

	if (!translator)
		return -ENOMEM;
	translator->sink = *sink;
	translator->watcher = *watcher;
	*out = translator;
	return 0;
}

void rls_translator_free(struct rls_translator *translator)
{
	if (!translator)
		return;
	rls_thread_table_clear(&translator->living);
	free(translator);
}

int rls_translate(struct rls_translator *translator, const struct rls_wire_header *record,
		  size_t size)
{
	size_t kinds = sizeof(handlers) / sizeof(handlers[0]);

	if (size < sizeof(*record) || record->kind >= kinds || !handlers[record->kind].handle ||
	    size < handlers[record->kind].size) {
		translator->ignored++;
		return 0;
	}
	return handlers[record->kind].handle(translator, record);
}

void rls_translator_set_excess(struct rls_translator *translator, double excess_ns)
{
	translator->excess_ns = excess_ns;
}

int rls_translator_set_cost_factor(struct rls_translator *translator, uint32_t pid, double factor)
{
	struct rls_live_process *process;
	int r = rls_live_process(&translator->living, pid, &process);

	if (r)
		return r;
	rls_hit_cost_forget_factors(&process->cost);
	process->cost.factor = factor;
	return 0;
}

int rls_translator_set_operation_factor(struct rls_translator *translator, uint32_t pid,
					const char *operation, double factor)
{
	struct rls_live_process *process;
	rls_string_id id;
	int r = rls_live_process(&translator->living, pid, &process);

	if (!r)
		r = rls_emit_intern(&translator->sink, operation, strlen(operation), &id);
	return r ? r : rls_hit_cost_set_factor(&process->cost, id, factor);
}

void rls_translator_sampled(const struct rls_translator *translator, uint32_t pid, uint32_t tid,
			    unsigned int category, uint32_t cost_ns)
{
	const struct rls_live_process *process = rls_thread_table_find(&translator->living, pid);
	struct rls_live_thread *thread =
		process ? rls_index_map_get(&process->threads, tid, 0) : NULL;

	if (thread && category < RLS_CATEGORY_MAX)
		rls_hit_cost_sample(&thread->cost, category, cost_ns);
}

int rls_translator_describe(struct rls_translator *translator, const struct rls_event *event)
{
	struct rls_live_process *process;
	int r = rls_live_process(&translator->living, event->pid, &process);

	if (r)
		return r;
	process->event = *event;
	return rls_emit(&translator->sink, event);
}

const struct rls_event *rls_translator_process(const struct rls_translator *translator,
					       uint32_t pid)
{
	const struct rls_live_process *process = rls_thread_table_find(&translator->living, pid);

	return process && process->event.kind ? &process->event : NULL;
}

int rls_translator_finish(struct rls_translator *translator)
{
	int r = 0;

	for (size_t i = 0; !r && i < translator->living.count; i++)
		r = rls_operation_inherit_finish(&translator->sink, translator->living.all[i]);
	return r;
}

void rls_translator_forget(struct rls_translator *translator, uint32_t pid)
{
	struct rls_live_process *process = rls_thread_table_find(&translator->living, pid);

	if (process)
		rls_operation_inherit_finish(&translator->sink, process);
	rls_thread_table_forget_process(&translator->living, pid);
}

bool rls_translator_knows(const struct rls_translator *translator, uint32_t pid, uint32_t tid)
{
	const struct rls_live_process *process = rls_thread_table_find(&translator->living, pid);

	return process && (tid == pid || rls_index_map_get(&process->threads, tid, 0));
}

int rls_translator_each_thread(const struct rls_translator *translator,
			       int (*visit)(void *context, uint32_t pid, uint32_t tid),
			       void *context)
{
	const struct rls_thread_table *living = &translator->living;
	int r = 0;

	for (size_t i = 0; !r && i < living->count; i++) {
		const struct rls_live_process *process = living->all[i];
		uint32_t pid = process->event.pid;

		r = visit(context, pid, pid);
		for (const struct rls_live_thread *thread = process->all_threads; !r && thread;
		     thread = thread->next)
			r = thread->tid == pid ? 0 : visit(context, pid, thread->tid);
	}
	return r;
}

const struct rls_operation_oddities *
rls_translator_oddities(const struct rls_translator *translator)
{
	return &translator->oddities;
}

uint64_t rls_translator_ignored(const struct rls_translator *translator)
{
	return translator->ignored;
}
