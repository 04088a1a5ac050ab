/* What /proc says of a process, for people: names, command line, pids, container.
 * All of it is the target's own text; a process may vanish at any moment (-ESRCH). */
#ifndef RLS_PROCESS_INFO_H
#define RLS_PROCESS_INFO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rls_process_info {
	pid_t ppid;
	pid_t ns_pid; /* in its innermost pid namespace; equals pid when in ours */
	char *name; /* comm */
	char *cmdline; /* JSON array text that fits a trace's string, cut with "…" */
	char *container; /* its id, or "" */
};

/* 0, -ESRCH, -ENOMEM. *out is to be cleared by the caller. */
int rls_process_info_read(pid_t pid, struct rls_process_info *out);
void rls_process_info_clear(struct rls_process_info *info);

/* What cmdline will be of a process that executes these words, NULL at their end. The text is the caller's. 0 or
 * -ENOMEM. */
int rls_process_words(char *const *words, char **out);

#define RLS_CONTAINER_BYTES 80
/* The id of the container it runs in, "" on the host: when it has none, or the same as PID 1,
 * which is on the host whatever the host runs in. 0 or -ESRCH. */
int rls_process_container(pid_t pid, char out[RLS_CONTAINER_BYTES]);

/* The whole of /proc/PID/name, NUL-terminated, up to 128 KiB; *length may be NULL. Where the first thread has left, what
 * depends on its memory is read through another (userspace/process/living_thread.h). The text is
 * the caller's. 0, -ESRCH, -ENOMEM. */
int rls_process_read(pid_t pid, const char *name, char **out, size_t *length);

/* When it began, in clock ticks since the machine has booted; for how long it has run. 0 or -ESRCH. */
int rls_process_start(pid_t pid, uint64_t *ticks);
int rls_process_age(pid_t pid, uint64_t *age_ns);

/* Calls visit for each number in /proc, zombies and kernel threads too, until it returns
 * other than 0, which is then the result. */
int rls_each_process(int (*visit)(pid_t pid, void *context), void *context);

/* Calls visit for each living process below pid, parents before children. */
int rls_each_descendant(pid_t pid, int (*visit)(pid_t pid, void *context), void *context);

/* The process that traces it (a debugger), 0 for none. 0 or -ESRCH. */
int rls_process_tracer(pid_t pid, pid_t *tracer);

/* 0 when the process exists; -ESRCH when not, which is said of zombies and of threads' numbers too; another -errno when
 * that cannot be found out. */
int rls_process_exists(pid_t pid);

#endif
