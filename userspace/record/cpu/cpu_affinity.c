#include "userspace/record/cpu/cpu_affinity.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "analysis/base/cleanup.h"
#include "userspace/record/targets/process_info.h"

#define EVERY_NS 50000000ULL
#define NICE_VISITING -20               /* whom we visit is not to run amid what is half done */

void rls_aside_open(struct rls_aside *aside)
{
	*aside = (struct rls_aside){ 0 };
	aside->able = !sched_getaffinity(0, sizeof(aside->allowed), &aside->allowed) &&
		      CPU_COUNT(&aside->allowed) > 1;
}

void rls_aside_close(struct rls_aside *aside)
{
	if (aside->moved)
		sched_setaffinity(0, sizeof(aside->allowed), &aside->allowed);
	aside->moved = false;
}

cpu_set_t rls_aside_choose(const cpu_set_t *allowed, const cpu_set_t *taken)
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

	return read_stat(pid, tid, text) && rls_stat_word(text, 39) ? (int)stat_number(text, 39) : -1;
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

void rls_aside_expect(struct rls_aside *aside, pid_t pid)
{
	char path[32];
	struct dirent *entry;
	uint64_t most = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		uint64_t busy = tid ? how_busy((uint32_t)pid, tid) : 0;

		if (busy <= most)
			continue;
		most = busy;
		aside->latest = (struct rls_aside_thread){ (uint32_t)pid, tid };
	}
	if (tasks)
		closedir(tasks);
}

/* Who stands behind a real-time thread on its CPU may wait for ever. */
static bool makes_way(uint32_t tid)
{
	int policy = sched_getscheduler((pid_t)tid) & ~SCHED_RESET_ON_FORK;

	return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

static bool go_to(struct rls_aside *aside, int cpu)
{
	cpu_set_t there;

	CPU_ZERO(&there);
	CPU_SET((size_t)cpu, &there);
	aside->visited = cpu;
	return !sched_setaffinity(0, sizeof(there), &there);
}

void rls_aside_visit(struct rls_aside *aside)
{
	int cpu = aside->able && aside->latest.tid && makes_way(aside->latest.tid) ?
			  read_cpu(aside->latest.pid, aside->latest.tid) : -1;

	if (cpu < 0 || !CPU_ISSET_S((size_t)cpu, sizeof(cpu_set_t), &aside->allowed) ||
	    (aside->visiting && cpu == aside->visited))
		return;
	if (aside->visiting) {
		go_to(aside, cpu);
		return;
	}
	aside->visiting = !sched_getaffinity(0, sizeof(aside->left), &aside->left) && go_to(aside, cpu);
	if (!aside->visiting)
		return;
	aside->left_nice = getpriority(PRIO_PROCESS, 0);
	setpriority(PRIO_PROCESS, 0, NICE_VISITING);
}

/* Where we may stay we would: beside whom we have visited, or where a scheduler has moved them meanwhile. */
void rls_aside_leave(struct rls_aside *aside)
{
	cpu_set_t there, elsewhere;
	int cpu;

	if (!aside->visiting)
		return;
	cpu = read_cpu(aside->latest.pid, aside->latest.tid);
	CPU_ZERO(&there);
	CPU_SET_S((size_t)cpu, sizeof(there), &there);
	elsewhere = rls_aside_choose(&aside->left, &there);
	sched_setaffinity(0, sizeof(elsewhere), &elsewhere);
	sched_setaffinity(0, sizeof(aside->left), &aside->left);
	setpriority(PRIO_PROCESS, 0, aside->left_nice);
	aside->visiting = false;
}

void rls_aside_tick(struct rls_aside *aside, uint64_t now_ns)
{
	cpu_set_t taken, wanted, now;

	if (!aside->able || now_ns < aside->due_ns)
		return;
	aside->due_ns = now_ns + EVERY_NS;
	CPU_ZERO(&taken);
	for (int i = 0; i < RLS_ASIDE_THREADS; i++) {
		const struct rls_aside_thread *thread = &aside->threads[i];
		int cpu = thread->tid ? read_cpu(thread->pid, thread->tid) : -1;

		if (cpu >= 0 && cpu < CPU_SETSIZE)
			CPU_SET((size_t)cpu, &taken);
	}
	memset(aside->threads, 0, sizeof(aside->threads));
	aside->next = 0;
	if (!CPU_COUNT(&taken))
		return; /* nobody was heard of: they are where they were */
	wanted = rls_aside_choose(&aside->allowed, &taken);
	if (sched_getaffinity(0, sizeof(now), &now) || CPU_EQUAL(&now, &wanted))
		return;
	aside->moved |= !sched_setaffinity(0, sizeof(wanted), &wanted);
}
