/* Fold: a job's rows as the series that its label set allows, each series once. */
#ifndef RLS_FOLD_H
#define RLS_FOLD_H

#include "userspace/metrics/label_set.h"

struct rls_fold_cell {
	size_t phase, operation; /* numbers of the label set */
	enum rls_category category; /* RLS_CATEGORY_MAX: none, time of GPUs */
	enum rls_resource resource;
	uint64_t wall_ns;
	uint64_t on_cpu_ns;
};

struct rls_fold_transition {
	size_t operation;
	enum rls_category from, to;
	uint64_t count;
};

struct rls_fold {
	const struct rls_label_job *labels;
	const struct rls_snapshot_job *job;
	struct rls_fold_cell *cells; /* sorted, each key once */
	size_t cell_count;
	struct rls_fold_transition *transitions;
	size_t transition_count;
	uint64_t estimated_ns; /* of all rows, those that are not wholly traced */
};

/* Rows with numbers out of range are left out. Sums end at UINT64_MAX. The fold borrows both.
 * 0 or -ENOMEM (*out untouched). */
int rls_fold_make(struct rls_label_job *labels, const struct rls_snapshot_job *job,
		  struct rls_fold *out);
void rls_fold_clear(struct rls_fold *fold);

#endif
