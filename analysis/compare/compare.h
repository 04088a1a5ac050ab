/* Compare: recordings side by side, normalised so that their lengths do not matter.
 *
 * An operation's time is taken per call, by category and in total. An operation that is entered
 * only a few times, such as a training loop, is measured per call of the operations directly
 * within it. The time of a call in one run and its error come from blocks of calls (estimate.h).
 *
 * A side is one run or several of the same program. Machines differ in speed from run to run and
 * during each run, and everything that runs on them differs with them. The speed of a side is the
 * median ratio of its figures to the first side's. A change is judged in one of two ways:
 *     - Relative to the common factor, at the machine's usual speed (machine_speed.h). This applies if both
 *       sides are one run only, if the runs of a side differ much less so, or if the user asks for it. A row
 *       that differs from all the rest is reported; one that is slower together with the rest is not. The
 *       scatter of figures about the common factor is part of the error.
 *     - Absolutely. The differences between the runs of a side are part of the error; figures with few runs
 *       borrow from all others (Smyth 2004).
 *
 * The common factor is known if there are enough figures to find it.
 *
 * A difference is significant if it is beyond its error at 95 % for all rows together
 * (Bonferroni), larger than the noise that two runs of one program are granted, and of some weight
 * in the whole. Significant rows come first, by weight; then the others, the nearest to
 * significance first.
 */
#ifndef RLS_COMPARE_H
#define RLS_COMPARE_H

#include "analysis/compare/comparison.h"

/* Runs must outlive the comparison; of each side there is one or more. 0 and *out, or -ENOMEM. */
int rls_compare(const struct rls_compare_run *a, size_t a_count, const struct rls_compare_run *b,
		size_t b_count, const struct rls_compare_options *options,
		struct rls_comparison *out);
#endif
