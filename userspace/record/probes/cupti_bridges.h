/* CUPTI bridges (cupti_bridge/) that recorded processes map. Each is armed in its process while we
 * record.
 *
 *     mappings ─▶ librlscope_cupti.so ─▶ its note rlscope_cupti:batch ─▶ a probe on this process
 */
#ifndef RLS_CUPTI_CUPTI_BRIDGES_H
#define RLS_CUPTI_CUPTI_BRIDGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "analysis/base/grow.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/process/mappings.h"
#include "userspace/record/probes/file_table.h"

#define RLS_BRIDGE_LIBRARY "librlscope_cupti.so"

struct rls_bridge {
	const struct rls_file *file;
	char *path; /* NULL: it cannot be armed */
	uint64_t site, semaphore;
};

/* Of one process: the bridges that it maps, as far as they have been looked at. Zeroed: none. */
struct rls_cupti_bridges {
	RLS_LIST(struct rls_bridge) seen;
};

/* Arms what is new among the process's mappings. What cannot be is a warning. */
void rls_cupti_bridges_scan(struct rls_kernel *kernel, struct rls_files *files,
			    struct rls_cupti_bridges *bridges, pid_t pid,
			    const struct rls_mappings *mappings);
/* Whether any of them can be armed. */
bool rls_cupti_bridges_can_arm(const struct rls_cupti_bridges *bridges);
/* After it was disarmed. One that is found later is armed at once. */
void rls_cupti_bridges_arm(struct rls_kernel *kernel, const struct rls_cupti_bridges *bridges,
			   pid_t pid);
/* The process has ended, or become another program; or to compare. */
void rls_cupti_bridges_disarm(struct rls_kernel *kernel, const struct rls_cupti_bridges *bridges,
			      pid_t pid);
void rls_cupti_bridges_clear(struct rls_cupti_bridges *bridges);

/* Whether the mappings hold a bridge; the CUDA driver. */
bool rls_cupti_bridges_mapped(const struct rls_mappings *mappings);
bool rls_cupti_bridges_cuda_mapped(const struct rls_mappings *mappings);

#endif
