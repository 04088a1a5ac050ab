/* Living threads: where to read a process whose first thread has left (pthread_exit in main).
 *
 * /proc/PID is its first thread's. Once that has ended, while others go on, it has no memory, no mappings, no root and
 * no command line there. The kernel has all of them under the number of any thread that lives:
 *
 *     /proc/PID/maps  empty     /proc/TID/maps  what the process has mapped
 *
 * Whoever opens a file of a process that depends on its memory or its namespaces asks here for its path.
 */
#ifndef RLS_LIVING_THREAD_H
#define RLS_LIVING_THREAD_H

#include <sys/types.h>

/* The process's first thread, pid, or the first that lives where that has left. pid too where none does, or there is no
 * such process: reading will say so. */
pid_t rls_living_thread(pid_t pid);

#define RLS_PROCESS_PATH_BYTES 64
/* "/proc/NUMBER/name" of that thread; name: up to 40 bytes. */
void rls_process_path(char path[RLS_PROCESS_PATH_BYTES], pid_t pid, const char *name);

#endif
