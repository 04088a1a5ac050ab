/* Snapshots made by hand: two jobs, one of them with a GPU and names to be careful of. */
#ifndef RLS_SNAPSHOT_MAKER_H
#define RLS_SNAPSHOT_MAKER_H

#include "userspace/monitor/snapshot.h"

/* Its figures grow with `step`; static storage, until the next call. */
const struct rls_snapshot *snapshot_make(uint64_t step);

#endif
