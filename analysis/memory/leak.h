/* Leaks: whether the blocks of a line accumulate, how fast, and when memory ends.
 *
 *     likelihood   (survivors + 1) / (observed + 2): Laplace's rule of succession, the trials being
 *                  all blocks that were observed for long enough (lifetimes.h). At least 18 trials
 *                  are needed for 0.95.
 *     trend        that live bytes rise, with what confidence: the share of a normal distribution
 *                  below Mann and Kendall's z (trend.h) over the last half of the curve, from its
 *                  first value above 0 on. Where the last quarter or eighth rises less than a quarter
 *                  as steeply, that of this part, at most 0.5 if it does not rise: a buffer that was
 *                  filled and then stays is no leak.
 *     score        likelihood × trend, from 0 to 1
 *     growth       Theil and Sen's slope over the last half
 *
 * The score is an order and a threshold, not a probability: values of a curve are not independent.
 */
#ifndef RLS_LEAK_H
#define RLS_LEAK_H

#include <stdint.h>

#include "analysis/memory/lifetimes.h"
#include "analysis/memory/live_curve.h"

/* From this score on a line is called a leak. */
#define RLS_LEAK_SCORE 0.95

struct rls_leak {
	double score;
	double growth_bytes_per_s;
};

/* Of a finished curve and its blocks. */
struct rls_leak rls_leak_of(const struct rls_live_curve *curve, const struct rls_trials *trials);

/* Bytes per second over the last half of a finished curve, from its first value above 0 on. */
double rls_growth_bytes_per_s(const struct rls_live_curve *curve);

/* Seconds until a figure that is `now` and grows at this rate reaches the limit; NAN where it does
 * not grow, 0 where it is there. */
double rls_limit_in_s(uint64_t now_bytes, uint64_t limit_bytes, double bytes_per_s);

#endif
