/* Rates: what happened between two snapshots, by job and operation, most time first. */
#ifndef RLS_RATES_H
#define RLS_RATES_H

#include "userspace/monitor/snapshot.h"

/* What both a job and each of its operations have. */
struct rls_rates_sums {
	uint64_t total_ns; /* time of threads, waiting included */
	uint64_t category_ns[RLS_CATEGORY_MAX]; /* sum to total_ns */
	uint64_t on_gpu_ns; /* of total_ns, the GPU working meanwhile */
	uint64_t transitions;
};

struct rls_rates_operation {
	const char *name; /* borrowed from the later snapshot */
	struct rls_rates_sums sums; /* over all phases */
	bool estimated; /* some of it rests on samples */
};

struct rls_rates_job {
	const struct rls_snapshot_job *job; /* as it is now; borrowed */
	struct rls_rates_sums sums;
	uint64_t gpu_busy_ns; /* of all its GPUs */
	uint64_t smi_style_ns;
	uint64_t overhead_ns;
	struct rls_rates_operation *operations;
	size_t operation_count, operation_room;
};

struct rls_rates {
	const struct rls_snapshot *now; /* borrowed */
	uint64_t elapsed_ns;
	uint64_t lost; /* events, of all buffers */
	struct rls_rates_job *jobs; /* those alive and those that ended meanwhile */
	size_t job_count;
};

/* before: NULL for all since the jobs began. The rates borrow from `now`. 0 or -ENOMEM
 * (*out untouched). */
int rls_rates_make(const struct rls_snapshot *before, const struct rls_snapshot *now,
		   struct rls_rates *out);
void rls_rates_clear(struct rls_rates *rates);

#endif
