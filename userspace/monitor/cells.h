/* Cells: the kernel side's totals, read periodically. What has grown since the last reading goes
 * to the job's ledger.
 *
 * A cell is removed from the kernel side when its process has ended. If there are more than
 * RLS_CELLS_CROWDED, cells that have not grown for a while are removed too, because a target can
 * invent names without end. (Time that is added to such a cell at that instant is lost.) One thread.
 */
#ifndef RLS_MONITOR_CELLS_H
#define RLS_MONITOR_CELLS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/monitor/jobs.h"
#include "userspace/monitor/names.h"

#define RLS_CELLS_CROWDED 49152 /* of 65536 that there is room for */

struct rls_cells {
	struct rls_index_map map; /* its key → struct rls_cells_entry of cells.c */
	struct rls_cells_entry *all;
	uint64_t unplaced; /* cells of processes that were never reported */
};

void rls_cells_clear(struct rls_cells *cells);

/* 0 or -errno. */
int rls_cells_sweep(struct rls_cells *cells, struct rls_kernel *kernel, const struct rls_jobs *jobs,
		    struct rls_names *names);

/* Those of processes that ended before ended_ns, with the kernel side's. */
void rls_cells_forget(struct rls_cells *cells, struct rls_kernel *kernel,
		      const struct rls_jobs *jobs, uint64_t ended_ns);

#endif
