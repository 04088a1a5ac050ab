/* Count estimate: how many transitions there were while tracing was off, and how far that may be off. Pure.
 *
 * There are two estimates of each count, and the one that is known better is used:
 *
 *     by time     transitions for each ns that the thread ran in windows × the ns that it ran between them
 *     by visits   transitions for each visit of the operation in traced time × the visits between
 *
 * Visits are known exactly, all the time: each time that a thread enters an operation or comes back to it. An operation
 * that does the same each time has as many transitions in each visit, however much of it was traced.
 *
 * By time it is a ratio estimate over windows (Cochran, Sampling Techniques, ch. 6): transitions for each window's length,
 * over corrected running time for each window's length. A window is one instant at random, however long it is: it
 * ends sooner where there is much to trace. The first stretch is at no random instant, and fewer than five windows are
 * not enough. In a window, time before a thread's first event has no transitions. The error contains how windows
 * differ (fewer count where neighbours are alike), what all of them may have missed (up to the densest and
 * sparsest piece seen), and, where a thread waits much, how well it is known when it ran.
 *
 * By visits the first stretch counts too. The error contains
 *
 *   - how windows, and pieces of the first stretch, differ from each other;
 *   - what all of them may have missed, up to the densest and sparsest group of visits seen;
 *   - what windows and the first stretch differ by;
 *   - by how much visits between windows are longer or shorter than traced ones, beyond what the correction of the
 *     cost of hits may be off by: all of that where visits between windows differ much from each other;
 *   - how pieces of the time between windows differ in the length of their visits;
 *   - by how much more or less of the category samples find between windows, beyond their own error.
 *
 * The last three find bursts that no window has met, where these take time. Calls that take hardly any need five windows. Where
 * both estimates are known and differ, that is part of the error by time.
 */
#ifndef RLS_COUNT_ESTIMATE_H
#define RLS_COUNT_ESTIMATE_H

#include "analysis/timeline/untraced_state.h"

/* What is known of the scopes of one operation and phase. */
struct rls_count_basis {
	const struct rls_spread *spread;
	double waits; /* share of the closed time */
	double ran_ns; /* corrected running time between windows */
	double ran_error; /* share by which that may be another operation's */
	double visits; /* between windows */
	double cost_share; /* what hits cost of traced running time, as a share of the rest of it */
	/* Share of the running time in each category: traced, corrected; and by samples between windows. */
	double traced_share[RLS_CATEGORY_MAX], sampled_share[RLS_CATEGORY_MAX];
	double sampled_error[RLS_CATEGORY_MAX]; /* half widths */
};

struct rls_count_estimate {
	double count;
	double error; /* half width of the 95 % interval; infinite: nothing is known */
	bool by_visits;
};

struct rls_count_estimate rls_estimate_count(const struct rls_count_basis *basis, int from, int to);

#endif
