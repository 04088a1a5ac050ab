/* Judging: from the time of each row in each run to the differences between two sides. */
#ifndef RLS_JUDGE_H
#define RLS_JUDGE_H

#include "analysis/compare/estimate.h"

/* Estimates of rows, each row's by run. */
struct rls_compare_estimates {
	struct rls_estimate *as_is;
	struct rls_estimate *at_pace; /* at the machine's usual pace; only where that is known */
};

/* How much longer things take than in the first run, by the median over the rows: a logarithm
 * for each run, to common[], 0 where too few rows tell. Says so in the comparison. 0, or -ENOMEM. */
int rls_compare_judge_common(const struct rls_compare_runs *runs, const struct rls_estimate *as_is,
			     struct rls_comparison *out, double *common);

/* Fills the comparison's rows and all that is said of their common factor. 0, or -ENOMEM. */
int rls_compare_judge(const struct rls_compare_runs *runs,
		      const struct rls_compare_estimates *estimates, const double *common,
		      const struct rls_compare_options *options, struct rls_comparison *out);

#endif
