/* Bridges: the CUPTI bridges (cupti_bridge/) that followed processes map, each armed in its
 * process while we record.
 *
 *     mappings ─▶ librlscope_cupti.so ─▶ its note rlscope_cupti:batch ─▶ a probe on this process
 */
#ifndef RLS_CUPTI_CUPTI_BRIDGES_H
#define RLS_CUPTI_CUPTI_BRIDGES_H

#include <stdbool.h>
#include <sys/types.h>

#include "analysis/base/grow.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/process/mappings.h"
#include "userspace/record/probes/file_table.h"

#define RLS_BRIDGE_LIBRARY "librlscope_cupti.so"

/* Of one process: the bridges that it maps, as far as they have been looked at. Zeroed: none. */
struct rls_cupti_bridges {
	RLS_LIST(const struct rls_file *) seen;
};

/* Arms what is new among the process's mappings. What cannot be is a warning. */
void rls_cupti_bridges_scan(struct rls_kernel *kernel, struct rls_files *files,
			    struct rls_cupti_bridges *bridges, pid_t pid,
			    const struct rls_mappings *mappings);
/* The process has ended, or become another program. */
void rls_cupti_bridges_disarm(struct rls_kernel *kernel, const struct rls_cupti_bridges *bridges,
			      pid_t pid);
void rls_cupti_bridges_clear(struct rls_cupti_bridges *bridges);

/* Whether the mappings hold a bridge; the CUDA driver. */
bool rls_cupti_bridges_mapped(const struct rls_mappings *mappings);
bool rls_cupti_bridges_cuda_mapped(const struct rls_mappings *mappings);

#endif
