/* Read progress: one line on stderr that is overwritten while a long trace is read, and only on a
 * terminal.
 *
 *     reading a trace: 43 %, 4.1 million events/s, 12 s left
 */
#ifndef RLS_READ_PROGRESS_H
#define RLS_READ_PROGRESS_H

#include <stdint.h>

#include "analysis/event/event_source.h"

/* As rls_event_source_open, and shows how far it is, while opening and while the events are
 * read. Where there is nobody to show it to, that is all it does. */
int rls_read_progress_open(const char *path, struct rls_event_source **out, char *message,
			   size_t message_bytes);

/* A source that gives the same events and shows how far it is; it owns `source`, which is
 * read through it from now on. Where there is nobody to show it to, or no memory, it is
 * `source` itself. */
struct rls_event_source *rls_read_progress(struct rls_event_source *source);

#define RLS_READ_PROGRESS_BYTES 96

/* The line: share is the part read, from 0 to 1, negative where that is not known. */
const char *rls_read_progress_line(char buffer[static RLS_READ_PROGRESS_BYTES], double share,
				   uint64_t events, uint64_t passed_ns);

#endif
