#include "userspace/cpu/cpu_affinity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/proc_stat.h"
#include "userspace/base/tasks.h"
#include "userspace/cpu/cpu_priority.h"

#define EVERY_NS 50000000ULL

void rls_affinity_open(struct rls_affinity *affinity)
{
	*affinity = (struct rls_affinity){0};
	affinity->able = !sched_getaffinity(0, sizeof(affinity->allowed), &affinity->allowed) &&
			 CPU_COUNT(&affinity->allowed) > 1;
}

void rls_affinity_close(struct rls_affinity *affinity)
{
	if (affinity->moved)
		sched_setaffinity(0, sizeof(affinity->allowed), &affinity->allowed);
	affinity->moved = false;
}

cpu_set_t rls_affinity_choose(const cpu_set_t *allowed, const cpu_set_t *taken)
{
	cpu_set_t common, left;

	CPU_AND(&common, allowed, taken);
	CPU_XOR(&left, allowed, &common);
	return CPU_COUNT(&left) ? left : *allowed;
}

#define STAT_BYTES 1024

static bool read_stat(uint32_t pid, uint32_t tid, char text[STAT_BYTES])
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	file = fopen(path, "re");
	return file && fgets(text, STAT_BYTES, file);
}

static uint64_t stat_number(const char *text, int number)
{
	const char *at = rls_stat_word(text, number);

	return at ? strtoull(at, NULL, 10) : 0;
}

/* -1: the thread is gone. */
static int read_cpu(uint32_t pid, uint32_t tid)
{
	char text[STAT_BYTES];

	return read_stat(pid, tid, text) && rls_stat_word(text, 39) ? (int)stat_number(text, 39)
								    : -1;
}

/* In /proc's ticks; one that runs now is above all that do not. */
static uint64_t how_busy(uint32_t pid, uint32_t tid)
{
	char text[STAT_BYTES];
	const char *state;

	if (!read_stat(pid, tid, text))
		return 0;
	state = rls_stat_word(text, 3);
	return stat_number(text, 14) + stat_number(text, 15) +
	       (state && *state == 'R' ? UINT64_MAX / 2 : 0);
}

void rls_affinity_expect(struct rls_affinity *affinity, pid_t pid)
{
	_cleanup_tasks_ DIR *tasks = rls_tasks_open(pid);
	uint64_t most = 0;
	uint32_t tid;

	while ((tid = (uint32_t)rls_tasks_next(tasks))) {
		uint64_t busy = how_busy((uint32_t)pid, tid);

		if (busy <= most)
			continue;
		most = busy;
		affinity->latest = (struct rls_affinity_thread){(uint32_t)pid, tid};
	}
}

/* A thread behind a real-time one on its CPU may wait for ever. */
static bool makes_way(uint32_t tid)
{
	int policy = sched_getscheduler((pid_t)tid) & ~SCHED_RESET_ON_FORK;

	return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

static bool go_to(struct rls_affinity *affinity, int cpu)
{
	cpu_set_t there;

	CPU_ZERO(&there);
	CPU_SET((size_t)cpu, &there);
	affinity->visited = cpu;
	return !sched_setaffinity(0, sizeof(there), &there);
}

void rls_affinity_visit(struct rls_affinity *affinity)
{
	int cpu = affinity->able && affinity->latest.tid && makes_way(affinity->latest.tid)
			  ? read_cpu(affinity->latest.pid, affinity->latest.tid)
			  : -1;

	if (cpu < 0 || !CPU_ISSET_S((size_t)cpu, sizeof(cpu_set_t), &affinity->allowed) ||
	    (affinity->visiting && cpu == affinity->visited))
		return;
	if (affinity->visiting) {
		go_to(affinity, cpu);
		return;
	}
	affinity->visiting = !sched_getaffinity(0, sizeof(affinity->left), &affinity->left) &&
			     go_to(affinity, cpu);
	if (!affinity->visiting)
		return;
	affinity->left_nice =
		rls_priority_raise(); /* the thread is not to run amid what is half done */
}

/* Left to itself the thread would stay beside the one that it has visited, or where a scheduler has moved that meanwhile. */
void rls_affinity_leave(struct rls_affinity *affinity)
{
	cpu_set_t there, elsewhere;
	int cpu;

	if (!affinity->visiting)
		return;
	cpu = read_cpu(affinity->latest.pid, affinity->latest.tid);
	CPU_ZERO(&there);
	CPU_SET_S((size_t)cpu, sizeof(there), &there);
	elsewhere = rls_affinity_choose(&affinity->left, &there);
	sched_setaffinity(0, sizeof(elsewhere), &elsewhere);
	sched_setaffinity(0, sizeof(affinity->left), &affinity->left);
	rls_priority_lower(affinity->left_nice);
	affinity->visiting = false;
}

void rls_affinity_tick(struct rls_affinity *affinity, uint64_t now_ns)
{
	cpu_set_t taken, wanted, now;

	if (!affinity->able || now_ns < affinity->due_ns)
		return;
	affinity->due_ns = now_ns + EVERY_NS;
	CPU_ZERO(&taken);
	for (int i = 0; i < RLS_AFFINITY_THREADS; i++) {
		const struct rls_affinity_thread *thread = &affinity->threads[i];
		int cpu = thread->tid ? read_cpu(thread->pid, thread->tid) : -1;

		if (cpu >= 0 && cpu < CPU_SETSIZE)
			CPU_SET((size_t)cpu, &taken);
	}
	memset(affinity->threads, 0, sizeof(affinity->threads));
	affinity->next = 0;
	if (!CPU_COUNT(&taken))
		return; /* nothing was recorded: they are where they were */
	wanted = rls_affinity_choose(&affinity->allowed, &taken);
	if (sched_getaffinity(0, sizeof(now), &now) || CPU_EQUAL(&now, &wanted))
		return;
	affinity->moved |= !sched_setaffinity(0, sizeof(wanted), &wanted);
}
