/* What /proc says of a process, for people: names, command line, pids, container.
 * All of it is the target's own text; a process may vanish at any moment (-ESRCH). */
#ifndef RLS_PROCESS_INFO_H
#define RLS_PROCESS_INFO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rls_process_info {
	pid_t ppid;
	pid_t ns_pid;           /* in its innermost pid namespace; equals pid when in ours */
	char *name;             /* comm */
	char *cmdline;          /* JSON array text that fits a trace's string, cut with "…" */
	char *container;        /* 64 hex digits or a short id of its cgroup path, "" on the host */
};

/* 0, -ESRCH, -ENOMEM. *out is to be cleared by the caller. */
int rls_process_info_read(pid_t pid, struct rls_process_info *out);
void rls_process_info_clear(struct rls_process_info *info);

/* The container id in the text of /proc/PID/cgroup, as Docker, containerd, CRI-O and Podman
 * write it: the last path element, less ".scope", that is 12 to 64 hex digits, or ends in
 * 64 of them after '-' or ':'. Copies at most out_bytes - 1; "" when there is none. Pure. */
void rls_container_of_cgroup(const char *cgroup_text, char *out, size_t out_bytes);

/* Calls visit for each living process below pid, parents before children. */
int rls_each_descendant(pid_t pid, int (*visit)(pid_t pid, void *context), void *context);

/* 0 when the process exists, -ESRCH else: for zombies and for threads' numbers too. */
int rls_process_exists(pid_t pid);

#endif
