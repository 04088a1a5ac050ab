/* Compare: recordings side by side, normalised so that their lengths do not matter.
 *
 * An operation's time is taken per call of it, by category and in total; of an operation that
 * is hardly ever entered, such as a training loop, per call of the operations directly within.
 * What a call takes in one run and its error come from blocks of calls (estimate.h).
 *
 * A side is one run or several of the same program. Machines differ in speed from run to run and
 * over each run, and so does everything that runs on them: the speed of a side is the median ratio
 * of its figures to the first side's. A change is
 *   - judged against what is common, at the machine's usual pace (machine_speed.h), where both sides
 *     are one run only, where runs of a side differ much less so, or where it is asked for: what
 *     differs from all the rest is told, what is slower with all the rest is not; how far figures
 *     scatter about the common factor is part of the error;
 *   - judged as it is else: how far the runs of a side differ is part of the error, figures with
 *     few runs borrowing from all others (Smyth 2004).
 * The factor is known where enough figures are there to tell what is common.
 *
 * A difference is significant when it is beyond its error at 95 % for all rows together
 * (Bonferroni), larger than the noise that two runs of one program are granted, and of any weight in
 * the whole. Significant rows come first, by weight; then the others, nearest to it first.
 */
#ifndef RLS_COMPARE_H
#define RLS_COMPARE_H

#include "analysis/compare/comparison.h"

/* Runs must outlive the comparison; of each side there is one or more. 0 and *out, or -ENOMEM. */
int rls_compare(const struct rls_compare_run *a, size_t a_count, const struct rls_compare_run *b,
		size_t b_count, const struct rls_compare_options *options,
		struct rls_comparison *out);
#endif
