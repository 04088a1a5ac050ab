#include "userspace/record/gpu/gpu_thread.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/clock.h"
#include "userspace/base/tasks.h"
#include "userspace/record/targets/process_info.h"

#define THREADS_MAX 65536
#define REST_SHARE 20 /* a target that makes numbers up must not keep us busy: 5 % */

void rls_gpu_threads_clear(struct rls_gpu_threads *threads)
{
	rls_index_map_free(&threads->map);
	*threads = (struct rls_gpu_threads){0};
}

void rls_gpu_threads_add(struct rls_gpu_threads *threads, uint32_t ns_tid, uint32_t tid)
{
	if (threads->map.count >= THREADS_MAX) {
		rls_index_map_free(&threads->map);
		threads->map = (struct rls_index_map){0};
	}
	if (ns_tid && tid)
		rls_index_map_put(&threads->map, ns_tid, 0, (void *)(uintptr_t)tid);
}

/* The last number of the line "NSpid:" is the innermost namespace's. */
static uint32_t read_ns_tid(uint32_t pid, uint32_t tid)
{
	_cleanup_free_ char *status = NULL;
	const char *line, *end;
	char name[48];

	snprintf(name, sizeof(name), "task/%u/status", tid);
	if (rls_process_read((pid_t)pid, name, &status, NULL))
		return 0;
	line = strstr(status, "\nNSpid:");
	if (!line)
		return 0;
	end = line + 1 + strcspn(line + 1, "\n");
	while (end > line && isdigit((unsigned char)end[-1]))
		end--;
	return (uint32_t)strtoul(end, NULL, 10);
}

static void scan(struct rls_gpu_threads *threads)
{
	_cleanup_tasks_ DIR *tasks = rls_tasks_open((pid_t)threads->pid);
	uint32_t tid;

	while ((tid = (uint32_t)rls_tasks_next(tasks)))
		rls_gpu_threads_add(threads, read_ns_tid(threads->pid, tid), tid);
}

static uint32_t known(const struct rls_gpu_threads *threads, uint32_t ns_tid)
{
	return (uint32_t)(uintptr_t)rls_index_map_get(&threads->map, ns_tid, 0);
}

uint32_t rls_gpu_threads_find(struct rls_gpu_threads *threads, uint32_t ns_tid)
{
	uint64_t begun_ns, ended_ns;
	uint32_t tid;

	if (ns_tid == threads->ns_pid)
		return threads->pid;
	tid = known(threads, ns_tid);
	if (tid)
		return tid;
	begun_ns = rls_monotonic_ns();
	if (begun_ns < threads->rests_until_ns)
		return 0;
	scan(threads);
	tid = known(threads, ns_tid);
	ended_ns = rls_monotonic_ns();
	if (!tid)
		threads->rests_until_ns = ended_ns + REST_SHARE * (ended_ns - begun_ns);
	return tid;
}
