/* Sums of what a trace says. Its numbers may each be the largest there is; a sum stops
 * there too, so that it neither wraps nor is more than JSON readers take. */
#ifndef RLS_BOUNDED_H
#define RLS_BOUNDED_H

#include "analysis/event_fields.h"

static inline void rls_add_bounded(uint64_t *sum, uint64_t more)
{
	*sum = more > RLS_EVENT_NUMBER_MAX - *sum ? RLS_EVENT_NUMBER_MAX : *sum + more;
}

#endif
