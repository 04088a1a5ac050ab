/* GPU threads: maps the thread number that a bridge gives to the thread that we know.
 *
 * A target numbers its threads in its own pid namespace, and we in ours. What the kernel side
 * announces is kept as long as the process lives, since a thread may have ended when its launches
 * arrive. Threads that were not announced are looked up in /proc.
 */
#ifndef RLS_GPU_THREAD_H
#define RLS_GPU_THREAD_H

#include <stdint.h>

#include "analysis/base/index_map.h"

struct rls_gpu_threads {
	uint32_t pid;
	uint32_t ns_pid; /* the process's number in its own namespace */
	struct rls_index_map map; /* its number → ours */
	uint64_t rests_until_ns; /* /proc is not asked before */
};

void rls_gpu_threads_clear(struct rls_gpu_threads *threads);

/* Kept as far as there is memory; beyond 65,536 threads it begins anew. */
void rls_gpu_threads_add(struct rls_gpu_threads *threads, uint32_t ns_tid, uint32_t tid);

/* Our number, or 0 when the process has (or had) no such thread. */
uint32_t rls_gpu_threads_find(struct rls_gpu_threads *threads, uint32_t ns_tid);

#endif
