/* Trend: how fast a figure grows, and whether it grows at all, from values at equal distances.
 *
 *     slope   Theil and Sen: the median of the slopes of all pairs of values. A jump, or a dip when
 *             garbage is collected, moves it little.
 *             (H. Theil 1950; P. K. Sen, J. Am. Stat. Assoc. 63, 1968)
 *     z       Mann and Kendall: S = pairs that rise - pairs that fall, z = (S -+ 1) / sigma, where
 *             sigma² = (n (n - 1) (2n + 5) - sum over ties t (t - 1) (2t + 5)) / 18.
 *             0 where all values are equal.
 *             (H. B. Mann, Econometrica 13, 1945; M. G. Kendall, Rank Correlation Methods, 1975)
 */
#ifndef RLS_TREND_H
#define RLS_TREND_H

#include <stddef.h>
#include <stdint.h>

#define RLS_TREND_VALUES_MAX 128

struct rls_trend {
	double slope; /* per step */
	double z;
};

/* Of at most RLS_TREND_VALUES_MAX values; more: of the last ones. Fewer than two: zero. */
struct rls_trend rls_trend_of(const uint64_t *values, size_t count);

/* The share of a normal distribution below z. */
double rls_normal_share(double z);

#endif
