/* Jobs: which processes belong to which job, and how long a job is reported.
 *
 *     a process begins ─▶ its parent's job, or a new one      (a tree of processes is a job)
 *     a process ends   ─▶ the last one: the job has ended, and is kept for a while
 *
 * A suffix distinguishes equal names, and a job keeps it for as long as it is reported:
 * "train", "train#2". One thread.
 */
#ifndef RLS_MONITOR_JOBS_H
#define RLS_MONITOR_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "userspace/monitor/gpu_use.h"
#include "userspace/monitor/identity.h"
#include "userspace/monitor/launches.h"
#include "userspace/monitor/ledger.h"

#define RLS_JOBS_KEPT_NS 300000000000ULL /* after its end: several scrapes at any usual interval */
#define RLS_JOBS_ENDED_MAX 500 /* kept so: the oldest go first */

struct rls_job {
	uint64_t id;
	char name[RLS_JOB_NAME_BYTES + 16];
	struct rls_job_identity identity;
	char python[32];
	uint64_t started_ns, ended_ns; /* 0: it lives */
	uint64_t processes_started, processes_alive;
	struct rls_ledger ledger;
	bool warned_of_others; /* that its ledger has names beyond its room */
	struct rls_gpu_use gpu;
};

struct rls_member {
	struct rls_member *next;
	uint32_t pid;
	uint64_t ended_ns; /* 0: it lives */
	struct rls_job *job;
	struct rls_launches launches;
};

struct rls_jobs {
	struct rls_job **jobs;
	size_t count, room;
	struct rls_index_map members; /* pid → struct rls_member */
	struct rls_member *all_members;
	uint64_t seen, ended;
};

void rls_jobs_clear(struct rls_jobs *jobs);

/* NULL when it is not known. */
struct rls_member *rls_jobs_find(const struct rls_jobs *jobs, uint32_t pid);

/* A process has begun, or is reported anew. identify gives the name of a new job. 0 or -ENOMEM. */
int rls_jobs_begin(struct rls_jobs *jobs, uint32_t pid, uint32_t ppid, uint64_t time_ns,
		   void (*identify)(pid_t pid, struct rls_job_identity *out), struct rls_job **out);

/* It has ended; it is known until it is forgotten, once its last figures are read. */
void rls_jobs_end(struct rls_jobs *jobs, uint32_t pid, uint64_t time_ns);

/* Forgets processes that ended before ended_ns. */
void rls_jobs_forget(struct rls_jobs *jobs, uint64_t ended_ns);

/* Drops jobs that ended long ago, or too many. */
void rls_jobs_expire(struct rls_jobs *jobs, uint64_t now_ns);

#endif
