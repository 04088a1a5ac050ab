#include "analysis/timeline/slice_source.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/grow.h"
#include "analysis/base/index_map.h"
#include "analysis/event/sample_kind.h"
#include "analysis/timeline/sweep.h"

struct cut {
	struct rls_event_source source;
	struct rls_event_source *whole;
	struct rls_timeline swept; /* all before the cut; then on with lives and marks */
	uint64_t from_ns, to_ns; /* since the first instant, until that is known */
	bool placed; /* they are instants now */
	bool begun;
	bool past; /* something at its end or later was read */
	bool ended;

	struct kept_gpu *gpu; /* until then: work that reaches into the cut */
	size_t gpu_count, gpu_capacity;
	struct rls_index_map reported; /* processes that ended before the slice and were reported */

	struct rls_event *queue; /* what the cut begins with */
	size_t count, capacity, next;
};

struct kept_gpu {
	const struct rls_process *process;
	struct rls_event event;
};

/* What holds for the whole trace, wherever it stands. */
static bool is_fact(enum rls_event_kind kind)
{
	switch (kind) {
	case RLS_EVENT_HOST:
	case RLS_EVENT_LOSS:
	case RLS_EVENT_CALIBRATION:
	case RLS_EVENT_WARNING:
	case RLS_EVENT_CLOCK:
	case RLS_EVENT_BUDGET:
	case RLS_EVENT_FRAME:
	case RLS_EVENT_OPERATION_RULE:
	case RLS_EVENT_LAYER_NAME:
		return true;
	default:
		return false;
	}
}

/* --- the beginning ------------------------------------------------------------------ */

/* A zeroed event at the cut's beginning, to be filled in. */
static int slice_source_add(struct cut *cut, enum rls_event_kind kind, uint32_t pid, uint32_t tid,
			    struct rls_event **out)
{
	int err = rls_grow(&cut->queue, &cut->capacity, cut->count);

	if (err)
		return err;
	*out = &cut->queue[cut->count++];
	**out = (struct rls_event){
		.kind = kind,
		.pid = pid,
		.tid = tid,
		.time_ns = cut->from_ns,
	};
	return 0;
}

static int add_category(struct cut *cut, const struct rls_thread *thread)
{
	struct rls_event *event;
	int err = slice_source_add(cut, RLS_EVENT_CATEGORY, thread->process->pid, thread->tid,
				   &event);

	if (!err)
		event->category.category =
			thread->unreported ? RLS_CATEGORY_UNKNOWN : thread->category;
	return err;
}

static int add_window(struct cut *cut, bool open)
{
	struct rls_event *event;
	int err = slice_source_add(cut, RLS_EVENT_WINDOW, 0, 0, &event);

	if (!err)
		event->window.open = open;
	return err;
}

/* Calls of layers that are open. */
static int add_layers(struct cut *cut, const struct rls_thread *thread)
{
	const struct rls_thread_layers *layers = &thread->layers;
	int err = 0;

	for (uint32_t i = 0; !err && i <= layers->depth; i++) {
		struct rls_event *event;

		if (!layers->open[i].layer && !layers->open[i].pass)
			continue;
		err = slice_source_add(cut, RLS_EVENT_LAYER, thread->process->pid, thread->tid,
				       &event);
		if (err)
			break;
		event->layer.id = layers->open[i].layer;
		event->layer.pass = layers->open[i].pass;
		event->layer.depth = i;
	}
	return err;
}

static int add_thread(struct cut *cut, const struct rls_thread *thread)
{
	uint32_t pid = thread->process->pid;
	struct rls_event *event;
	int err = slice_source_add(cut, RLS_EVENT_THREAD, pid, thread->tid, &event);

	if (!err) {
		event->thread.name = thread->name;
		err = slice_source_add(cut, RLS_EVENT_OPERATION, pid, thread->tid, &event);
	}
	if (!err) {
		event->operation.depth = (uint16_t)rls_stack_tree_names(
			&cut->swept.stacks, thread->stack, event->operation.stack);
		event->operation.continued = thread->continued < event->operation.depth
						     ? thread->continued
						     : event->operation.depth;
		err = add_category(cut, thread);
	}
	return err ? err : add_layers(cut, thread);
}

static int add_libraries(struct cut *cut, const struct rls_process *process)
{
	int err = 0;

	for (size_t i = 0; !err && i < process->library_count; i++) {
		const struct rls_process_library *library = &process->libraries[i];
		struct rls_event *event;

		err = slice_source_add(cut, RLS_EVENT_LIBRARY, process->pid, 0, &event);
		if (err)
			break;
		event->library.path = library->path;
		event->library.role = library->role;
		event->library.sites = library->sites;
	}
	return err;
}

static int add_process(struct cut *cut, const struct rls_process *process)
{
	struct rls_event *event;
	int err = slice_source_add(cut, RLS_EVENT_PROCESS, process->pid, 0, &event);

	if (!err) {
		event->process.ppid = process->ppid;
		event->process.ns_pid = process->ns_pid;
		event->process.name = process->name;
		event->process.python = process->python;
		event->process.cmdline = process->cmdline;
		event->process.container = process->container;
		err = add_libraries(cut, process);
	}
	if (!err)
		err = slice_source_add(cut, RLS_EVENT_PHASE, process->pid, 0, &event);
	if (!err)
		event->phase.phase = process->phase;
	for (const struct rls_thread *t = process->alive; !err && t; t = t->next_alive)
		err = add_thread(cut, t);
	return err;
}

static bool any_unseen(const struct cut *cut)
{
	for (const struct rls_process *p = cut->swept.processes; p; p = p->next) {
		for (const struct rls_thread *t = p->alive; t; t = t->next_alive) {
			if (t->unseen && !t->unreported)
				return true;
		}
	}
	return cut->swept.closed;
}

/* In a window, of threads that have reported something since it began. */
static int add_seen(struct cut *cut)
{
	int err = add_window(cut, true);

	for (const struct rls_process *p = cut->swept.processes; !err && p; p = p->next) {
		for (const struct rls_thread *t = p->alive; !err && t; t = t->next_alive) {
			if (!t->unseen || t->unreported)
				err = add_category(cut, t);
		}
	}
	return err;
}

static int add_gpu(struct cut *cut, const struct kept_gpu *gpu)
{
	struct rls_event *event;
	int err = slice_source_add(cut, RLS_EVENT_GPU, gpu->event.pid, 0, &event);

	if (!err)
		event->gpu = gpu->event.gpu;
	return err;
}

/* An ended process is reported because of its work, and is not alive in the slice. */
static int add_ended(struct cut *cut, const struct rls_process *process)
{
	struct rls_event *event;
	int err = add_process(cut, process);

	return err ? err : slice_source_add(cut, RLS_EVENT_PROCESS_END, process->pid, 0, &event);
}

static int write_ended(struct cut *cut, const struct rls_process *process)
{
	int err;

	if (rls_index_map_get(&cut->reported, (uintptr_t)process, 0))
		return 0;
	err = rls_index_map_put(&cut->reported, (uintptr_t)process, 0, cut);
	return err ? err : add_ended(cut, process);
}

/* Before the living: one of them may have the pid now. */
static int add_work_of_ended(struct cut *cut)
{
	int err = 0;

	for (size_t i = 0; !err && i < cut->gpu_count; i++) {
		if (!cut->gpu[i].process->ended)
			continue;
		err = write_ended(cut, cut->gpu[i].process);
		if (!err)
			err = add_gpu(cut, &cut->gpu[i]);
	}
	return err;
}

/* Where a thread is unseen, everything begins with a window's end, and what is seen after all
 * with another one's beginning. */
static int slice_source_begin(struct cut *cut)
{
	bool unseen = any_unseen(cut);
	int err = unseen ? add_window(cut, false) : 0;

	if (!err)
		err = add_work_of_ended(cut);
	for (const struct rls_process *p = cut->swept.processes; !err && p; p = p->next) {
		if (p->started && !p->ended)
			err = add_process(cut, p);
	}
	if (!err && unseen && !cut->swept.closed)
		err = add_seen(cut);
	for (size_t i = 0; !err && i < cut->gpu_count; i++) {
		if (!cut->gpu[i].process->ended)
			err = add_gpu(cut, &cut->gpu[i]);
	}
	cut->begun = true;
	return err;
}

/* GPU work that reaches into the cut waits for its beginning. */
static int keep_gpu(struct cut *cut, const struct rls_event *event)
{
	int err;

	if (event->kind != RLS_EVENT_GPU || event->gpu.end_ns <= cut->from_ns)
		return 0;
	err = rls_grow(&cut->gpu, &cut->gpu_capacity, cut->gpu_count);
	if (!err)
		cut->gpu[cut->gpu_count++] = (struct kept_gpu){
			.process = rls_timeline_process(&cut->swept, event->pid),
			.event = *event,
		};
	return err;
}

/* --- within ------------------------------------------------------------------------- */

/* The part before until_ns of a value that is reported for [since_ns, at_ns). */
static uint64_t share_until(uint64_t since_ns, uint64_t at_ns, uint64_t value, uint64_t until_ns)
{
	if (until_ns >= at_ns)
		return value;
	if (until_ns <= since_ns)
		return 0;
	return (uint64_t)((unsigned __int128)value * (until_ns - since_ns) / (at_ns - since_ns));
}

/* The part in the cut: parts of one report sum to it exactly. */
static uint64_t slice_source_share(const struct cut *cut, uint64_t since_ns, uint64_t at_ns,
				   uint64_t value)
{
	if (cut->from_ns <= since_ns && at_ns <= cut->to_ns)
		return value;
	return share_until(since_ns, at_ns, value, cut->to_ns) -
	       share_until(since_ns, at_ns, value, cut->from_ns);
}

/* The thread that a report is of, if it is alive. */
static const struct rls_thread *reporting(struct cut *cut, const struct rls_event *event)
{
	const struct rls_process *process = rls_timeline_process(&cut->swept, event->pid);
	const struct rls_thread *thread =
		process ? rls_timeline_thread(&cut->swept, process, event->tid) : NULL;

	return thread && thread->alive_link ? thread : NULL;
}

/* The sweep has set the mark to the event's instant, unless it was there already. */
static uint64_t reported_since(const struct rls_mark *mark, const struct rls_event *event)
{
	return mark->latest_ns < event->time_ns ? mark->latest_ns : mark->before_ns;
}

/* An event about the time before it is moved to the slice's end if it came later. */
static void bring_back(const struct cut *cut, struct rls_event *event)
{
	if (event->time_ns > cut->to_ns)
		event->time_ns = cut->to_ns;
}

/* A count that is left is not none, which would mean another kind of report. */
static bool clip_hits(const struct cut *cut, uint64_t since_ns, struct rls_event *event)
{
	uint64_t at_ns = event->time_ns;

	if (event->hits.count) {
		event->hits.count = slice_source_share(cut, since_ns, at_ns, event->hits.count);
		event->hits.cost_ns = slice_source_share(cut, since_ns, at_ns, event->hits.cost_ns);
		if (!event->hits.count && event->hits.cost_ns)
			event->hits.count = 1;
	} else if (at_ns <= cut->from_ns || at_ns > cut->to_ns) {
		event->hits.cost_ns = 0; /* the cost of what ends at that instant */
	}
	return event->hits.count || event->hits.cost_ns;
}

/* Within the cut a report without a share still says that the thread is alive. */
static bool clip_report(struct cut *cut, struct rls_event *event)
{
	const struct rls_thread *thread = reporting(cut, event);
	bool hits = event->kind == RLS_EVENT_HITS, some;
	uint64_t since_ns;

	if (!thread)
		return !cut->past;
	since_ns = reported_since(hits ? &thread->window.hits : &thread->window.off_cpu, event);
	if (since_ns >= cut->to_ns)
		return false;
	if (hits) {
		some = clip_hits(cut, since_ns, event);
	} else {
		event->off_cpu.ns =
			slice_source_share(cut, since_ns, event->time_ns, event->off_cpu.ns);
		some = event->off_cpu.ns;
	}
	some |= !cut->past;
	bring_back(cut, event);
	return some;
}

/* A wait is reported at its end, with the length of all waits that it stands for. */
static bool clip_sample(struct cut *cut, struct rls_event *event)
{
	const struct rls_process *process = rls_timeline_process(&cut->swept, event->pid);
	uint64_t at_ns = event->time_ns, waited_ns = event->sample.ns;

	if (!rls_sample_kind_waits(event->sample.kind) || !waited_ns)
		return !cut->past;
	if (event->sample.every > 1)
		waited_ns /= event->sample.every;
	if (waited_ns > at_ns)
		waited_ns = at_ns;
	event->sample.ns = slice_source_share(cut, at_ns - waited_ns, at_ns, event->sample.ns);
	if (cut->past &&
	    !(process && process->started && !process->ended && process->start_ns < cut->to_ns))
		return false;
	bring_back(cut, event);
	return event->sample.ns;
}

/* What trails after an end is nothing to the sweep (thread_life.h), but would begin a life in a cut that has
 * not seen the end. */
static bool is_late(struct cut *cut, const struct rls_event *event)
{
	const struct rls_process *process = rls_timeline_process(&cut->swept, event->pid);
	const struct rls_thread *thread;

	if (!process || event->kind == RLS_EVENT_GPU || event->kind == RLS_EVENT_LIBRARY)
		return false;
	if (process->ended)
		return process->end_ns < cut->from_ns;
	if (event->kind != RLS_EVENT_HITS && event->kind != RLS_EVENT_OFF_CPU &&
	    event->kind != RLS_EVENT_SHARE)
		return false;
	thread = rls_timeline_thread(&cut->swept, process, event->tid);
	return thread && !thread->alive_link && thread->open_ns < cut->from_ns;
}

/* Makes the event the part of it that the cut has. False: none. */
static bool slice_source_clip(struct cut *cut, struct rls_event *event)
{
	if (is_late(cut, event))
		return false;
	switch (event->kind) {
	case RLS_EVENT_GPU:
		if (event->gpu.end_ns > cut->to_ns)
			event->gpu.end_ns = cut->to_ns;
		return !cut->past;
	case RLS_EVENT_HITS:
	case RLS_EVENT_OFF_CPU:
		return clip_report(cut, event);
	case RLS_EVENT_SAMPLE:
		return clip_sample(cut, event);
	case RLS_EVENT_MEMORY_LINE:
	case RLS_EVENT_MEMORY_AGES:
	case RLS_EVENT_COPY_LINE:
		return !cut->past && rls_timeline_slice_memory(&cut->swept, event);
	default:
		return !cut->past;
	}
}

/* The first event at the cut's beginning or later, or a fact before it: 1 or -errno. */
static int read_before(struct cut *cut, struct rls_event *event)
{
	int more, err;

	while ((more = cut->whole->next(cut->whole, event)) > 0) {
		bool counts;

		if (is_fact(event->kind))
			return 1;
		counts = rls_sweep_counts(&cut->swept, event);
		if (!cut->placed && counts) {
			cut->placed = true;
			cut->from_ns += event->time_ns;
			if (cut->to_ns != UINT64_MAX)
				cut->to_ns += event->time_ns;
		}
		if (cut->placed && event->time_ns >= cut->from_ns &&
		    event->kind != RLS_EVENT_LIBRARY)
			return 1;
		err = rls_sweep_event(&cut->swept, event);
		if (!err && counts)
			err = keep_gpu(cut, event);
		if (err)
			return err;
	}
	return more ? more : -ERANGE;
}

static int next_of_queue(struct cut *cut, struct rls_event *event)
{
	*event = cut->queue[cut->next++];
	if (event->kind == RLS_EVENT_GPU && event->gpu.end_ns > cut->to_ns)
		event->gpu.end_ns = cut->to_ns;
	return 1;
}

/* What begins or ends a life, or sets a mark. The rest would only take memory. */
static bool is_followed(struct cut *cut, const struct rls_event *event)
{
	switch (event->kind) {
	case RLS_EVENT_PROCESS:
	case RLS_EVENT_PROCESS_END:
	case RLS_EVENT_THREAD:
	case RLS_EVENT_THREAD_END:
	case RLS_EVENT_CATEGORY:
	case RLS_EVENT_LAYER:
	case RLS_EVENT_HITS:
	case RLS_EVENT_OFF_CPU:
		return true;
	case RLS_EVENT_OPERATION:
	case RLS_EVENT_LAUNCH:
	case RLS_EVENT_CUDA_CALL:
	case RLS_EVENT_SHARE:
		return !reporting(cut, event);
	default:
		return false;
	}
}

/* What threads have reported before shows which part of the slice a report covers. */
static int slice_source_follow(struct cut *cut, const struct rls_event *event)
{
	return is_followed(cut, event) ? rls_sweep_event(&cut->swept, event) : 0;
}

/* Work of a process that has ended before the cut may begin in it. */
static int write_owner(struct cut *cut, const struct rls_event *event)
{
	const struct rls_process *process = rls_timeline_process(&cut->swept, event->pid);
	size_t first = cut->count;
	int err;

	if (!process || !process->ended || process->end_ns >= cut->from_ns)
		return 0;
	err = write_ended(cut, process);
	for (size_t i = first; i < cut->count; i++)
		cut->queue[i].time_ns = event->time_ns;
	return err;
}

/* The event as the cut has it: 1, 0 if it has nothing of it, or -errno. */
static int slice_source_fit(struct cut *cut, struct rls_event *event)
{
	int err;

	cut->past |= event->time_ns >= cut->to_ns && event->kind != RLS_EVENT_LIBRARY;
	err = slice_source_follow(cut, event);
	if (!err && !cut->past && event->kind == RLS_EVENT_GPU)
		err = write_owner(cut, event);
	return err ? err : slice_source_clip(cut, event);
}

/* Only then: what threads did up to the slice's end is reported afterwards. */
static int next_end(struct cut *cut, struct rls_event *event)
{
	if (!cut->past || cut->ended)
		return 0;
	*event = (struct rls_event){
		.kind = RLS_EVENT_END,
		.time_ns = cut->to_ns,
		.end.complete = true,
	};
	cut->ended = true;
	return 1;
}

/* The event comes after what is in the queue. */
static int add_last(struct cut *cut, const struct rls_event *event)
{
	int err = rls_grow(&cut->queue, &cut->capacity, cut->count);

	if (!err)
		cut->queue[cut->count++] = *event;
	return err;
}

/* 1: a fact from before the cut; 0: the cut has begun, and the queue is what it begins with; or -errno. */
static int next_first(struct cut *cut, struct rls_event *event)
{
	int more = read_before(cut, event), err;

	if (more <= 0 || is_fact(event->kind))
		return more;
	err = slice_source_begin(cut);
	if (!err)
		err = slice_source_fit(cut, event);
	return err > 0 ? add_last(cut, event) : err;
}

static int next(struct rls_event_source *source, struct rls_event *event)
{
	struct cut *cut = (struct cut *)source;
	int more;

	while (!cut->begun) {
		more = next_first(cut, event);
		source->damaged = cut->whole->damaged;
		if (more)
			return more;
	}
	if (cut->next < cut->count)
		return next_of_queue(cut, event);
	while (!cut->ended && (more = cut->whole->next(cut->whole, event)) != 0) {
		source->damaged = cut->whole->damaged;
		if (more > 0 && !is_fact(event->kind))
			more = slice_source_fit(cut, event);
		if (more > 0 && cut->next < cut->count) {
			int err = add_last(cut, event);

			return err ? err : next_of_queue(cut, event);
		}
		if (more)
			return more;
	}
	source->damaged = cut->whole->damaged;
	return next_end(cut, event);
}

static void free_cut(struct rls_event_source *source)
{
	struct cut *cut = (struct cut *)source;

	cut->whole->free(cut->whole);
	rls_timeline_free(&cut->swept);
	rls_index_map_free(&cut->reported);
	free(cut->gpu);
	free(cut->queue);
	free(cut);
}

int rls_slice_source_new(struct rls_event_source *source, uint64_t from_ns, uint64_t to_ns,
			 struct rls_event_source **out)
{
	struct cut *cut = calloc(1, sizeof(*cut));

	if (!cut) {
		source->free(source);
		return -ENOMEM;
	}
	cut->source = (struct rls_event_source){
		.next = next,
		.free = free_cut,
		.strings = source->strings,
	};
	cut->whole = source;
	cut->from_ns = from_ns;
	cut->to_ns = to_ns;
	*out = &cut->source;
	return 0;
}
