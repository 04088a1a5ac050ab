/* Live curve: how many bytes were live over time at least, in bounded memory.
 *
 *     start        least[0]       least[1]       least[2]       now
 *       ├── period ────┼── period ────┼── period ────┼───────────┤
 *
 * least[i] is the smallest figure in [start + i × period, start + (i + 1) × period): what a line
 * needs for a moment is not in it, what it keeps is. A curve that is full doubles its period. Curves of
 * one start and one end have the same periods, so curves of several places can be added up.
 */
#ifndef RLS_LIVE_CURVE_H
#define RLS_LIVE_CURVE_H

#include <stddef.h>
#include <stdint.h>

#define RLS_LIVE_CURVE_POINTS 128

/* Zeroed with a start: 0 until the first change. Finished: least[] and now_bytes hold. */
struct rls_live_curve {
	uint64_t start_ns;
	uint64_t period_ns; /* 0: nothing was added yet */
	uint64_t now_bytes; /* after the latest change */
	uint64_t low_bytes; /* the smallest of the period that is not over */
	uint32_t count; /* of least[] */
	uint64_t least[RLS_LIVE_CURVE_POINTS];
};

/* From this instant on, which is no earlier than any before, so many bytes are live. */
void rls_live_curve_set(struct rls_live_curve *curve, uint64_t time_ns, uint64_t bytes);

/* No change comes before this instant any more. */
void rls_live_curve_finish(struct rls_live_curve *curve, uint64_t end_ns);

/* Adds another finished curve of the same start and end. If they differ, because a pid was
 * used twice, the later one stays alone. */
void rls_live_curve_add(struct rls_live_curve *into, const struct rls_live_curve *more);

/* The largest figure of a finished curve, the last one included. */
uint64_t rls_live_curve_max(const struct rls_live_curve *curve);

#endif
