#include "analysis/timeline/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/grow.h"
#include "analysis/memory/memory_slice.h"

static uint64_t timeline_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static void free_scopes(struct rls_scope *scopes)
{
	while (scopes) {
		struct rls_scope *scope = scopes;

		scopes = scope->next;
		free(scope->unseen);
		free(scope->python);
		rls_operation_samples_free(scope->sampled);
		free(scope);
	}
}

static void free_process(struct rls_process *process)
{
	while (process->threads) {
		struct rls_thread *thread = process->threads;

		process->threads = thread->next;
		rls_span_window_free(&thread->window);
		rls_thread_layers_free(&thread->layers);
		rls_overview_free(&thread->overview);
		free_scopes(thread->scopes);
		free(thread);
	}
	free_scopes(process->scopes);
	rls_gpu_work_free(&process->gpu);
	rls_call_set_free(&process->calls);
	rls_process_memory_free(&process->memory);
	rls_induced_wait_free(&process->others_cost);
	free(process->libraries);
	free(process);
}

void rls_timeline_free(struct rls_timeline *timeline)
{
	while (timeline->processes) {
		struct rls_process *process = timeline->processes;

		timeline->processes = process->next;
		free_process(process);
	}
	rls_index_map_free(&timeline->process_map);
	rls_index_map_free(&timeline->thread_map);
	rls_index_map_free(&timeline->scope_map);
	rls_index_map_free(&timeline->library_map);
	rls_stack_tree_free(&timeline->stacks);
	rls_trace_metadata_free(&timeline->facts);
	rls_sample_totals_free(&timeline->samples);
	rls_operation_rules_free(&timeline->rules);
	rls_memory_totals_free(&timeline->memory);
	rls_layer_names_free(&timeline->layers);
	free(timeline->window_lengths);
	*timeline = (struct rls_timeline){0};
}

struct rls_process *rls_timeline_process(const struct rls_timeline *timeline, uint32_t pid)
{
	return rls_index_map_get(&timeline->process_map, pid, 0);
}

int rls_timeline_add_process(struct rls_timeline *timeline, uint32_t pid, struct rls_process **out)
{
	struct rls_process *process = calloc(1, sizeof(*process));
	int err;

	if (!process)
		return -ENOMEM;
	err = rls_index_map_put(&timeline->process_map, pid, 0, process);
	if (err) {
		free(process);
		return err;
	}
	process->pid = pid;
	process->next = timeline->processes;
	timeline->processes = process;
	timeline->living++;
	*out = process;
	return 0;
}

struct rls_thread *rls_timeline_thread(struct rls_timeline *timeline,
				       const struct rls_process *process, uint32_t tid)
{
	struct rls_thread *thread = timeline->recent;

	if (thread && thread->process == process && thread->tid == tid)
		return thread;
	thread = rls_index_map_get(&timeline->thread_map, (uintptr_t)process, tid);
	if (thread)
		timeline->recent = thread;
	return thread;
}

int rls_timeline_add_thread(struct rls_timeline *timeline, struct rls_process *process,
			    uint32_t tid, struct rls_thread **out)
{
	struct rls_thread *thread = calloc(1, sizeof(*thread));
	int err;

	if (!thread)
		return -ENOMEM;
	err = rls_index_map_put(&timeline->thread_map, (uintptr_t)process, tid, thread);
	if (err) {
		free(thread);
		return err;
	}
	thread->process = process;
	thread->tid = tid;
	thread->next = process->threads;
	process->threads = thread;
	*out = thread;
	return 0;
}

int rls_timeline_scope(struct rls_timeline *timeline, const void *owner, struct rls_scope **list,
		       rls_string_id phase, rls_stack_id stack, struct rls_scope **out)
{
	struct rls_scope *scope = rls_index_map_get(&timeline->scope_map, (uintptr_t)owner,
						    timeline_pair(phase, stack));
	int err;

	if (!scope) {
		scope = calloc(1, sizeof(*scope));
		if (!scope)
			return -ENOMEM;
		err = rls_index_map_put(&timeline->scope_map, (uintptr_t)owner,
					timeline_pair(phase, stack), scope);
		if (err) {
			free(scope);
			return err;
		}
		scope->phase = phase;
		scope->stack = stack;
		scope->operation = rls_stack_tree_node(&timeline->stacks, stack).name;
		scope->next = *list;
		*list = scope;
	}
	*out = scope;
	return 0;
}

void rls_timeline_shrink_overviews(struct rls_timeline *timeline)
{
	size_t most = RLS_OVERVIEW_CELLS_MAX, total;

	do {
		total = 0;
		for (struct rls_process *p = timeline->processes; p; p = p->next) {
			for (struct rls_thread *t = p->threads; t; t = t->next) {
				rls_overview_shrink(&t->overview, most);
				total += t->overview.count;
			}
		}
		most /= 2;
	} while (total > RLS_TIMELINE_CELLS_MAX && most >= RLS_OVERVIEW_CELLS_MIN);
}

int rls_timeline_add_library(struct rls_timeline *timeline, struct rls_process *process,
			     const struct rls_process_library *library)
{
	size_t place = (uintptr_t)rls_index_map_get(&timeline->library_map, (uintptr_t)process,
						    timeline_pair(library->path, library->role));
	int err;

	if (place) {
		process->libraries[place - 1] = *library;
		return 0;
	}
	err = rls_grow(&process->libraries, &process->library_capacity, process->library_count);
	if (!err)
		err = rls_index_map_put(&timeline->library_map, (uintptr_t)process,
					timeline_pair(library->path, library->role),
					(void *)(process->library_count + 1));
	if (err)
		return err;
	process->libraries[process->library_count++] = *library;
	return 0;
}

struct rls_untraced *rls_timeline_scope_untraced(struct rls_scope *scope)
{
	if (!scope->unseen)
		scope->unseen = calloc(1, sizeof(*scope->unseen));
	return scope->unseen;
}

void rls_untraced_all(const struct rls_untraced *untraced, struct rls_cell *out)
{
	*out = untraced->cell;
	rls_cell_add(out, &untraced->late);
	rls_cell_add(out, &untraced->unreported);
}

bool rls_timeline_slice_memory(const struct rls_timeline *before, struct rls_event *event)
{
	const struct rls_process *process = rls_timeline_process(before, event->pid);

	return !process || process->ended ||
	       rls_memory_slice(&before->memory, &process->memory, event);
}
