#include "userspace/record/targets/new_processes.h"

#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/clock.h"

#define SWEEP_EVERY_NS 250000000ULL
#define SWEEP_SHARE 50 /* it takes one part in so many of the time */

struct search {
	const struct rls_new_processes *new_processes;
	void (*found)(void *context, pid_t pid);
	void *context;
};

void rls_new_processes_clear(struct rls_new_processes *new_processes)
{
	free(new_processes->waiting.items);
	new_processes->waiting.items = NULL;
	new_processes->waiting.count = new_processes->waiting.capacity = 0;
}

static bool is_waiting(const struct rls_new_processes *new_processes, pid_t pid)
{
	for (size_t i = 0; i < new_processes->waiting.count; i++) {
		if (new_processes->waiting.items[i] == pid)
			return true;
	}
	return false;
}

void rls_new_processes_mapped(struct rls_new_processes *new_processes, pid_t pid)
{
	if (!pid)
		new_processes->lost = true;
	else if (new_processes->selection->count &&
		 !rls_targets_find(new_processes->followed, pid) && !is_waiting(new_processes, pid))
		rls_list_push(&new_processes->waiting, pid); /* no memory: a sweep may find it */
}

static int new_processes_accept(const struct rls_candidate *candidate, void *context)
{
	const struct search *search = context;
	const struct rls_new_processes *new_processes = search->new_processes;

	if (rls_targets_find(new_processes->followed, candidate->pid))
		return 0;
	/* The kernel side has reported it, or is about to. */
	if (new_processes->follow_children &&
	    rls_targets_find(new_processes->followed, candidate->ppid))
		return 0;
	search->found(search->context, candidate->pid);
	return 0;
}

/* Who maps something while another is being followed is to be looked at again: it joins a new list. */
static void check_waiting(struct rls_new_processes *new_processes, struct search *search)
{
	_cleanup_free_ pid_t *pids = new_processes->waiting.items;
	size_t count = new_processes->waiting.count;

	new_processes->waiting.items = NULL;
	new_processes->waiting.count = new_processes->waiting.capacity = 0;
	for (size_t i = 0; i < count; i++) {
		struct rls_candidate candidate;

		if (rls_candidate_read(new_processes->selection, new_processes->roles, pids[i],
				       &candidate))
			continue;
		if (rls_selection_matches(new_processes->selection, &candidate))
			new_processes_accept(&candidate, search);
		rls_candidate_clear(&candidate);
	}
}

static void new_processes_sweep(struct rls_new_processes *new_processes, struct search *search)
{
	struct rls_selection selection = *new_processes->selection;
	uint64_t begin_ns = rls_monotonic_ns(), end_ns, pause_ns;

	if (!new_processes->lost)
		selection.kinds &= ~RLS_SELECT_ALL;
	new_processes->lost = false;
	if (selection.kinds)
		rls_scan(&selection, new_processes->roles, new_processes_accept, search);
	end_ns = rls_monotonic_ns();
	pause_ns = SWEEP_SHARE * (end_ns - begin_ns);
	new_processes->sweep_ns = end_ns + (pause_ns > SWEEP_EVERY_NS ? pause_ns : SWEEP_EVERY_NS);
}

void rls_new_processes_find(struct rls_new_processes *new_processes, uint64_t now_ns,
			    void (*found)(void *context, pid_t pid), void *context)
{
	struct search search = {new_processes, found, context};

	if (!new_processes->selection->count)
		return;
	check_waiting(new_processes, &search);
	if (now_ns >= new_processes->sweep_ns)
		new_processes_sweep(new_processes, &search);
}
