#include "userspace/record/gpu/cuda_calls.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "userspace/record/events/event_sink.h"

/* Calls open in one another on one thread, through callbacks; deeper ones are not reported. */
#define OPEN_MAX 8
#define KEPT_NS 2000000000ULL /* a thread after its end */

struct rls_cuda_site {
	rls_string_id name;
	bool launches;
};

struct open_call {
	const struct rls_cuda_site *site;
	uint64_t start_ns;
	uint32_t sequence; /* of its entry */
	uint16_t depth; /* of the thread's frames inside it */
	bool called_back; /* other events have come between */
};

struct rls_cuda_thread {
	unsigned int count;
	struct open_call open[OPEN_MAX];
};

struct rls_cuda_process {
	bool called; /* a call of it has been seen */
	bool armed; /* CUPTI is, in it */
	struct rls_index_map costs; /* name → ns */
	struct rls_index_map threads; /* tid → struct rls_cuda_thread */
};

static void free_values(struct rls_index_map *map)
{
	for (size_t i = 0; i < map->capacity; i++)
		free(map->entries[i].value);
	rls_index_map_free(map);
	*map = (struct rls_index_map){0};
}

static void process_free(struct rls_cuda_process *process)
{
	if (!process)
		return;
	free_values(&process->threads);
	free_values(&process->costs);
	free(process);
}

void rls_cuda_calls_clear(struct rls_cuda_calls *calls)
{
	for (size_t i = 0; i < calls->processes.capacity; i++)
		process_free(calls->processes.entries[i].value);
	rls_index_map_free(&calls->processes);
	free_values(&calls->sites);
	free(calls->ended);
}

/* What starts work on a GPU; a host function runs on the CPU. */
static bool is_launch(const char *name)
{
	return strstr(name, "Launch") && !strstr(name, "HostFunc");
}

int rls_cuda_calls_site(struct rls_cuda_calls *calls, uint32_t site, const char *name)
{
	struct rls_event_sink sink = rls_event_output_sink(calls->output);
	struct rls_cuda_site *made = malloc(sizeof(*made));
	int r;

	if (!made)
		return -ENOMEM;
	made->launches = is_launch(name);
	/* Of several names at one address ("cuMemFree and 1 more") the first. */
	r = rls_emit_intern(&sink, name, strcspn(name, " "), &made->name);
	if (!r) {
		free(rls_index_map_get(&calls->sites, site, 0));
		r = rls_index_map_put(&calls->sites, site, 0, made);
	}
	if (r)
		free(made);
	return r;
}

void rls_cuda_calls_listen(struct rls_cuda_calls *calls,
			   int (*on_call)(void *context, rls_string_id name, uint64_t start_ns,
					  uint64_t duration_ns),
			   void *context)
{
	calls->on_call = on_call;
	calls->on_call_context = context;
}

bool rls_cuda_calls_made(const struct rls_cuda_calls *calls, uint32_t pid)
{
	const struct rls_cuda_process *process = rls_index_map_get(&calls->processes, pid, 0);

	return process && process->called;
}

/* ---- processes and threads ---- */

static int process_get(struct rls_cuda_calls *calls, uint32_t pid, struct rls_cuda_process **out)
{
	struct rls_cuda_process *process = rls_index_map_get(&calls->processes, pid, 0);

	if (!process) {
		process = calloc(1, sizeof(*process));
		if (!process || rls_index_map_put(&calls->processes, pid, 0, process)) {
			free(process);
			return -ENOMEM;
		}
	}
	*out = process;
	return 0;
}

static int thread_get(struct rls_cuda_process *process, uint32_t tid, struct rls_cuda_thread **out)
{
	struct rls_cuda_thread *thread = rls_index_map_get(&process->threads, tid, 0);

	if (!thread) {
		thread = calloc(1, sizeof(*thread));
		if (!thread || rls_index_map_put(&process->threads, tid, 0, thread)) {
			free(thread);
			return -ENOMEM;
		}
	}
	*out = thread;
	return 0;
}

/* ---- what CUPTI costs ---- */

int rls_cuda_calls_set_cost(struct rls_cuda_calls *calls, uint32_t pid, const char *name,
			    uint64_t cost_ns)
{
	struct rls_event_sink sink = rls_event_output_sink(calls->output);
	struct rls_cuda_process *process;
	rls_string_id id;
	uint64_t *cost;
	int r = rls_emit_intern(&sink, name, strlen(name), &id);

	if (!r)
		r = process_get(calls, pid, &process);
	if (r)
		return r;
	cost = rls_index_map_get(&process->costs, id, 0);
	if (!cost) {
		cost = malloc(sizeof(*cost));
		if (!cost || rls_index_map_put(&process->costs, id, 0, cost)) {
			free(cost);
			return -ENOMEM;
		}
	}
	*cost = cost_ns;
	return 0;
}

int rls_cuda_calls_arm(struct rls_cuda_calls *calls, uint32_t pid, bool armed)
{
	struct rls_cuda_process *process = rls_index_map_get(&calls->processes, pid, 0);
	int r = 0;

	if (!process && armed)
		r = process_get(calls, pid, &process);
	if (!r && process)
		process->armed = armed;
	return r;
}

/* Never more than the call took. */
static int add_cost(struct rls_cuda_calls *calls, const struct rls_cuda_process *process,
		    const struct rls_event *call)
{
	struct rls_event event = rls_event_at(RLS_EVENT_HITS, call->pid, call->tid, call->time_ns);
	const uint64_t *cost_ns = rls_index_map_get(&process->costs, call->cuda_call.name, 0);

	if (!cost_ns || !process->armed)
		return 0;
	event.hits.cost_ns =
		*cost_ns < call->cuda_call.duration_ns ? *cost_ns : call->cuda_call.duration_ns;
	return rls_event_output_add(calls->output, &event);
}

/* ---- calls ---- */

/* Where nothing called back the exit is the very next event: else some are missing. */
static bool is_whole(const struct open_call *call, const struct rls_wire_category *record)
{
	return call->depth == record->depth + 1 &&
	       (call->called_back || record->header.sequence == call->sequence + 1) &&
	       record->header.time_ns >= call->start_ns;
}

static int cuda_calls_report(struct rls_cuda_calls *calls, struct rls_cuda_process *process,
			     const struct open_call *call, const struct rls_wire_category *record)
{
	const struct rls_wire_header *header = &record->header;
	struct rls_event event =
		rls_event_at(RLS_EVENT_CUDA_CALL, header->pid, header->tid, header->time_ns);
	int r;

	process->called = true;
	event.cuda_call.name = call->site->name;
	event.cuda_call.duration_ns = header->time_ns - call->start_ns;
	event.cuda_call.launches = call->site->launches;
	r = rls_event_output_add(calls->output, &event);
	if (!r)
		r = add_cost(calls, process, &event);
	if (!r && calls->on_call)
		r = calls->on_call(calls->on_call_context, call->site->name, call->start_ns,
				   event.cuda_call.duration_ns);
	return r;
}

static void enter(struct rls_cuda_thread *thread, const struct rls_cuda_site *site,
		  const struct rls_wire_category *record)
{
	if (thread->count == OPEN_MAX)
		return;
	thread->open[thread->count++] = (struct open_call){
		.site = site,
		.start_ns = record->header.time_ns,
		.sequence = record->header.sequence,
		.depth = record->depth,
	};
}

int rls_cuda_calls_add(struct rls_cuda_calls *calls, const struct rls_wire_category *record)
{
	bool enters = record->category == RLS_CATEGORY_CUDA_API;
	const struct rls_cuda_site *site = NULL;
	struct rls_cuda_process *process;
	struct rls_cuda_thread *thread;
	int r;

	if (!calls->sites.count || (!enters && record->from != RLS_CATEGORY_CUDA_API))
		return 0;
	r = process_get(calls, record->header.pid, &process);
	if (!r)
		r = thread_get(process, record->header.tid, &thread);
	if (r)
		return r;
	if (enters)
		site = rls_index_map_get(&calls->sites, record->site, 0);
	/* Those that this event proves over, one of which it may be the end of. */
	while (thread->count &&
	       thread->open[thread->count - 1].depth > record->depth - (site ? 1 : 0)) {
		const struct open_call *call = &thread->open[--thread->count];

		if (!r && !enters && is_whole(call, record))
			r = cuda_calls_report(calls, process, call, record);
	}
	if (thread->count)
		thread->open[thread->count - 1].called_back = true;
	if (site)
		enter(thread, site, record);
	return r;
}

/* ---- what is over ---- */

static int note_end(struct rls_cuda_calls *calls, struct rls_cuda_ended ended)
{
	if (rls_grow(&calls->ended, &calls->ended_room, calls->ended_count))
		return -ENOMEM;
	calls->ended[calls->ended_count++] = ended;
	return 0;
}

int rls_cuda_calls_end(struct rls_cuda_calls *calls, const struct rls_wire_header *header)
{
	const struct rls_cuda_process *process =
		rls_index_map_get(&calls->processes, header->pid, 0);

	if (!process || !rls_index_map_get(&process->threads, header->tid, 0))
		return 0;
	return note_end(calls, (struct rls_cuda_ended){header->time_ns, header->pid, header->tid});
}

int rls_cuda_calls_end_process(struct rls_cuda_calls *calls, uint32_t pid, uint64_t time_ns)
{
	if (!rls_index_map_get(&calls->processes, pid, 0))
		return 0;
	return note_end(calls, (struct rls_cuda_ended){time_ns, pid, 0});
}

void rls_cuda_calls_forget(struct rls_cuda_calls *calls, uint32_t pid)
{
	process_free(rls_index_map_get(&calls->processes, pid, 0));
	rls_index_map_remove(&calls->processes, pid, 0);
}

static void forget_thread(struct rls_cuda_calls *calls, uint32_t pid, uint32_t tid)
{
	struct rls_cuda_process *process = rls_index_map_get(&calls->processes, pid, 0);

	if (!process)
		return;
	free(rls_index_map_get(&process->threads, tid, 0));
	rls_index_map_remove(&process->threads, tid, 0);
}

void rls_cuda_calls_tick(struct rls_cuda_calls *calls, uint64_t now_ns)
{
	size_t old = 0;

	for (; old < calls->ended_count; old++) {
		const struct rls_cuda_ended *ended = &calls->ended[old];

		if (now_ns < ended->time_ns + KEPT_NS)
			break;
		if (ended->tid)
			forget_thread(calls, ended->pid, ended->tid);
		else
			rls_cuda_calls_forget(calls, ended->pid);
	}
	calls->ended_count -= old;
	memmove(calls->ended, calls->ended + old, calls->ended_count * sizeof(*calls->ended));
}
