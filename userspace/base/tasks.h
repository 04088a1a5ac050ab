/* The threads of a process, from /proc/PID/task, those that have not ended yet:
 *
 *     _cleanup_tasks_ DIR *tasks = rls_tasks_open(pid);
 *
 *     while ((tid = rls_tasks_next(tasks)))
 */
#ifndef RLS_TASKS_H
#define RLS_TASKS_H

#include <dirent.h>
#include <sys/types.h>

/* NULL: there is no such process, or none that can be seen; errno says why. */
DIR *rls_tasks_open(pid_t pid);
/* 0: there are no more. tasks may be NULL: there are none. */
pid_t rls_tasks_next(DIR *tasks);
void rls_tasks_close(DIR **tasks);

#define _cleanup_tasks_ __attribute__((cleanup(rls_tasks_close)))

#endif
