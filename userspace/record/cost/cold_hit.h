/* Sparse hits: what one costs that comes long after any other, in hits as the calibration has them. Pure.
 *
 * The longer a thread hit nothing, the less of what a hit needs is left in the caches. In training jobs, held against
 * the same work with nobody there, hits took 2 to 3 times what the calibration says after 0.1 to 0.3 ms, and 8 to 14
 * times after some milliseconds; a hit right after such a one finds a part of it (scripts/bench/HISTORY.md, Accuracy).
 * Budgets go by two rounder figures (site_use.h), which is rather too much.
 */
#ifndef RLS_COLD_HIT_H
#define RLS_COLD_HIT_H

#include <stdint.h>

/* After less, hits are like any. */
#define RLS_SPARSE_NS 50000
#define RLS_SPARSE_MORE 13.0            /* so much more than any it comes to in the end, */
#define RLS_SPARSE_HALF_NS 1600000.0    /* and half of that after so long */
/* What one right after it takes more, of that. */
#define RLS_SPARSE_FOLLOWING 0.2

static inline double rls_sparse_hit(uint64_t gap_ns)
{
	return 1 + RLS_SPARSE_MORE * (double)gap_ns / ((double)gap_ns + RLS_SPARSE_HALF_NS);
}

/* times: what the first of them takes. */
static inline double rls_sparse_following(double times)
{
	return 1 + RLS_SPARSE_FOLLOWING * (times - 1);
}

#endif
