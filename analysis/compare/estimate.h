/* Estimates: the time of one unit of an operation in one run, and its error.
 *
 * The estimate is a robust mean of the blocks of a series (series.h): trimmed, with the Winsorised
 * variance (Tukey and McLaughlin 1963; Wilcox, Introduction to Robust Estimation, 3.3), widened
 * where neighbouring blocks are alike. Warm-up blocks at the beginning are left out if that at
 * least halves the squared error (MSER, White 1997). Phases are strata: a run's figure is the mean
 * over phases, with the same weights for all runs compared.
 */
#ifndef RLS_ESTIMATE_H
#define RLS_ESTIMATE_H

#include "analysis/compare/comparison.h"

struct rls_estimate {
	bool present;
	double ns; /* per unit */
	double variance_ns2; /* of ns; INFINITY: unknown */
	double freedom; /* degrees, of the variance */
	double units; /* in the whole run */
	double share; /* of the run's traced time, 0..1 */
	double subtracted_ns; /* per unit, by the calibration */
};

/* The unit in which all runs can be measured. */
enum rls_compare_unit rls_estimate_unit(const struct rls_compare_runs *runs, const char *operation);

/* Of each run, to out[]. With `common`, a logarithm for each run, times are what they would be at
 * the machine's usual pace (machine_speed.h); NULL: as they are. 0, or -ENOMEM. */
int rls_estimate_row(const struct rls_compare_runs *runs, const struct rls_compare_row *row,
		     enum rls_compare_metric metric, const double *common,
		     struct rls_estimate *out);

#endif
