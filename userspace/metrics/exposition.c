#include "userspace/metrics/exposition.h"

#include <errno.h>
#include <stdlib.h>

#include "userspace/metrics/families.h"
#include "userspace/metrics/fold.h"
#include "userspace/metrics/label_set.h"

#define JOB_SERIES 8 /* beside its rows, transitions and GPUs */

struct rls_exposition {
	struct rls_label_set set;
};

int rls_exposition_new(struct rls_exposition **out)
{
	struct rls_exposition *exposition = calloc(1, sizeof(*exposition));

	if (!exposition)
		return -ENOMEM;
	*out = exposition;
	return 0;
}

void rls_exposition_free(struct rls_exposition *exposition)
{
	if (!exposition)
		return;
	rls_label_set_clear(&exposition->set);
	free(exposition);
}

static size_t series_of(const struct rls_fold *fold)
{
	return fold->cell_count * (fold->job->has_on_cpu ? 2 : 1) + fold->transition_count +
	       3 * fold->job->gpu_count + JOB_SERIES;
}

/* In the order in which the jobs came: the earlier keep their series. */
static int fold_jobs(const struct rls_exposition *exposition, const struct rls_snapshot *snapshot,
		     struct rls_fold *folds, size_t *count)
{
	size_t series = 0;

	for (size_t i = 0; i < exposition->set.count; i++) {
		struct rls_label_job *labels = exposition->set.jobs[i];
		const struct rls_snapshot_job *job = snapshot->jobs;
		int r;

		while (job->id != labels->id)
			job++;
		r = rls_fold_make(labels, job, &folds[*count]);
		if (r)
			return r;
		if (series_of(&folds[*count]) > RLS_EXPOSITION_SERIES_MAX - series) {
			rls_fold_clear(&folds[*count]);
			continue;
		}
		series += series_of(&folds[(*count)++]);
	}
	return 0;
}

int rls_exposition_write(struct rls_exposition *exposition, const struct rls_snapshot *snapshot,
			 const struct rls_exposition_outlets *outlets, FILE *out)
{
	struct rls_families_input input = {.snapshot = snapshot, .outlets = outlets};
	struct rls_fold *folds = NULL;
	int r = rls_label_set_update(&exposition->set, snapshot);

	if (!r) {
		folds = calloc(exposition->set.count + 1, sizeof(*folds));
		r = folds ? fold_jobs(exposition, snapshot, folds, &input.fold_count) : -ENOMEM;
	}
	input.folds = folds;
	if (!r) {
		rls_families_write(&input, out);
		if (fflush(out) || ferror(out))
			r = -EIO;
	}
	for (size_t i = 0; i < input.fold_count; i++)
		rls_fold_clear(&folds[i]);
	free(folds);
	return r;
}
