#include "userspace/top/kept_snapshot.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* Laid out twice by the same code: once without a place, to learn how much there is. */
struct arena {
	char *at; /* NULL: only counts */
	size_t used;
};

static void *kept_snapshot_write(struct arena *arena, const void *from, size_t bytes)
{
	size_t aligned = (arena->used + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	char *to = arena->at ? arena->at + aligned : NULL;

	arena->used = aligned + bytes;
	if (to && bytes)
		memcpy(to, from, bytes);
	return to;
}

static void put_text(struct arena *arena, const char **text)
{
	const char *copy = kept_snapshot_write(arena, *text, strlen(*text) + 1);

	if (copy)
		*text = copy;
}

static void put_rows(struct arena *arena, struct rls_snapshot_job *job)
{
	struct rls_snapshot_row *rows =
		kept_snapshot_write(arena, job->rows, job->row_count * sizeof(*rows));
	struct rls_snapshot_transition *transitions;

	for (size_t i = 0; i < job->row_count; i++) {
		struct rls_snapshot_row row = job->rows[i];

		put_text(arena, &row.phase);
		put_text(arena, &row.operation);
		if (rows)
			rows[i] = row;
	}
	transitions = kept_snapshot_write(arena, job->transitions,
					  job->transition_count * sizeof(*transitions));
	for (size_t i = 0; i < job->transition_count; i++) {
		struct rls_snapshot_transition transition = job->transitions[i];

		put_text(arena, &transition.operation);
		if (transitions)
			transitions[i] = transition;
	}
	job->gpus = kept_snapshot_write(arena, job->gpus, job->gpu_count * sizeof(*job->gpus));
	job->rows = rows;
	job->transitions = transitions;
}

static struct rls_snapshot lay_out(struct arena *arena, const struct rls_snapshot *from)
{
	struct rls_snapshot snapshot = *from;
	struct rls_snapshot_job *jobs;
	struct rls_snapshot_loss *losses;

	put_text(arena, &snapshot.version);
	jobs = kept_snapshot_write(arena, from->jobs, from->job_count * sizeof(*jobs));
	for (size_t i = 0; i < from->job_count; i++) {
		struct rls_snapshot_job job = from->jobs[i];

		put_text(arena, &job.name);
		put_text(arena, &job.container);
		put_text(arena, &job.unit);
		put_text(arena, &job.cgroup);
		put_text(arena, &job.command);
		put_text(arena, &job.python);
		put_rows(arena, &job);
		if (jobs)
			jobs[i] = job;
	}
	losses = kept_snapshot_write(arena, from->losses, from->loss_count * sizeof(*losses));
	for (size_t i = 0; i < from->loss_count; i++) {
		struct rls_snapshot_loss loss = from->losses[i];

		put_text(arena, &loss.buffer);
		if (losses)
			losses[i] = loss;
	}
	snapshot.jobs = jobs;
	snapshot.losses = losses;
	return snapshot;
}

int rls_kept_snapshot_take(struct rls_kept_snapshot *kept, const struct rls_snapshot *from)
{
	struct arena arena = {0};
	struct rls_kept_snapshot fresh;

	lay_out(&arena, from);
	fresh.arena = malloc(arena.used);
	if (!fresh.arena)
		return -ENOMEM;
	arena = (struct arena){.at = fresh.arena};
	fresh.snapshot = lay_out(&arena, from);
	rls_kept_snapshot_clear(kept);
	*kept = fresh;
	return 0;
}

void rls_kept_snapshot_clear(struct rls_kept_snapshot *kept)
{
	free(kept->arena);
	*kept = (struct rls_kept_snapshot){0};
}
