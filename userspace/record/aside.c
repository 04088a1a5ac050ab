#include "userspace/record/aside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cleanup.h"
#include "userspace/record/process_info.h"

#define EVERY_NS 50000000ULL

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

/* -1: the thread is gone. */
static int read_cpu(uint32_t pid, uint32_t tid)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[64], text[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	file = fopen(path, "re");
	if (!file || !fgets(text, sizeof(text), file))
		return -1;
	at = rls_stat_word(text, 39);
	return at ? (int)strtol(at, NULL, 10) : -1;
}

/* Who stands behind a real-time thread on its CPU may wait for ever. */
static bool makes_way(uint32_t tid)
{
	int policy = sched_getscheduler((pid_t)tid) & ~SCHED_RESET_ON_FORK;

	return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

void rls_aside_visit(struct rls_aside *aside)
{
	int cpu = aside->able && aside->latest.tid && makes_way(aside->latest.tid) ?
			  read_cpu(aside->latest.pid, aside->latest.tid) : -1;
	cpu_set_t there;

	if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, &aside->allowed) ||
	    sched_getaffinity(0, sizeof(aside->left), &aside->left))
		return;
	CPU_ZERO(&there);
	CPU_SET((size_t)cpu, &there);
	aside->visiting = !sched_setaffinity(0, sizeof(there), &there);
}

void rls_aside_leave(struct rls_aside *aside)
{
	if (aside->visiting)
		sched_setaffinity(0, sizeof(aside->left), &aside->left);
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
