/* Stack switching: which files are mapped by a process that switches stacks (greenlet and the
 * like).
 *
 * The kernel keeps a thread's pending return probes in one list, last in, first out. Coroutines
 * that share a thread return in any order. One return probe under a switch sends the thread to
 * another function's caller, and the process dies. So files that such a process maps get no return
 * probes at all. Probes belong to files, so this holds for every process of the host, recorded or
 * not.
 */
#ifndef RLS_STACK_SWITCHING_H
#define RLS_STACK_SWITCHING_H

#include <stdbool.h>
#include <sys/types.h>

#include "userspace/process/mappings.h"
#include "userspace/record/probes/file_table.h"

/* Whether a library of this name switches stacks. */
bool rls_stack_switching_name(const char *path);
bool rls_stack_switching_among(const struct rls_mappings *mappings);

/* Notes of all files that the process maps that it switches stacks, when a library that switches stacks is among them. *more:
 * whether that is new of any. 0 or -ENOMEM. */
int rls_stack_switching_take(struct rls_files *files, pid_t pid,
			     const struct rls_mappings *mappings, bool *more);
/* The same of every process there is. */
int rls_stack_switching_take_all(struct rls_files *files, bool *more);

#endif
