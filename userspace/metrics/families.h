/* Families: every metric there is, with its type and help. */
#ifndef RLS_FAMILIES_H
#define RLS_FAMILIES_H

#include <stdio.h>

#include "userspace/metrics/exposition.h"
#include "userspace/metrics/fold.h"

struct rls_families_input {
	const struct rls_snapshot *snapshot;
	const struct rls_exposition_outlets *outlets;
	const struct rls_fold *folds; /* one for each job that is on the page */
	size_t fold_count;
};

/* Those without a series are left out. */
void rls_families_write(const struct rls_families_input *input, FILE *out);

#endif
