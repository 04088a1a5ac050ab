/* Scan: compares the processes of the host with a selection.
 *
 *     resolve (before anything is recorded) ─▶ scan now ─▶ new_processes.h from then on
 *
 * Only what the selectors need is read of each process: its stat for all of them, 20 us; its
 * mappings, the most expensive part, for --all alone.
 */
#ifndef RLS_TARGETS_SCAN_H
#define RLS_TARGETS_SCAN_H

#include "userspace/discover/roles/roles.h"
#include "userspace/record/targets/selection.h"

/* Makes the selectors exact: a cgroup's path is taken below the mount (as in /sys/fs/cgroup/...)
 * or as /proc shows it and becomes the latter; the beginning of a container's id becomes
 * the whole; their matches are counted. 0; -ENOENT when there is no such cgroup or container,
 * -EEXIST when the beginning fits several containers, -errno; it has been said why. */
int rls_selection_resolve(struct rls_selection *selection);

/* What the selection needs to know of a process. 0; -ESRCH when there is none, and for kernel
 * threads, those that are just ending, and ourselves; -errno. *out is to be cleared. */
int rls_candidate_read(const struct rls_selection *selection, const struct rls_roles *roles,
		       pid_t pid, struct rls_candidate *out);
void rls_candidate_clear(struct rls_candidate *candidate);

/* Calls visit for each process that is selected now, until it returns other than 0. */
int rls_scan(const struct rls_selection *selection, const struct rls_roles *roles,
	     int (*visit)(const struct rls_candidate *candidate, void *context), void *context);

#endif
