/* The order of events, down to their content.
 *
 * rls_event_compare (event_source.h) orders by time, kind, pid and tid. Two events may still tie,
 * say two categories of one thread in the same nanosecond. Sources break such ties by content,
 * strings by their text, so that the order of a file's lines or chunks never shows in a report.
 * Equal then means: the same event.
 */
#ifndef RLS_EVENT_ORDER_H
#define RLS_EVENT_ORDER_H

#include "analysis/event/event_source.h"

/* <0, 0, >0; agrees with rls_event_compare wherever that is not 0. */
int rls_event_order(const struct rls_event *a, const struct rls_event *b,
		    const struct rls_string_pool *strings);

#endif
