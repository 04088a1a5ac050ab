#include "userspace/metrics/fold.h"

#include <errno.h>
#include <stdlib.h>

static void fold_add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

static int compare_numbers(const size_t *a, const size_t *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static int compare_cells(const void *left, const void *right)
{
	const struct rls_fold_cell *a = left, *b = right;
	const size_t key_a[] = {a->phase, a->operation, a->category, a->resource};
	const size_t key_b[] = {b->phase, b->operation, b->category, b->resource};

	return compare_numbers(key_a, key_b, 4);
}

static int compare_transitions(const void *left, const void *right)
{
	const struct rls_fold_transition *a = left, *b = right;
	const size_t key_a[] = {a->operation, a->from, a->to};
	const size_t key_b[] = {b->operation, b->from, b->to};

	return compare_numbers(key_a, key_b, 3);
}

static void merge_cells(struct rls_fold *fold)
{
	size_t kept = 0;

	if (!fold->cell_count)
		return;
	qsort(fold->cells, fold->cell_count, sizeof(*fold->cells), compare_cells);
	for (size_t i = 1; i < fold->cell_count; i++) {
		struct rls_fold_cell *into = &fold->cells[kept], *cell = &fold->cells[i];

		if (compare_cells(into, cell)) {
			fold->cells[++kept] = *cell;
			continue;
		}
		fold_add(&into->wall_ns, cell->wall_ns);
		fold_add(&into->on_cpu_ns, cell->on_cpu_ns);
	}
	fold->cell_count = kept + 1;
}

static void merge_transitions(struct rls_fold *fold)
{
	size_t kept = 0;

	if (!fold->transition_count)
		return;
	qsort(fold->transitions, fold->transition_count, sizeof(*fold->transitions),
	      compare_transitions);
	for (size_t i = 1; i < fold->transition_count; i++) {
		struct rls_fold_transition *into = &fold->transitions[kept];

		if (compare_transitions(into, &fold->transitions[i]))
			fold->transitions[++kept] = fold->transitions[i];
		else
			fold_add(&into->count, fold->transitions[i].count);
	}
	fold->transition_count = kept + 1;
}

static int fold_rows(struct rls_label_job *labels, struct rls_fold *fold)
{
	const struct rls_snapshot_job *job = fold->job;

	for (size_t i = 0; i < job->row_count; i++) {
		const struct rls_snapshot_row *row = &job->rows[i];
		struct rls_fold_cell *cell = &fold->cells[fold->cell_count];
		int r;

		if (row->category >= RLS_CATEGORY_MAX || row->resource >= RLS_RESOURCE_MAX)
			continue;
		r = rls_label_job_pair(labels, row->phase, row->operation, &cell->phase,
				       &cell->operation);
		if (r)
			return r;
		cell->category =
			row->resource == RLS_RESOURCE_GPU ? RLS_CATEGORY_MAX : row->category;
		cell->resource = row->resource;
		cell->wall_ns = row->wall_ns;
		cell->on_cpu_ns = row->on_cpu_ns;
		fold->cell_count++;
		if (row->method != RLS_METHOD_TRACED)
			fold_add(&fold->estimated_ns, row->wall_ns);
	}
	merge_cells(fold);
	return 0;
}

static int fold_transitions(struct rls_label_job *labels, struct rls_fold *fold)
{
	const struct rls_snapshot_job *job = fold->job;

	for (size_t i = 0; i < job->transition_count; i++) {
		const struct rls_snapshot_transition *transition = &job->transitions[i];
		struct rls_fold_transition *into = &fold->transitions[fold->transition_count];
		int r;

		if (transition->from >= RLS_CATEGORY_MAX || transition->to >= RLS_CATEGORY_MAX)
			continue;
		r = rls_label_job_operation(labels, transition->operation, &into->operation);
		if (r)
			return r;
		into->from = transition->from;
		into->to = transition->to;
		into->count = transition->count;
		fold->transition_count++;
	}
	merge_transitions(fold);
	return 0;
}

int rls_fold_make(struct rls_label_job *labels, const struct rls_snapshot_job *job,
		  struct rls_fold *out)
{
	struct rls_fold fold = {.labels = labels, .job = job};
	int r = -ENOMEM;

	fold.cells = calloc(job->row_count + 1, sizeof(*fold.cells));
	fold.transitions = calloc(job->transition_count + 1, sizeof(*fold.transitions));
	if (fold.cells && fold.transitions)
		r = fold_rows(labels, &fold);
	if (!r)
		r = fold_transitions(labels, &fold);
	if (r)
		rls_fold_clear(&fold);
	else
		*out = fold;
	return r;
}

void rls_fold_clear(struct rls_fold *fold)
{
	free(fold->cells);
	free(fold->transitions);
	*fold = (struct rls_fold){0};
}
