/* Judging: from what rows take in each run to what differs between two sides. */
#ifndef RLS_COMPARE_JUDGE_H
#define RLS_COMPARE_JUDGE_H

#include "compare_estimate.h"

/* Fills the comparison's rows and all that is said of their common factor. Estimates are
 * row by row, each row's by run. 0, or -ENOMEM. */
int rls_compare_judge(const struct rls_compare_runs *runs, const struct rls_estimate *estimates,
		      const struct rls_compare_options *options, struct rls_comparison *out);

#endif
