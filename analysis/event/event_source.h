/* Event source: a stream of events in time order, whatever it is read from.
 *
 * The binary trace reader, the text form reader and tests implement this; the analysis
 * consumes it. Events come sorted by time_ns; at equal times in the order that makes
 * their meaning plain (process, thread, phase, operation, category, hits, ..., ends last).
 */
#ifndef RLS_EVENT_SOURCE_H
#define RLS_EVENT_SOURCE_H

#include "analysis/base/string_pool.h"
#include "analysis/event/event.h"

struct rls_event_source {
	/* 1 and *out filled, 0 at the end, -errno on failure. Damage is no failure: the source
	 * gives what can be read, adds RLS_EVENT_WARNING events and sets damaged. */
	int (*next)(struct rls_event_source *source, struct rls_event *out);
	/* The part that was given, from 0 to 1. NULL: not known. */
	double (*share)(const struct rls_event_source *source);
	void (*free)(struct rls_event_source *source);

	const struct rls_string_pool *strings; /* owned by the source, grows while reading */
	bool damaged; /* something was unreadable or missing: exit status 3 */
};

/* Opens a trace file of any form, recognised by its content (binary trace, JSON Lines). 0 and
 * *out; -EINVAL when it is neither or empty, else -errno from opening. On failure a sentence for
 * the user is put into message. The caller frees with (*out)->free(*out). */
int rls_event_source_open(const char *path, struct rls_event_source **out, char *message,
			  size_t message_bytes);

/* Called now and then with the progress of the opening, for a form that must be read in whole
 * (JSON Lines, which may come in any order). share is from 0 to 1, negative where not known. */
struct rls_event_source_watch {
	void (*report)(struct rls_event_source_watch *watch, double share, uint64_t events);
};

/* The same, with somebody watching; NULL: nobody. */
int rls_event_source_open_watched(const char *path, struct rls_event_source_watch *watch,
				  struct rls_event_source **out, char *message,
				  size_t message_bytes);

/* The part of a source that was given, from 0 to 1; negative where that is not known. */
static inline double rls_event_source_share(const struct rls_event_source *source)
{
	return source->share ? source->share(source) : -1;
}

/* Orders two events as a source must deliver them: <0, 0, >0. */
int rls_event_compare(const struct rls_event *a, const struct rls_event *b);

#endif
