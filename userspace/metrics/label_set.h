/* Label set: which names have series of their own.
 *
 * Series are bounded, and a counter must not move from one series to another. A name that has a
 * series keeps it; a name that finds none left counts as "other" for good. Each job has a limit
 * of operations, phases and pairs of both, and there is a limit of jobs. A job's place is free
 * again when the job has left the snapshot.
 */
#ifndef RLS_LABEL_SET_H
#define RLS_LABEL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/text_hash.h"
#include "userspace/metrics/label.h"
#include "userspace/monitor/snapshot.h"

#define RLS_LABEL_OPERATIONS_MAX 200
#define RLS_LABEL_PHASES_MAX 20
#define RLS_LABEL_PAIRS_MAX 1000
#define RLS_LABEL_JOBS_MAX 500
#define RLS_LABEL_OTHER "other"

struct rls_label_name {
	uint64_t hash;
	char *text; /* clean */
};

/* Number 0 is "other". A name that is itself "other" is number 0 too. */
struct rls_label_names {
	struct rls_label_name *names; /* number - 1 */
	size_t count, room;
	struct rls_text_seed seed; /* drawn at the first name */
};

struct rls_label_job {
	uint64_t id;
	char *label; /* clean, and no other job's */
	bool present;
	struct rls_label_names operations, phases;
	size_t pair_count;
	bool pairs[RLS_LABEL_PHASES_MAX + 1][RLS_LABEL_OPERATIONS_MAX + 1];
};

/* Zeroed is empty. */
struct rls_label_set {
	struct rls_label_job **jobs;
	size_t count, room;
};

void rls_label_set_clear(struct rls_label_set *set);

/* Forgets the jobs that are not in the snapshot, and takes in those that are new while there
 * is room. 0 or -ENOMEM. */
int rls_label_set_update(struct rls_label_set *set, const struct rls_snapshot *snapshot);

/* NULL for a job that found no room. */
struct rls_label_job *rls_label_set_job(const struct rls_label_set *set, uint64_t id);

/* Number of the operation, given now if it is new and there is room. 0 and *out, or -ENOMEM. */
int rls_label_job_operation(struct rls_label_job *job, const char *operation, size_t *out);
/* Both numbers: 0 and 0 when the pair is new and there is no room for it. */
int rls_label_job_pair(struct rls_label_job *job, const char *phase, const char *operation,
		       size_t *out_phase, size_t *out_operation);

/* The text of a number. */
const char *rls_label_name(const struct rls_label_names *names, size_t number);

#endif
