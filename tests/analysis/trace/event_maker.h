/* Made-up events for tests: any kind, hostile strings, ties in time; and ways to store and
 * compare them.
 */
#ifndef RLS_TESTS_EVENT_MAKER_H
#define RLS_TESTS_EVENT_MAKER_H

#include "analysis/event/event_source.h"

struct event_maker {
	uint64_t random;
	struct rls_string_pool *strings;
	uint64_t span_ns; /* times are drawn below it; small gives many ties */
};

uint32_t event_maker_draw(struct event_maker *maker, uint32_t below);

/* Any event that passes rls_event_check, of any kind but END. */
struct rls_event event_maker_event(struct event_maker *maker);

/* Writes the events and the end mark to a new memory file and returns its descriptor.
 * A flush happens after every flush_every events; 0: never. */
int write_trace(const struct rls_event *events, size_t count, const struct rls_string_pool *strings,
		size_t flush_every);

/* Reads the rest of a source as text, which compares equal when events do, checking on the
 * way that they come in order. The caller frees it. */
char *render(struct rls_event_source *source);

/* A new memory file with these bytes, at its beginning. */
int memory_file(const void *bytes, size_t count);

/* All bytes of a file; the caller frees them. */
unsigned char *file_bytes(int fd, size_t *count);

#endif
