#include "analysis/timeline/sweep.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "analysis/event/bounded.h"
#include "analysis/timeline/sweep_samples.h"
#include "analysis/timeline/thread_life.h"
#include "analysis/timeline/tracks.h"
#include "analysis/timeline/window_counts.h"

/* --- one handler per kind ----------------------------------------------------------- */

static void take_string(rls_string_id *into, rls_string_id string)
{
	if (string)
		*into = string;
}

static int on_process(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_process *process = rls_timeline_process(timeline, event->pid);

	if (!process || process->ended) {
		int err = rls_timeline_add_process(timeline, event->pid, &process);

		if (err)
			return err;
	}
	rls_thread_life_start_process(timeline, process);
	if (event->process.ppid)
		process->ppid = event->process.ppid;
	if (event->process.ns_pid)
		process->ns_pid = event->process.ns_pid;
	take_string(&process->name, event->process.name);
	if (event->process.cmdline && event->process.cmdline != process->cmdline)
		process->python = 0; /* another program runs there since */
	take_string(&process->python, event->process.python);
	take_string(&process->cmdline, event->process.cmdline);
	take_string(&process->container, event->process.container);
	return 0;
}

static int on_process_end(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_process *process;
	int err = rls_thread_life_find_process(timeline, event, &process);

	return err || !process ? err : rls_thread_life_end_process(timeline, process);
}

static int on_thread(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_thread *thread;
	int err = rls_thread_life_find_thread(timeline, event, &thread);

	if (!err && thread)
		take_string(&thread->name, event->thread.name);
	return err;
}

static int on_thread_end(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_thread *thread;
	int err = rls_thread_life_find_thread(timeline, event, &thread);

	return err || !thread ? err : rls_thread_life_end_thread(timeline, thread);
}

static int on_category(struct rls_timeline *timeline, const struct rls_event *event)
{
	enum rls_category from, to = event->category.category;
	struct rls_thread *thread;
	struct rls_scope *scope;
	int err = rls_thread_life_find_thread(timeline, event, &thread);

	timeline->emitted++;
	if (err || !thread)
		return err;
	if ((unsigned int)to >= RLS_CATEGORY_MAX)
		to = RLS_CATEGORY_UNKNOWN;
	err = rls_thread_life_close_span(timeline, thread);
	from = thread->category;
	if (!err && from != to)
		err = rls_thread_life_show_state(timeline, thread);
	/* Between windows some sites still report, but not all. The first event in a window says what the
	 * thread was in until then, and is no transition. */
	if (!err && !thread->unseen && from != to && from != RLS_CATEGORY_UNKNOWN &&
	    to != RLS_CATEGORY_UNKNOWN) {
		scope = rls_thread_life_scope(timeline, thread);
		err = scope ? rls_window_counts_add(timeline, scope, from, to) : -ENOMEM;
	}
	thread->category = to;
	thread->unseen = timeline->closed || to == RLS_CATEGORY_UNKNOWN;
	thread->unreported = !timeline->closed && to == RLS_CATEGORY_UNKNOWN;
	thread->reported |= to != RLS_CATEGORY_UNKNOWN;
	rls_mark_set(&thread->window.hits, timeline->now_ns);
	rls_mark_set(&thread->window.off_cpu, timeline->now_ns);
	return err;
}

/* Counts the operations of the thread's new stack that it has entered. */
static int count_entries(struct rls_timeline *timeline, struct rls_thread *thread,
			 rls_stack_id before)
{
	rls_stack_id stack = thread->stack;
	rls_stack_id stay =
		rls_stack_tree_kept(&timeline->stacks, before, stack, thread->continued);

	while (stack != stay) {
		struct rls_scope *scope;
		int err = rls_timeline_scope(timeline, thread, &thread->scopes,
					     thread->process->phase, stack, &scope);

		if (err)
			return err;
		scope->entries++;
		stack = rls_stack_tree_node(&timeline->stacks, stack).parent;
	}
	return 0;
}

static int on_operation(struct rls_timeline *timeline, const struct rls_event *event)
{
	unsigned int depth = event->operation.depth;
	rls_stack_id stack, before;
	struct rls_thread *thread;
	int err = rls_thread_life_find_thread(timeline, event, &thread);

	timeline->emitted++;
	if (err || !thread)
		return err;
	if (depth > RLS_OPERATION_DEPTH_MAX)
		depth = RLS_OPERATION_DEPTH_MAX;
	before = thread->stack;
	thread->continued = event->operation.continued;
	err = rls_stack_tree_find(&timeline->stacks, event->operation.stack, depth, &stack);
	if (err || stack == before)
		return err;
	err = rls_thread_life_close_span(timeline, thread);
	if (!err)
		err = rls_thread_life_show_state(timeline, thread);
	thread->stack = stack;
	thread->scope = NULL;
	return err ? err : count_entries(timeline, thread, before);
}

static int on_phase(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_process *process;
	int err = rls_thread_life_find_process(timeline, event, &process);

	timeline->emitted++;
	if (err || !process || process->phase == event->phase.phase)
		return err;
	if (!process->alive)
		err = rls_thread_life_add_alone(
			timeline, process, rls_gpu_busy_until(&process->busy, timeline->now_ns));
	if (!err)
		err = rls_thread_life_show_phase(timeline, process);
	for (struct rls_thread *t = process->alive; !err && t; t = t->next_alive) {
		err = rls_thread_life_close_span(timeline, t);
		if (!err)
			err = rls_thread_life_show_state(timeline, t);
		t->scope = NULL;
	}
	process->phase = event->phase.phase;
	return err;
}

/* The innermost. */
static rls_string_id operation_of(const struct rls_timeline *timeline,
				  const struct rls_thread *thread)
{
	return rls_stack_tree_node(&timeline->stacks, thread->stack).name;
}

static int on_launch(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_thread *thread;
	int err = rls_thread_life_find_thread(timeline, event, &thread);

	timeline->emitted++;
	if (err || !thread)
		return err;
	if (timeline->tracks)
		err = rls_tracks_launch(timeline, thread, event);
	if (err)
		return err;
	return rls_gpu_work_launch(&thread->process->gpu,
				   &(struct rls_launch){
					   .correlation = event->launch.correlation,
					   .time_ns = event->time_ns,
					   .phase = thread->process->phase,
					   .operation = operation_of(timeline, thread),
				   });
}

static int on_cuda_call(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_thread *thread;
	int err = rls_thread_life_find_thread(timeline, event, &thread);

	if (err || !thread)
		return err;
	return rls_call_set_add(&thread->process->calls, event, thread->process->phase,
				operation_of(timeline, thread));
}

/* No instant of its own: it says something about all the process's GPU work. */
static int on_gpu_clock(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_process *process = rls_timeline_process(timeline, event->pid);
	struct rls_gpu_clock *clock;

	if (!process)
		return 0;
	clock = &process->clock;
	clock->readings++;
	if (event->gpu_clock.width_ns > clock->width_ns)
		clock->width_ns = event->gpu_clock.width_ns;
	if (clock->readings == 1 || fabs(event->gpu_clock.gap_ns) > fabs(clock->gap_ns))
		clock->gap_ns = event->gpu_clock.gap_ns;
	clock->drift_ppm = event->gpu_clock.drift_ppm;
	return 0;
}

/* 0 is what CUPTI gives for a time it could not collect, unless the trace itself begins there. */
static bool is_possible(const struct rls_timeline *timeline, const struct rls_event *event)
{
	bool collected = event->time_ns || (timeline->any && !timeline->first_ns);

	return event->gpu.end_ns >= event->time_ns && collected &&
	       (unsigned int)event->gpu.kind < RLS_GPU_KIND_MAX;
}

/* Of this number, ended or not, made if there is none. */
static int process_of(struct rls_timeline *timeline, uint32_t pid, struct rls_process **out)
{
	*out = rls_timeline_process(timeline, pid);
	return *out ? 0 : rls_timeline_add_process(timeline, pid, out);
}

/* The work of a process that has ended is still its own: records are delivered late. */
static int on_gpu(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_process *process;
	int err = process_of(timeline, event->pid, &process);

	if (err)
		return err;
	rls_thread_life_start_process(timeline, process);
	err = timeline->tracks ? rls_tracks_gpu(timeline, process, event) : 0;
	if (event->gpu.end_ns > timeline->last_gpu_ns)
		timeline->last_gpu_ns = event->gpu.end_ns;
	if (err || event->gpu.kind == RLS_GPU_SYNC)
		return err;
	rls_gpu_busy_add(&process->busy, event->time_ns, event->gpu.end_ns);
	return rls_gpu_work_add(&process->gpu, event, process->start_ns, !process->ended);
}

/* Other threads may wait for this one, which took so much longer. */
static int charge_others(struct rls_timeline *timeline, const struct rls_thread *thread,
			 uint64_t cost_ns)
{
	struct rls_process *process = thread->process;
	const struct rls_others_charge charge = {timeline->now_ns, cost_ns, thread, thread->stack};

	if (!cost_ns || !process->alive || !process->alive->next_alive)
		return 0;
	return rls_induced_wait_add(&process->others_cost, &charge);
}

/* A hits or off-CPU report ends a span, so that it is dealt out to what lies before it. */
static int on_hits(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_unsubtracted left;
	struct rls_thread *thread;
	int err = rls_thread_life_find_thread(timeline, event, &thread);

	rls_add_bounded(&timeline->hits, event->hits.count);
	rls_add_bounded(&timeline->hits_cost_ns, event->hits.cost_ns);
	if (err || !thread)
		return err;
	err = rls_thread_life_close_span(timeline, thread);
	if (event->hits.count)
		rls_mark_set(&thread->window.hits, timeline->now_ns);
	left = rls_span_window_subtract(&thread->window, event->hits.cost_ns);
	rls_add_bounded(&timeline->hits_unplaced_ns, left.unplaced_ns);
	rls_add_bounded(&timeline->hits_under_gpu_ns, left.under_gpu_ns);
	return err ? err
		   : charge_others(timeline, thread,
				   event->hits.cost_ns - left.unplaced_ns - left.under_gpu_ns);
}

static int on_off_cpu(struct rls_timeline *timeline, const struct rls_event *event)
{
	uint64_t off_ns, others_ns;
	struct rls_thread *thread;
	int err = rls_thread_life_find_thread(timeline, event, &thread);

	if (err || !thread)
		return err;
	err = rls_thread_life_close_span(timeline, thread);
	rls_mark_set(&thread->window.off_cpu, timeline->now_ns);
	off_ns = event->off_cpu.ns -
		 rls_span_window_take_off_cpu(&thread->window, event->off_cpu.ns);
	others_ns = rls_induced_wait_since(&thread->process->others_cost, timeline->now_ns - off_ns,
					   thread, thread->stack);
	rls_span_window_note_others(&thread->window, others_ns < off_ns ? others_ns : off_ns);
	return err;
}

/* Probes go on and off for everyone. What a thread is in when they are on again shows with its
 * next event. */
static int on_window(struct rls_timeline *timeline, const struct rls_event *event)
{
	bool closed = !event->window.open;
	int err = 0;

	if (closed == timeline->closed)
		return 0;
	timeline->closed_first |= closed && timeline->now_ns == timeline->first_ns;
	for (struct rls_process *p = timeline->processes; !err && p; p = p->next) {
		for (struct rls_thread *t = p->alive; !err && t; t = t->next_alive) {
			err = rls_thread_life_close_span(timeline, t);
			t->unseen |= closed;
			t->unreported &= !closed;
		}
	}
	if (!err && closed)
		err = rls_window_counts_close(timeline);
	timeline->closed = closed;
	timeline->windows += !closed;
	if (!closed)
		timeline->opened_ns = timeline->now_ns;
	return err;
}

static int on_memory(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_process *process;
	int err = rls_thread_life_find_process(timeline, event, &process);

	return err || !process ? err
			       : rls_memory_totals_add(&timeline->memory, &process->memory, event);
}

/* As of other work, the process may have ended. */
static int on_gpu_copy(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_process *process;
	int err = process_of(timeline, event->pid, &process);

	return err ? err : rls_gpu_work_copy(&process->gpu, event);
}

static int on_layer_name(struct rls_timeline *timeline, const struct rls_event *event)
{
	return rls_layer_names_add(&timeline->layers, event);
}

/* It comes with the thread's hits and off-CPU time until then, as a category does. */
static int on_layer(struct rls_timeline *timeline, const struct rls_event *event)
{
	struct rls_thread *thread;
	struct rls_scope *scope;
	int err = rls_thread_life_find_thread(timeline, event, &thread);

	timeline->emitted++;
	if (err || !thread)
		return err;
	err = rls_thread_life_close_span(timeline, thread);
	scope = rls_thread_life_scope(timeline, thread);
	if (!err && !scope)
		err = -ENOMEM;
	if (!err && event->layer.id && event->layer.begun)
		err = rls_layer_names_begun(&timeline->layers, event->pid, event->layer.id,
					    &thread->process->layers_begun);
	if (!err)
		err = rls_thread_layers_take(&thread->layers, thread->process->phase,
					     scope->operation, event);
	rls_mark_set(&thread->window.hits, timeline->now_ns);
	rls_mark_set(&thread->window.off_cpu, timeline->now_ns);
	return err;
}

static int on_library(struct rls_timeline *timeline, const struct rls_event *event)
{
	const struct rls_process_library library = {
		.path = event->library.path,
		.role = event->library.role,
		.sites = event->library.sites,
	};
	struct rls_process *process;
	int err = process_of(timeline, event->pid, &process);

	return err ? err : rls_timeline_add_library(timeline, process, &library);
}

static int on_end(struct rls_timeline *timeline, const struct rls_event *event)
{
	timeline->end_complete = event->end.complete;
	timeline->end_seen = true;
	timeline->end_ns = timeline->now_ns;
	return rls_thread_life_end_processes(timeline);
}

static int on_fact(struct rls_timeline *timeline, const struct rls_event *event)
{
	return rls_trace_metadata_add(&timeline->facts, event);
}

/* The first reading says where the trace's times lie beside those of the traces before it. */
static int on_clock(struct rls_timeline *timeline, const struct rls_event *event)
{
	bool first = !timeline->facts.clock.known;
	int err = rls_trace_metadata_add(&timeline->facts, event);

	if (!err && first && timeline->tracks)
		err = rls_tracks_clock(timeline, &timeline->facts.clock);
	return err;
}

/* --- the sweep ---------------------------------------------------------------------- */

static const struct {
	int (*take)(struct rls_timeline *timeline, const struct rls_event *event);
	bool timed; /* its instant counts */
} handlers[RLS_EVENT_MAX] = {
	[RLS_EVENT_PROCESS] = {on_process, true},
	[RLS_EVENT_PROCESS_END] = {on_process_end, true},
	[RLS_EVENT_THREAD] = {on_thread, true},
	[RLS_EVENT_THREAD_END] = {on_thread_end, true},
	[RLS_EVENT_CATEGORY] = {on_category, true},
	[RLS_EVENT_OPERATION] = {on_operation, true},
	[RLS_EVENT_PHASE] = {on_phase, true},
	[RLS_EVENT_LAUNCH] = {on_launch, true},
	[RLS_EVENT_GPU] = {on_gpu, true},
	[RLS_EVENT_GPU_CLOCK] = {on_gpu_clock, false},
	[RLS_EVENT_CUDA_CALL] = {on_cuda_call, true},
	[RLS_EVENT_HITS] = {on_hits, true},
	[RLS_EVENT_OFF_CPU] = {on_off_cpu, true},
	[RLS_EVENT_SHARE] = {rls_sweep_share, true},
	[RLS_EVENT_WINDOW] = {on_window, true},
	[RLS_EVENT_LIBRARY] = {on_library, false},
	[RLS_EVENT_FRAME] = {rls_sweep_frame, false},
	[RLS_EVENT_OPERATION_RULE] = {rls_sweep_operation_rule, false},
	[RLS_EVENT_SAMPLE] = {rls_sweep_sample, true},
	[RLS_EVENT_MEMORY_LINE] = {on_memory, true},
	[RLS_EVENT_MEMORY_AGES] = {on_memory, true},
	[RLS_EVENT_MEMORY_USE] = {on_memory, true},
	[RLS_EVENT_COPY_LINE] = {on_memory, true},
	[RLS_EVENT_GPU_COPY] = {on_gpu_copy, true},
	[RLS_EVENT_LAYER_NAME] = {on_layer_name, false},
	[RLS_EVENT_LAYER] = {on_layer, true},
	[RLS_EVENT_HOST] = {on_fact, false},
	[RLS_EVENT_CLOCK] = {on_clock, false},
	[RLS_EVENT_LOSS] = {on_fact, false},
	[RLS_EVENT_CALIBRATION] = {on_fact, false},
	[RLS_EVENT_BUDGET] = {on_fact, false},
	[RLS_EVENT_WARNING] = {on_fact, false},
	[RLS_EVENT_END] = {on_end, true},
};

/* False: the event cannot be placed. */
static bool sweep_advance(struct rls_timeline *timeline, const struct rls_event *event)
{
	if (event->kind == RLS_EVENT_GPU && !is_possible(timeline, event)) {
		timeline->impossible_gpu++;
		return false;
	}
	if (timeline->any && event->time_ns < timeline->now_ns) {
		timeline->unsorted++;
		return false;
	}
	if (!timeline->any)
		timeline->first_ns = event->time_ns;
	timeline->any = true;
	timeline->now_ns = event->time_ns;
	return true;
}

bool rls_sweep_counts(const struct rls_timeline *timeline, const struct rls_event *event)
{
	if ((unsigned int)event->kind >= RLS_EVENT_MAX || !handlers[event->kind].timed)
		return false;
	if (timeline->any && event->time_ns < timeline->now_ns)
		return false;
	return event->kind != RLS_EVENT_GPU || is_possible(timeline, event);
}

int rls_sweep_event(struct rls_timeline *timeline, const struct rls_event *event)
{
	if ((unsigned int)event->kind >= RLS_EVENT_MAX || !handlers[event->kind].take)
		return 0;
	if (handlers[event->kind].timed && !sweep_advance(timeline, event))
		return 0;
	return handlers[event->kind].take(timeline, event);
}

int rls_sweep_end(struct rls_timeline *timeline)
{
	int err;

	if (!timeline->end_seen) {
		if (timeline->last_gpu_ns > timeline->now_ns)
			timeline->now_ns = timeline->last_gpu_ns;
		timeline->end_ns = timeline->now_ns;
	}
	err = rls_thread_life_end_processes(timeline);
	for (struct rls_process *p = timeline->processes; !err && p; p = p->next) {
		/* Nothing is alive any more: what the GPU did after the last thread. */
		err = rls_thread_life_add_alone(timeline, p, rls_gpu_busy_total(&p->busy));
		if (!err)
			err = rls_gpu_work_finish(&p->gpu);
		if (!err && timeline->tracks)
			err = rls_tracks_process_end(timeline, p);
	}
	rls_timeline_shrink_overviews(timeline);
	return err;
}
