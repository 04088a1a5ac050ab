/* Event log: a sink that keeps what it is given as text, one line an event.
 *
 *     100 7/8 category backend         time, pid/tid, kind, payload
 *     110 7/8 operation a>b            outermost first; "-" when there is none
 */
#ifndef RLS_TEST_EVENT_LOG_H
#define RLS_TEST_EVENT_LOG_H

#include <stddef.h>

#include "userspace/record/events/translate.h"

#define EVENT_LOG_BYTES 65536
#define EVENT_LOG_STRINGS 256

/* Big: make it static. Clear it before use. */
struct event_log {
	char text[EVENT_LOG_BYTES];
	size_t length;
	char strings[EVENT_LOG_STRINGS][RLS_WIRE_NAME_BYTES + 1];
	rls_string_id string_count;
	size_t events;
	int fail_after; /* events until add fails with -ENOSPC; 0: never */
	bool quiet; /* check the events, keep no text */
};

void event_log_clear(struct event_log *log);
/* Forgets the text, keeps the strings. */
void event_log_empty(struct event_log *log);
struct rls_event_sink event_log_sink(struct event_log *log);
/* A line of the test's own, as from a watcher. */
void event_log_note(struct event_log *log, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Compares the text with expected, then empties it. */
#define assert_log(log, expected)                                                                  \
	do {                                                                                       \
		assert_string_equal((log)->text, expected);                                        \
		event_log_empty(log);                                                              \
	} while (0)

#endif
