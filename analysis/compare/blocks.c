#include "analysis/compare/blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

void rls_sort_values(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_size);
}

double rls_median(double *values, size_t count)
{
	if (!count)
		return NAN;
	rls_sort_values(values, count);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double rls_blocks_time(const struct rls_series_times *times, enum rls_compare_metric metric,
		       int category)
{
	const double *const values[] = {
		[RLS_COMPARE_CORRECTED] = times->corrected_ns,
		[RLS_COMPARE_WALL] = times->wall_ns,
		[RLS_COMPARE_CPU] = times->cpu_ns,
		[RLS_COMPARE_RAN] = times->ran_ns,
	};
	double sum = 0;

	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		if (category == RLS_COMPARE_TOTAL || category == i)
			sum += values[metric][i];
	}
	return sum;
}

size_t rls_blocks_whole(const struct rls_series_blocks *blocks)
{
	bool begun = blocks->count && blocks->blocks[blocks->count - 1].units < blocks->units_each;

	return blocks->count - begun;
}

const struct rls_series_stratum *rls_blocks_stratum(const struct rls_series *series,
						    const char *phase, const char *operation)
{
	for (size_t i = 0; i < series->count; i++) {
		if (!strcmp(series->strata[i].operation, operation) &&
		    !strcmp(series->strata[i].phase, phase))
			return &series->strata[i];
	}
	return NULL;
}
