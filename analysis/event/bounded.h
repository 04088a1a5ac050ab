/* Sums of what a trace says. Its numbers may each be the largest there is; a sum stops
 * there too, so that it neither wraps nor is more than JSON readers take. So does what is
 * reckoned from them. */
#ifndef RLS_BOUNDED_H
#define RLS_BOUNDED_H

#include <math.h>

#include "analysis/event/event_fields.h"

/* A figure that nothing bounds. Sums of what a trace says end there, so a sum of such a
 * figure and others is one, too. */
#define RLS_COUNT_UNKNOWN ((uint64_t)INT64_MAX)

static inline void rls_add_bounded(uint64_t *sum, uint64_t more)
{
	*sum = more > RLS_EVENT_NUMBER_MAX - *sum ? RLS_EVENT_NUMBER_MAX : *sum + more;
}

/* The nearest number that a sum may be: what is too large, or no number at all, is the largest. */
static inline uint64_t rls_round_bounded(double value)
{
	if (value <= 0)
		return 0;
	/* The limit itself is no double: it is rounded up. */
	return value < (double)RLS_EVENT_NUMBER_MAX ? (uint64_t)llround(value)
						    : RLS_EVENT_NUMBER_MAX;
}

#endif
