/* Blocks of a series (series.h): which stratum, how many are whole, what time they took. */
#ifndef RLS_COMPARE_BLOCKS_H
#define RLS_COMPARE_BLOCKS_H

#include "analysis/compare/comparison.h"

void rls_sort_values(double *values, size_t count); /* smallest first */
double rls_median(double *values, size_t count); /* sorts them; of none NAN */

/* NULL: there is none. */
const struct rls_series_stratum *rls_blocks_stratum(const struct rls_series *series,
						    const char *phase, const char *operation);

/* Blocks without a last one that was begun only. */
size_t rls_blocks_whole(const struct rls_series_blocks *blocks);

/* Nanoseconds of a category or RLS_COMPARE_TOTAL. */
double rls_blocks_time(const struct rls_series_times *times, enum rls_compare_metric metric,
		       int category);

#endif
