#include "userspace/record/targets/new_processes.h"

#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/clock.h"

#define SWEEP_EVERY_NS 250000000ULL
#define SWEEP_SHARE 50 /* it takes one part in so many of the time */

struct look {
	const struct rls_new_processes *newcomers;
	void (*found)(void *context, pid_t pid);
	void *context;
};

void rls_new_processes_clear(struct rls_new_processes *newcomers)
{
	free(newcomers->waiting.items);
	newcomers->waiting.items = NULL;
	newcomers->waiting.count = newcomers->waiting.capacity = 0;
}

static bool is_waiting(const struct rls_new_processes *newcomers, pid_t pid)
{
	for (size_t i = 0; i < newcomers->waiting.count; i++) {
		if (newcomers->waiting.items[i] == pid)
			return true;
	}
	return false;
}

void rls_new_processes_mapped(struct rls_new_processes *newcomers, pid_t pid)
{
	if (!pid)
		newcomers->lost = true;
	else if (newcomers->selection->count && !rls_targets_find(newcomers->followed, pid) &&
		 !is_waiting(newcomers, pid))
		rls_list_push(&newcomers->waiting, pid); /* no memory: a sweep may find it */
}

static int new_processes_accept(const struct rls_candidate *candidate, void *context)
{
	const struct look *look = context;
	const struct rls_new_processes *newcomers = look->newcomers;

	if (rls_targets_find(newcomers->followed, candidate->pid))
		return 0;
	/* The kernel side has reported it, or is about to. */
	if (newcomers->follow_children && rls_targets_find(newcomers->followed, candidate->ppid))
		return 0;
	look->found(look->context, candidate->pid);
	return 0;
}

/* Who maps something while another is being followed is to be looked at again: it joins a new list. */
static void look_at_waiting(struct rls_new_processes *newcomers, struct look *look)
{
	_cleanup_free_ pid_t *pids = newcomers->waiting.items;
	size_t count = newcomers->waiting.count;

	newcomers->waiting.items = NULL;
	newcomers->waiting.count = newcomers->waiting.capacity = 0;
	for (size_t i = 0; i < count; i++) {
		struct rls_candidate candidate;

		if (rls_candidate_read(newcomers->selection, newcomers->roles, pids[i], &candidate))
			continue;
		if (rls_selection_matches(newcomers->selection, &candidate))
			new_processes_accept(&candidate, look);
		rls_candidate_clear(&candidate);
	}
}

static void new_processes_sweep(struct rls_new_processes *newcomers, struct look *look)
{
	struct rls_selection selection = *newcomers->selection;
	uint64_t begin_ns = rls_monotonic_ns(), end_ns, pause_ns;

	if (!newcomers->lost)
		selection.kinds &= ~RLS_SELECT_ALL;
	newcomers->lost = false;
	if (selection.kinds)
		rls_scan(&selection, newcomers->roles, new_processes_accept, look);
	end_ns = rls_monotonic_ns();
	pause_ns = SWEEP_SHARE * (end_ns - begin_ns);
	newcomers->sweep_ns = end_ns + (pause_ns > SWEEP_EVERY_NS ? pause_ns : SWEEP_EVERY_NS);
}

void rls_new_processes_look(struct rls_new_processes *newcomers, uint64_t now_ns,
			    void (*found)(void *context, pid_t pid), void *context)
{
	struct look look = {newcomers, found, context};

	if (!newcomers->selection->count)
		return;
	look_at_waiting(newcomers, &look);
	if (now_ns >= newcomers->sweep_ns)
		new_processes_sweep(newcomers, &look);
}
