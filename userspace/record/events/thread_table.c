#include "userspace/record/events/thread_table.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/grow.h"

struct rls_live_process *rls_thread_table_find(const struct rls_thread_table *living, uint32_t pid)
{
	return rls_index_map_get(&living->map, pid, 0);
}

static void thread_free(struct rls_live_thread *thread)
{
	rls_hit_cost_clear(&thread->cost);
	free(thread);
}

static void process_free(struct rls_live_process *process)
{
	while (process->all_threads) {
		struct rls_live_thread *thread = process->all_threads;

		process->all_threads = thread->next;
		thread_free(thread);
	}
	free(process->heirs.edges);
	free(process->heirs.ended);
	rls_hit_cost_forget_factors(&process->cost);
	rls_index_map_free(&process->names);
	rls_index_map_free(&process->threads);
	free(process);
}

int rls_live_process(struct rls_thread_table *living, uint32_t pid, struct rls_live_process **out)
{
	struct rls_live_process *process = rls_thread_table_find(living, pid);

	if (process) {
		*out = process;
		return 0;
	}
	if (rls_grow(&living->all, &living->room, living->count))
		return -ENOMEM;
	process = calloc(1, sizeof(*process));
	if (!process || rls_index_map_put(&living->map, pid, 0, process)) {
		free(process);
		return -ENOMEM;
	}
	process->event.pid = pid;
	living->all[living->count++] = process;
	*out = process;
	return 0;
}

void rls_thread_table_forget_process(struct rls_thread_table *living, uint32_t pid)
{
	struct rls_live_process *process = rls_thread_table_find(living, pid);

	if (!process)
		return;
	rls_index_map_remove(&living->map, pid, 0);
	for (size_t i = 0; i < living->count; i++) {
		if (living->all[i] == process) {
			living->all[i] = living->all[--living->count];
			break;
		}
	}
	process_free(process);
}

int rls_live_thread(struct rls_thread_table *living, uint32_t pid, uint32_t tid,
		    struct rls_live_process **process_out, struct rls_live_thread **out)
{
	struct rls_live_process *process;
	struct rls_live_thread *thread;
	int r = rls_live_process(living, pid, &process);

	if (r)
		return r;
	thread = rls_index_map_get(&process->threads, tid, 0);
	if (!thread) {
		thread = calloc(1, sizeof(*thread));
		if (!thread || rls_index_map_put(&process->threads, tid, 0, thread)) {
			free(thread);
			return -ENOMEM;
		}
		thread->tid = tid;
		thread->next = process->all_threads;
		process->all_threads = thread;
	}
	*process_out = process;
	*out = thread;
	return 0;
}

void rls_thread_table_forget_thread(struct rls_live_process *process, uint32_t tid)
{
	struct rls_live_thread **link = &process->all_threads;

	rls_index_map_remove(&process->threads, tid, 0);
	for (; *link; link = &(*link)->next) {
		if ((*link)->tid == tid) {
			struct rls_live_thread *thread = *link;

			*link = thread->next;
			thread_free(thread);
			return;
		}
	}
}

void rls_thread_table_clear(struct rls_thread_table *living)
{
	for (size_t i = 0; i < living->count; i++)
		process_free(living->all[i]);
	free(living->all);
	rls_index_map_free(&living->map);
	*living = (struct rls_thread_table){0};
}
