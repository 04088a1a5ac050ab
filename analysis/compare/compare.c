#include "analysis/compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/compare/judge.h"

/* What a row is ordered by: of significant changes what weighs most, of the others what is
 * nearest to being one. */
static double size(const struct rls_compare_row *row)
{
	if (row->significant)
		return row->weight;
	return row->judged && row->error > 0 ? fabs(row->relative) / row->error : 0;
}

static int by_size(const void *left, const void *right)
{
	const struct rls_compare_row *a = left, *b = right;
	int order;

	if (a->significant != b->significant)
		return a->significant ? -1 : 1;
	if (a->judged != b->judged)
		return a->judged ? -1 : 1;
	if (size(a) != size(b))
		return size(a) > size(b) ? -1 : 1;
	order = strcmp(a->operation, b->operation);
	return order ? order : a->category - b->category;
}

static bool has_row(const struct rls_comparison *comparison, const char *operation, int category)
{
	for (size_t i = 0; i < comparison->count; i++) {
		if (comparison->rows[i].category == category &&
		    !strcmp(comparison->rows[i].operation, operation))
			return true;
	}
	return false;
}

static int add_row(struct rls_comparison *out, size_t *capacity,
		   const struct rls_compare_runs *runs, const char *operation, int category)
{
	int err;

	if (has_row(out, operation, category))
		return 0;
	err = rls_grow(&out->rows, capacity, out->count);
	if (err)
		return err;
	out->rows[out->count++] = (struct rls_compare_row){
		.operation = operation,
		.category = category,
		.unit = rls_estimate_unit(runs, operation),
	};
	return 0;
}

static int add_rows(struct rls_comparison *out, const struct rls_compare_runs *runs)
{
	size_t capacity = 0;
	int err = 0;

	for (size_t r = 0; r < runs->count; r++) {
		const struct rls_series *series = runs->runs[r].series;

		for (size_t i = 0; !err && i < series->count; i++) {
			const struct rls_series_stratum *stratum = &series->strata[i];

			for (int c = RLS_COMPARE_TOTAL; !err && c < RLS_CATEGORY_MAX; c++) {
				if (c == RLS_COMPARE_TOTAL || stratum->times.wall_ns[c] > 0)
					err = add_row(out, &capacity, runs, stratum->operation, c);
			}
		}
	}
	return err;
}

static int estimate_rows(const struct rls_compare_runs *runs,
			 const struct rls_comparison *comparison, enum rls_compare_metric metric,
			 const double *common, struct rls_estimate *out)
{
	int err = 0;

	for (size_t i = 0; !err && i < comparison->count; i++)
		err = rls_estimate_row(runs, &comparison->rows[i], metric, common,
				       &out[i * runs->count]);
	return err;
}

static int compare_runs(const struct rls_compare_runs *runs,
			const struct rls_compare_options *options, struct rls_comparison *out)
{
	_cleanup_free_ struct rls_estimate *as_is = NULL, *at_pace = NULL;
	_cleanup_free_ double *common = calloc(runs->count, sizeof(*common));
	int err = add_rows(out, runs);

	if (err)
		return err;
	as_is = calloc(out->count * runs->count + 1, sizeof(*as_is));
	at_pace = calloc(out->count * runs->count + 1, sizeof(*at_pace));
	if (!common || !as_is || !at_pace)
		return -ENOMEM;
	err = estimate_rows(runs, out, options->metric, NULL, as_is);
	if (!err)
		err = rls_compare_judge_common(runs, as_is, out, common);
	if (!err && out->speed_known)
		err = estimate_rows(runs, out, options->metric, common, at_pace);
	if (!err)
		err = rls_compare_judge(runs, &(struct rls_compare_estimates){as_is, at_pace},
					common, options, out);
	if (!err && out->count)
		qsort(out->rows, out->count, sizeof(*out->rows), by_size);
	return err;
}

int rls_compare(const struct rls_compare_run *a, size_t a_count, const struct rls_compare_run *b,
		size_t b_count, const struct rls_compare_options *options,
		struct rls_comparison *out)
{
	_cleanup_free_ struct rls_compare_run *all = calloc(a_count + b_count, sizeof(*all));
	struct rls_compare_runs runs = {
		.runs = all, .count = a_count + b_count, .a_count = a_count};
	struct rls_comparison comparison = {0};
	int err;

	if (!all)
		return -ENOMEM;
	memcpy(all, a, a_count * sizeof(*all));
	memcpy(all + a_count, b, b_count * sizeof(*all));
	err = compare_runs(&runs, options, &comparison);
	if (err)
		rls_comparison_free(&comparison);
	else
		*out = comparison;
	return err;
}
