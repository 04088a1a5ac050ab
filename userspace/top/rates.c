#include "userspace/top/rates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static const struct rls_snapshot_job *find_job(const struct rls_snapshot *snapshot, uint64_t id)
{
	for (size_t i = 0; snapshot && i < snapshot->job_count; i++)
		if (snapshot->jobs[i].id == id)
			return &snapshot->jobs[i];
	return NULL;
}

static bool same_row(const struct rls_snapshot_row *a, const struct rls_snapshot_row *b)
{
	return a->category == b->category && a->resource == b->resource &&
	       !strcmp(a->operation, b->operation) && !strcmp(a->phase, b->phase);
}

/* Rows mostly stay where they were: that place is tried first. */
static uint64_t row_before(const struct rls_snapshot_job *before,
			   const struct rls_snapshot_row *row, size_t place)
{
	if (!before)
		return 0;
	if (place < before->row_count && same_row(&before->rows[place], row))
		return before->rows[place].wall_ns;
	for (size_t i = 0; i < before->row_count; i++)
		if (same_row(&before->rows[i], row))
			return before->rows[i].wall_ns;
	return 0;
}

static uint64_t count_before(const struct rls_snapshot_job *before,
			     const struct rls_snapshot_transition *transition, size_t place)
{
	size_t count = before ? before->transition_count : 0;

	for (size_t i = 0; i < count; i++) {
		const struct rls_snapshot_transition *it =
			&before->transitions[(place + i) % count];

		if (it->from == transition->from && it->to == transition->to &&
		    !strcmp(it->operation, transition->operation))
			return it->count;
	}
	return 0;
}

static int operation_of(struct rls_rates_job *job, const char *name,
			struct rls_rates_operation **out)
{
	int r;

	for (size_t i = 0; i < job->operation_count; i++) {
		*out = &job->operations[i];
		if (!strcmp(job->operations[i].name, name))
			return 0;
	}
	r = rls_grow(&job->operations, &job->operation_room, job->operation_count);
	if (r)
		return r;
	*out = &job->operations[job->operation_count++];
	**out = (struct rls_rates_operation){.name = name};
	return 0;
}

static void add_time(struct rls_rates_sums *sums, const struct rls_snapshot_row *row, uint64_t ns)
{
	sums->total_ns += ns;
	sums->category_ns[row->category] += ns;
	if (row->resource == RLS_RESOURCE_CPU_GPU)
		sums->on_gpu_ns += ns;
}

static int add_rows(struct rls_rates_job *rates, const struct rls_snapshot_job *before)
{
	const struct rls_snapshot_job *job = rates->job;
	struct rls_rates_operation *operation;
	int r = 0;

	for (size_t i = 0; !r && i < job->row_count; i++) {
		const struct rls_snapshot_row *row = &job->rows[i];
		uint64_t ns = since(row->wall_ns, row_before(before, row, i));

		/* The GPU alone is no thread's time. */
		if (!ns || row->resource == RLS_RESOURCE_GPU || row->category >= RLS_CATEGORY_MAX)
			continue;
		r = operation_of(rates, row->operation, &operation);
		if (r)
			break;
		add_time(&operation->sums, row, ns);
		add_time(&rates->sums, row, ns);
		operation->estimated |= row->method != RLS_METHOD_TRACED;
	}
	for (size_t i = 0; !r && i < job->transition_count; i++) {
		const struct rls_snapshot_transition *transition = &job->transitions[i];
		uint64_t count = since(transition->count, count_before(before, transition, i));

		if (!count)
			continue;
		r = operation_of(rates, transition->operation, &operation);
		if (r)
			break;
		operation->sums.transitions += count;
		rates->sums.transitions += count;
	}
	return r;
}

static void add_gpus(struct rls_rates_job *rates, const struct rls_snapshot_job *before)
{
	for (size_t i = 0; i < rates->job->gpu_count; i++) {
		const struct rls_snapshot_gpu *gpu = &rates->job->gpus[i];
		struct rls_snapshot_gpu was = {0};

		for (size_t k = 0; before && k < before->gpu_count; k++)
			if (before->gpus[k].device == gpu->device)
				was = before->gpus[k];
		rates->gpu_busy_ns += since(gpu->busy_ns, was.busy_ns);
		rates->smi_style_ns += since(gpu->smi_style_ns, was.smi_style_ns);
	}
}

/* By time, then by name: the order must not flicker between equals. */
static int compare_operations(const void *left, const void *right)
{
	const struct rls_rates_operation *a = left, *b = right;

	if (a->sums.total_ns != b->sums.total_ns)
		return a->sums.total_ns > b->sums.total_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int compare_jobs(const void *left, const void *right)
{
	const struct rls_rates_job *a = left, *b = right;

	if (a->sums.total_ns != b->sums.total_ns)
		return a->sums.total_ns > b->sums.total_ns ? -1 : 1;
	return a->job->id < b->job->id ? -1 : a->job->id > b->job->id;
}

static int add_job(struct rls_rates *rates, const struct rls_snapshot *before,
		   const struct rls_snapshot_job *job)
{
	const struct rls_snapshot_job *was = find_job(before, job->id);
	struct rls_rates_job *into = &rates->jobs[rates->job_count];
	int r;

	if (was && was->ended_ns)
		return 0;
	rates->job_count++;
	into->job = job;
	into->overhead_ns = since(job->overhead_ns, was ? was->overhead_ns : 0);
	add_gpus(into, was);
	r = add_rows(into, was);
	if (into->operation_count)
		qsort(into->operations, into->operation_count, sizeof(*into->operations),
		      compare_operations);
	return r;
}

int rls_rates_make(const struct rls_snapshot *before, const struct rls_snapshot *now,
		   struct rls_rates *out)
{
	struct rls_rates rates = {.now = now};
	int r = 0;

	rates.elapsed_ns = since(now->time_ns, before ? before->time_ns : 0);
	rates.jobs = calloc(now->job_count + 1, sizeof(*rates.jobs));
	if (!rates.jobs)
		return -ENOMEM;
	for (size_t i = 0; !r && i < now->job_count; i++)
		r = add_job(&rates, before, &now->jobs[i]);
	for (size_t i = 0; i < now->loss_count; i++)
		rates.lost += now->losses[i].dropped;
	if (r) {
		rls_rates_clear(&rates);
		return r;
	}
	qsort(rates.jobs, rates.job_count, sizeof(*rates.jobs), compare_jobs);
	*out = rates;
	return 0;
}

void rls_rates_clear(struct rls_rates *rates)
{
	for (size_t i = 0; i < rates->job_count; i++)
		free(rates->jobs[i].operations);
	free(rates->jobs);
	*rates = (struct rls_rates){0};
}
