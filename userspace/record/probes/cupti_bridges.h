/* Bridges: the CUPTI bridges (cupti_bridge/) that followed processes map, each armed in its
 * process while we record.
 *
 *     mappings ─▶ librlscope_cupti.so ─▶ its note rlscope_cupti:batch ─▶ a probe on this process
 */
#ifndef RLS_CUPTI_CUPTI_BRIDGES_H
#define RLS_CUPTI_CUPTI_BRIDGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/process/mappings.h"

#define RLS_BRIDGE_LIBRARY "librlscope_cupti.so"

struct rls_bridges {
	struct rls_kernel *kernel;
	struct rls_bridge {
		pid_t pid;
		dev_t device;
		ino_t inode;
	} *items;               /* those that have been looked at */
	size_t count, room;
};

void rls_bridges_clear(struct rls_bridges *bridges);

/* Arms what is new among the process's mappings. What cannot be is a warning. */
void rls_bridges_scan(struct rls_bridges *bridges, pid_t pid, const struct rls_mappings *mappings);
/* The process has ended, or become another program. */
void rls_bridges_forget(struct rls_bridges *bridges, pid_t pid);

/* Whether the mappings hold a bridge; the CUDA driver. */
bool rls_bridges_mapped(const struct rls_mappings *mappings);
bool rls_bridges_cuda_mapped(const struct rls_mappings *mappings);

#endif
