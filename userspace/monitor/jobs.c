#include "userspace/monitor/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"

static void member_free(struct rls_member *member)
{
	rls_launches_clear(&member->launches);
	free(member);
}

static void job_free(struct rls_job *job)
{
	rls_ledger_clear(&job->ledger);
	rls_gpu_use_clear(&job->gpu);
	free(job);
}

void rls_jobs_clear(struct rls_jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		job_free(jobs->jobs[i]);
	while (jobs->all_members) {
		struct rls_member *member = jobs->all_members;

		jobs->all_members = member->next;
		member_free(member);
	}
	free(jobs->jobs);
	rls_index_map_free(&jobs->members);
	*jobs = (struct rls_jobs){0};
}

struct rls_member *rls_jobs_find(const struct rls_jobs *jobs, uint32_t pid)
{
	return rls_index_map_get(&jobs->members, pid, 0);
}

static bool is_taken(const struct rls_jobs *jobs, const char *name)
{
	for (size_t i = 0; i < jobs->count; i++) {
		if (!strcmp(jobs->jobs[i]->name, name))
			return true;
	}
	return false;
}

static void name_job(const struct rls_jobs *jobs, struct rls_job *job)
{
	snprintf(job->name, sizeof(job->name), "%s", job->identity.name);
	for (unsigned int i = 2; is_taken(jobs, job->name); i++)
		snprintf(job->name, sizeof(job->name), "%s#%u", job->identity.name, i);
}

static struct rls_job *new_job(struct rls_jobs *jobs, const struct rls_job_identity *identity,
			       uint64_t time_ns)
{
	struct rls_job *job = NULL;

	if (!rls_grow(&jobs->jobs, &jobs->room, jobs->count))
		job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	job->identity = *identity;
	job->started_ns = job->gpu.since_ns = time_ns;
	name_job(jobs, job);
	job->id = ++jobs->seen;
	jobs->jobs[jobs->count++] = job;
	return job;
}

static int add_member(struct rls_jobs *jobs, uint32_t pid, struct rls_job *job)
{
	struct rls_member *member = calloc(1, sizeof(*member));

	if (!member || rls_index_map_put(&jobs->members, pid, 0, member)) {
		free(member);
		return -ENOMEM;
	}
	*member = (struct rls_member){.next = jobs->all_members, .pid = pid, .job = job};
	jobs->all_members = member;
	job->processes_started++;
	job->processes_alive++;
	if (job->ended_ns) { /* its last process had ended when this one was reported */
		job->ended_ns = 0;
		jobs->ended--;
	}
	return 0;
}

int rls_jobs_begin(struct rls_jobs *jobs, uint32_t pid, uint32_t ppid, uint64_t time_ns,
		   void (*identify)(pid_t pid, struct rls_job_identity *out), struct rls_job **out)
{
	struct rls_member *member = rls_jobs_find(jobs, pid), *parent;
	struct rls_job_identity identity;
	struct rls_job *job;
	int r;

	if (member) {
		*out = member->job;
		return 0;
	}
	parent = rls_jobs_find(jobs, ppid);
	job = parent ? parent->job : NULL;
	if (!job) {
		identify((pid_t)pid, &identity);
		job = new_job(jobs, &identity, time_ns);
	}
	r = job ? add_member(jobs, pid, job) : -ENOMEM;
	if (!r)
		*out = job;
	return r;
}

void rls_jobs_end(struct rls_jobs *jobs, uint32_t pid, uint64_t time_ns)
{
	struct rls_member *member = rls_jobs_find(jobs, pid);

	if (!member || member->ended_ns)
		return;
	member->ended_ns = time_ns;
	if (--member->job->processes_alive)
		return;
	member->job->ended_ns = time_ns;
	jobs->ended++;
}

void rls_jobs_forget(struct rls_jobs *jobs, uint64_t ended_ns)
{
	struct rls_member **link = &jobs->all_members;

	while (*link) {
		struct rls_member *member = *link;

		if (!member->ended_ns || member->ended_ns >= ended_ns) {
			link = &member->next;
			continue;
		}
		*link = member->next;
		rls_index_map_remove(&jobs->members, member->pid, 0);
		member_free(member);
	}
}

static bool has_members(const struct rls_jobs *jobs, const struct rls_job *job)
{
	for (const struct rls_member *member = jobs->all_members; member; member = member->next) {
		if (member->job == job)
			return true;
	}
	return false;
}

/* Jobs are in the order in which they began; of those that ended, the oldest beginning goes first
 * where there are too many. */
void rls_jobs_expire(struct rls_jobs *jobs, uint64_t now_ns)
{
	size_t kept = 0, over = 0;

	for (size_t i = 0; i < jobs->count; i++)
		over += jobs->jobs[i]->ended_ns != 0;
	over = over > RLS_JOBS_ENDED_MAX ? over - RLS_JOBS_ENDED_MAX : 0;
	for (size_t i = 0; i < jobs->count; i++) {
		struct rls_job *job = jobs->jobs[i];
		bool old = job->ended_ns && (over || now_ns > job->ended_ns + RLS_JOBS_KEPT_NS);

		if (!old || has_members(jobs, job)) {
			jobs->jobs[kept++] = job;
			continue;
		}
		over -= over != 0;
		job_free(job);
	}
	jobs->count = kept;
}
