#include "userspace/metrics/label_set.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"

static void free_names(struct rls_label_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i].text);
	free(names->names);
}

static void free_job(struct rls_label_job *job)
{
	if (!job)
		return;
	free_names(&job->operations);
	free_names(&job->phases);
	free(job->label);
	free(job);
}

void rls_label_set_clear(struct rls_label_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		free_job(set->jobs[i]);
	free(set->jobs);
	*set = (struct rls_label_set){0};
}

static int number_of(struct rls_label_names *names, size_t most, const char *text, size_t *out)
{
	char clean[RLS_LABEL_BYTES];
	uint64_t hash;
	char *copy;

	rls_label_clean(text, clean);
	if (!names->count)
		names->seed = rls_text_seed_draw(names);
	hash = rls_text_hash(names->seed, clean, strlen(clean));
	for (size_t i = 0; i < names->count; i++) {
		if (names->names[i].hash != hash || strcmp(names->names[i].text, clean))
			continue;
		*out = i + 1;
		return 0;
	}
	if (names->count == most || !strcmp(clean, RLS_LABEL_OTHER)) {
		*out = 0;
		return 0;
	}
	copy = strdup(clean);
	if (!copy || rls_grow(&names->names, &names->room, names->count)) {
		free(copy);
		return -ENOMEM;
	}
	names->names[names->count++] = (struct rls_label_name){.hash = hash, .text = copy};
	*out = names->count;
	return 0;
}

int rls_label_job_operation(struct rls_label_job *job, const char *operation, size_t *out)
{
	return number_of(&job->operations, RLS_LABEL_OPERATIONS_MAX, operation, out);
}

int rls_label_job_pair(struct rls_label_job *job, const char *phase, const char *operation,
		       size_t *out_phase, size_t *out_operation)
{
	size_t p, o;
	int r = number_of(&job->phases, RLS_LABEL_PHASES_MAX, phase, &p);

	if (!r)
		r = rls_label_job_operation(job, operation, &o);
	if (r)
		return r;
	if (!job->pairs[p][o]) {
		/* The pair of both "other" has its place beyond the bound. */
		if (job->pair_count == RLS_LABEL_PAIRS_MAX)
			p = o = 0;
		else
			job->pair_count++;
		job->pairs[p][o] = true;
	}
	*out_phase = p;
	*out_operation = o;
	return 0;
}

const char *rls_label_name(const struct rls_label_names *names, size_t number)
{
	return number && number <= names->count ? names->names[number - 1].text : RLS_LABEL_OTHER;
}

struct rls_label_job *rls_label_set_job(const struct rls_label_set *set, uint64_t id)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->jobs[i]->id == id)
			return set->jobs[i];
	return NULL;
}

static bool is_taken(const struct rls_label_set *set, const char *label)
{
	for (size_t i = 0; i < set->count; i++)
		if (!strcmp(set->jobs[i]->label, label))
			return true;
	return false;
}

/* Names that differ may be cleaned to the same: then the id tells them apart, unless another
 * job has taken that very name. */
static char *label_of(const struct rls_label_set *set, const struct rls_snapshot_job *job)
{
	char clean[RLS_LABEL_BYTES], stem[RLS_LABEL_BYTES], numbered[2 * RLS_LABEL_BYTES];

	rls_label_clean(job->name, stem);
	rls_label_clean(stem, clean);
	for (size_t attempt = 0; is_taken(set, clean); attempt++) {
		if (attempt)
			snprintf(numbered, sizeof(numbered), "%.180s#%" PRIu64 ".%zu", stem,
				 job->id, attempt);
		else
			snprintf(numbered, sizeof(numbered), "%.180s#%" PRIu64, stem, job->id);
		rls_label_clean(numbered,
				clean); /* the stem may have been cut inside a character */
	}
	return strdup(clean);
}

static int take_in(struct rls_label_set *set, const struct rls_snapshot_job *from)
{
	struct rls_label_job *job;
	int r = rls_grow(&set->jobs, &set->room, set->count);

	if (r)
		return r;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->id = from->id;
	job->present = true;
	job->label = label_of(set, from);
	if (!job->label) {
		free_job(job);
		return -ENOMEM;
	}
	set->jobs[set->count++] = job;
	return 0;
}

static void forget_absent(struct rls_label_set *set)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		if (set->jobs[i]->present)
			set->jobs[kept++] = set->jobs[i];
		else
			free_job(set->jobs[i]);
	}
	set->count = kept;
}

int rls_label_set_update(struct rls_label_set *set, const struct rls_snapshot *snapshot)
{
	int r = 0;

	for (size_t i = 0; i < set->count; i++)
		set->jobs[i]->present = false;
	for (size_t i = 0; i < snapshot->job_count; i++) {
		struct rls_label_job *job = rls_label_set_job(set, snapshot->jobs[i].id);

		if (job)
			job->present = true;
	}
	forget_absent(set);
	for (size_t i = 0; !r && i < snapshot->job_count; i++) {
		if (set->count == RLS_LABEL_JOBS_MAX)
			break;
		if (!rls_label_set_job(set, snapshot->jobs[i].id))
			r = take_in(set, &snapshot->jobs[i]);
	}
	return r;
}
