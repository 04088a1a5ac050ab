/* Events in memory as an event source: for tests, and for readers that hold all they read.
 */
#ifndef RLS_MEMORY_SOURCE_H
#define RLS_MEMORY_SOURCE_H

#include <stddef.h>

#include "analysis/event/event_source.h"
#include "analysis/event/event_store.h"

/* Copies and sorts the events. strings stays the caller's and must outlive the source.
 * 0 and *out; -EINVAL for an event that fails rls_event_check, -ENOMEM. */
int rls_memory_source_new(const struct rls_event *events, size_t count,
			  const struct rls_string_pool *strings, struct rls_event_source **out);

/* Sorts the store in place. On success the source owns store and strings, else the caller
 * still does. 0 and *out, or -ENOMEM. */
int rls_memory_source_take(struct rls_event_store *store, struct rls_string_pool *strings,
			   bool damaged, struct rls_event_source **out);

#endif
