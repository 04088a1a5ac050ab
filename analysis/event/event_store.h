/* Event store: many events in little memory.
 *
 * struct rls_event is as large as its largest kind; most events need a tenth of it. The
 * store keeps 40 bytes per event, and what does not fit in those beside them.
 * Used wherever events must be held before they are sorted: a chunk being written, a text
 * trace, events made up by tests.
 */
#ifndef RLS_EVENT_STORE_H
#define RLS_EVENT_STORE_H

#include <stddef.h>

#include "analysis/base/string_pool.h"
#include "analysis/event/event.h"

struct rls_event_store;

/* NULL when out of memory. */
struct rls_event_store *rls_event_store_new(void);
void rls_event_store_free(struct rls_event_store *store);

/* 0, -EINVAL for an event that fails rls_event_check, -ENOMEM. */
int rls_event_store_add(struct rls_event_store *store, const struct rls_event *event);

size_t rls_event_store_count(const struct rls_event_store *store);
/* Bytes of the events now held. */
size_t rls_event_store_bytes(const struct rls_event_store *store);

/* index < count. Fills the header and the kind's own member of *out, nothing more. */
void rls_event_store_get(const struct rls_event_store *store, size_t index, struct rls_event *out);

/* Sorts by rls_event_order. Cheap when the events came nearly sorted. 0 or -ENOMEM. */
int rls_event_store_sort(struct rls_event_store *store, const struct rls_string_pool *strings);

/* Forgets the events, keeps the memory. */
void rls_event_store_clear(struct rls_event_store *store);

#endif
