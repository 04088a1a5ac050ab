/* Families: every metric there is, with its type and help. */
#ifndef RLS_FAMILIES_H
#define RLS_FAMILIES_H

#include <stdio.h>

#include "userspace/metrics/fold.h"

/* What the page says beside the snapshot. */
struct rls_exposition_outlets {
	uint64_t realtime_ns; /* CLOCK_REALTIME when the snapshot was taken */
	uint64_t pages_served; /* by HTTP, since the start */
	uint64_t requests_refused; /* every other answer, connections cut included */
	uint64_t textfile_failures;
};

struct rls_families_input {
	const struct rls_snapshot *snapshot;
	const struct rls_exposition_outlets *outlets;
	const struct rls_fold *folds; /* one for each job that is on the page */
	size_t fold_count;
};

/* Those without a series are left out. */
void rls_families_write(const struct rls_families_input *input, FILE *out);

#endif
