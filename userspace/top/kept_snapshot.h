/* Kept snapshot: a copy that stays valid when the monitor takes the next one. */
#ifndef RLS_KEPT_SNAPSHOT_H
#define RLS_KEPT_SNAPSHOT_H

#include "userspace/monitor/snapshot.h"

/* Zeroed is empty. */
struct rls_kept_snapshot {
	struct rls_snapshot snapshot; /* all it points to is in `arena` */
	char *arena;
};

/* Replaces what was kept. 0 or -ENOMEM (what was kept stays). */
int rls_kept_snapshot_take(struct rls_kept_snapshot *kept, const struct rls_snapshot *from);
void rls_kept_snapshot_clear(struct rls_kept_snapshot *kept);

#endif
