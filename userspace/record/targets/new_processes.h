/* New processes: processes that begin to match the selection while we record.
 *
 *     exec, dlopen ──mmap watch──▶ waiting ─┐
 *     setproctitle, a change of cgroup,     ├─check─▶ selected and not followed: found
 *     a fork of an unfollowed process ─sweep┘
 *
 * A process that executes a program or loads a library maps something executable. The mmap watch
 * reports every such process of the host, and it is checked within a tick. Changes without a
 * mapping are found by a sweep through /proc: every quarter of a second or, where that takes long,
 * so rarely that it costs 2 % of a CPU. --all needs no sweeps, because a job without a library is
 * none. The kernel side reports the children of followed processes.
 */
#ifndef RLS_NEW_PROCESSES_H
#define RLS_NEW_PROCESSES_H

#include "analysis/base/grow.h"
#include "userspace/record/targets/scan.h"
#include "userspace/record/targets/target_table.h"

struct rls_new_processes {
	const struct rls_selection *selection;
	const struct rls_roles *roles;
	const struct rls_targets *followed;
	bool follow_children;
	RLS_LIST(pid_t) waiting; /* to be looked at with the next check, each once */
	uint64_t sweep_ns; /* when the next one is due */
	bool lost; /* the watch has missed some: --all is swept too */
};

void rls_new_processes_clear(struct rls_new_processes *new_processes);

/* pid has mapped something executable; 0: anyone may have. */
void rls_new_processes_mapped(struct rls_new_processes *new_processes, pid_t pid);

/* Calls found for each new process, which is to be followed then. */
void rls_new_processes_find(struct rls_new_processes *new_processes, uint64_t now_ns,
			    void (*found)(void *context, pid_t pid), void *context);

#endif
