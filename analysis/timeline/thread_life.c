#include "analysis/timeline/thread_life.h"

#include <errno.h>
#include <stddef.h>

#include "analysis/timeline/tracks.h"
#include "analysis/timeline/window_counts.h"

/* Only a thread that does something in a phase has a scope of it: phases may change faster than
 * threads run, and all threads times all phases would be many. */
struct rls_scope *rls_thread_life_scope(struct rls_timeline *timeline, struct rls_thread *thread)
{
	struct rls_scope *scope;

	if (thread->scope)
		return thread->scope;
	if (rls_timeline_scope(timeline, thread, &thread->scopes, thread->process->phase,
			       thread->stack, &scope) ||
	    rls_window_counts_visit(timeline, scope))
		return NULL;
	thread->scope = scope;
	return scope;
}

/* Where the thread's time is added; *also: and where else, or NULL. NULL: no memory. */
static struct rls_cell *cell_of(struct rls_timeline *timeline, struct rls_thread *thread,
				struct rls_cell **also)
{
	struct rls_scope *scope = rls_thread_life_scope(timeline, thread);
	struct rls_window_part *part = NULL;
	struct rls_closed_part *closed;
	struct rls_untraced *unseen;

	*also = NULL;
	if (!scope || (!timeline->closed && rls_window_counts_part(timeline, scope, &part)))
		return NULL;
	if (part)
		*also = thread->unseen ? &part->late : &part->seen;
	if (!thread->unseen)
		return &scope->cells[thread->category];
	unseen = rls_timeline_scope_untraced(scope);
	if (!unseen)
		return NULL;
	if (thread->unreported)
		return &unseen->unreported;
	if (!timeline->closed)
		return &unseen->late;
	closed = rls_window_counts_closed(timeline, scope);
	if (!closed)
		return NULL;
	*also = &closed->cell;
	return &unseen->cell;
}

static void add_to_cell(struct rls_cell *cell, uint64_t wall_ns, uint64_t cpu_gpu_ns)
{
	if (!cell)
		return;
	cell->wall_ns[RLS_PART_CPU] += wall_ns - cpu_gpu_ns;
	cell->wall_ns[RLS_PART_CPU_GPU] += cpu_gpu_ns;
}

/* Adds the thread's time up to now. */
int rls_thread_life_close_span(struct rls_timeline *timeline, struct rls_thread *thread)
{
	uint64_t now_ns = timeline->now_ns;
	struct rls_span_cells cells = {0};
	uint64_t start_ns = thread->open_ns;
	uint64_t busy_ns, cpu_gpu_ns;
	int err;

	if (now_ns == start_ns)
		return 0;
	cells.cell = cell_of(timeline, thread, &cells.also);
	if (!cells.cell)
		return -ENOMEM;
	err = rls_thread_layers_add(&thread->layers, thread->process->phase,
				    thread->scope->operation, now_ns - start_ns, &cells.layer);
	if (err)
		return err;
	busy_ns = rls_gpu_busy_until(&thread->process->busy, now_ns);
	cpu_gpu_ns = busy_ns - thread->open_busy_ns;
	add_to_cell(cells.cell, now_ns - start_ns, cpu_gpu_ns);
	add_to_cell(cells.also, now_ns - start_ns, cpu_gpu_ns);
	add_to_cell(cells.layer, now_ns - start_ns, cpu_gpu_ns);
	thread->open_ns = now_ns;
	thread->open_busy_ns = busy_ns;
	err = rls_overview_add(&thread->overview, thread->scope, thread->category, start_ns, now_ns,
			       cpu_gpu_ns);
	return err ? err
		   : rls_span_window_push(&thread->window, cells, start_ns, now_ns, cpu_gpu_ns);
}

/* Before the thread's category, stack or phase changes: passes the time in it to the observer. */
int rls_thread_life_show_state(struct rls_timeline *timeline, struct rls_thread *thread)
{
	uint64_t start_ns = thread->state_ns;

	thread->state_ns = timeline->now_ns;
	if (!timeline->tracks || start_ns == timeline->now_ns)
		return 0;
	return rls_tracks_span(timeline, thread, start_ns);
}

int rls_thread_life_show_phase(struct rls_timeline *timeline, struct rls_process *process)
{
	uint64_t start_ns = process->phase_ns;

	process->phase_ns = timeline->now_ns;
	if (!timeline->tracks || start_ns == timeline->now_ns || !process->phase)
		return 0;
	return rls_tracks_phase(timeline, process, start_ns);
}

/* Adds what the GPU did since the process was left without threads. */
int rls_thread_life_add_alone(struct rls_timeline *timeline, struct rls_process *process,
			      uint64_t busy_ns)
{
	uint64_t alone_ns = busy_ns - process->alone_busy_ns;
	struct rls_scope *scope;
	int err;

	process->alone_busy_ns = busy_ns;
	if (!alone_ns)
		return 0;
	err = rls_timeline_scope(timeline, process, &process->scopes, process->phase, 0, &scope);
	if (!err)
		scope->gpu_alone_ns += alone_ns;
	return err;
}

static int begin_thread(struct rls_timeline *timeline, struct rls_thread *thread)
{
	struct rls_process *process = thread->process;
	uint64_t busy_ns = rls_gpu_busy_until(&process->busy, timeline->now_ns);
	int err = process->alive ? 0 : rls_thread_life_add_alone(timeline, process, busy_ns);

	if (err)
		return err;
	thread->category = RLS_CATEGORY_UNKNOWN;
	thread->unseen = true;
	thread->unreported = !timeline->closed;
	thread->stack = 0;
	thread->continued = 0;
	thread->scope = NULL;
	thread->open_ns = timeline->now_ns;
	thread->open_busy_ns = busy_ns;
	thread->state_ns = timeline->now_ns;
	rls_span_window_reset(&thread->window, timeline->now_ns);
	rls_thread_layers_restart(&thread->layers);

	thread->next_alive = process->alive;
	thread->alive_link = &process->alive;
	if (process->alive)
		process->alive->alive_link = &thread->next_alive;
	process->alive = thread;
	return 0;
}

int rls_thread_life_end_thread(struct rls_timeline *timeline, struct rls_thread *thread)
{
	int err = rls_thread_life_close_span(timeline, thread);

	if (!err)
		err = rls_thread_life_show_state(timeline, thread);
	if (!err && timeline->tracks)
		err = rls_tracks_thread_end(timeline, thread);
	*thread->alive_link = thread->next_alive;
	if (thread->next_alive)
		thread->next_alive->alive_link = thread->alive_link;
	thread->alive_link = NULL;
	thread->process->alone_busy_ns = thread->open_busy_ns;
	return err;
}

void rls_thread_life_start_process(struct rls_timeline *timeline, struct rls_process *process)
{
	if (process->started)
		return;
	process->started = true;
	process->start_ns = process->phase_ns = timeline->now_ns;
}

int rls_thread_life_end_process(struct rls_timeline *timeline, struct rls_process *process)
{
	int err = 0;

	while (!err && process->alive)
		err = rls_thread_life_end_thread(timeline, process->alive);
	rls_thread_life_start_process(timeline, process);
	if (!err)
		err = rls_thread_life_show_phase(timeline, process);
	process->ended = true;
	process->end_ns = timeline->now_ns;
	timeline->living--;
	return err;
}

/* The living are the latest, mostly: the walk ends with the last of them. */
int rls_thread_life_end_processes(struct rls_timeline *timeline)
{
	int err = 0;

	for (struct rls_process *p = timeline->processes; !err && timeline->living; p = p->next) {
		if (!p->ended)
			err = rls_thread_life_end_process(timeline, p);
	}
	return err;
}

/* --- who an event speaks of --------------------------------------------------------- */

/* The end of what was never heard of is the end of nothing. */
static bool is_end(enum rls_event_kind kind)
{
	return kind == RLS_EVENT_THREAD_END || kind == RLS_EVENT_PROCESS_END;
}

/* Reports about a thread, and ends, may trail after an end without anything being wrong. */
static bool may_trail(enum rls_event_kind kind)
{
	return is_end(kind) || kind == RLS_EVENT_HITS || kind == RLS_EVENT_OFF_CPU ||
	       kind == RLS_EVENT_SHARE;
}

/* The process, made if it was never heard of. *out NULL: there is none, nothing to do. */
int rls_thread_life_find_process(struct rls_timeline *timeline, const struct rls_event *event,
				 struct rls_process **out)
{
	struct rls_process *process = rls_timeline_process(timeline, event->pid);
	int err;

	*out = NULL;
	if (!process && is_end(event->kind))
		return 0;
	if (!process) {
		err = rls_timeline_add_process(timeline, event->pid, &process);
		if (err)
			return err;
	}
	if (process->ended) {
		timeline->strays += !may_trail(event->kind);
		process = NULL;
	} else {
		rls_thread_life_start_process(timeline, process);
	}
	*out = process;
	return 0;
}

/* The living thread, begun if it was never heard of or if the event proves it alive again.
 * *out NULL: there is none, nothing to do. */
int rls_thread_life_find_thread(struct rls_timeline *timeline, const struct rls_event *event,
				struct rls_thread **out)
{
	struct rls_thread *thread = timeline->recent;
	struct rls_process *process;
	int err;

	if (thread && thread->alive_link && thread->tid == event->tid &&
	    thread->process->pid == event->pid) {
		*out = thread;
		return 0;
	}
	err = rls_thread_life_find_process(timeline, event, &process);
	if (err)
		return err;
	*out = NULL;
	if (!process)
		return 0;
	thread = rls_timeline_thread(timeline, process, event->tid);
	if (thread ? !thread->alive_link && may_trail(event->kind) : is_end(event->kind))
		return 0;
	if (!thread)
		err = rls_timeline_add_thread(timeline, process, event->tid, &thread);
	if (!err && !thread->alive_link)
		err = begin_thread(timeline, thread);
	if (!err)
		*out = thread;
	return err;
}
