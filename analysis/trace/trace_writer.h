/* Trace writer: events → trace file (trace_format.h).
 *
 * Events are gathered, sorted and written a chunk at a time: when a chunk is full and at
 * every flush. A file whose writer dies is good up to its last chunk, so a recorder that
 * flushes every second loses a second at most. Events may come in any order, also across
 * chunks; near order makes reading cheap.
 *
 * Strings are ids of the caller's pool, which grows as it likes meanwhile.
 * One thread at a time, the pool included.
 */
#ifndef RLS_TRACE_WRITER_H
#define RLS_TRACE_WRITER_H

#include <stdint.h>

#include "analysis/base/string_pool.h"
#include "analysis/event/event.h"

struct rls_trace_writer;

/* Creates the file (private_file.h says how, and its errors). strings stays the caller's
 * and must outlive the writer. 0 and *out, or -errno. */
int rls_trace_writer_open(const char *path, const struct rls_string_pool *strings,
			  struct rls_trace_writer **out);

/* The same on an open, empty, regular file; fd is the writer's from here on, also on failure. */
int rls_trace_writer_open_fd(int fd, const struct rls_string_pool *strings,
			     struct rls_trace_writer **out);

/* 0; -EINVAL for an event that fails rls_event_check or has a string id the pool does not
 * know (it is not taken, the writer goes on); -ENOSPC and other -errno from writing, which
 * stay: what was written before is a valid file, nothing more can be added. */
int rls_trace_writer_add(struct rls_trace_writer *writer, const struct rls_event *event);

/* Writes what is pending. Errors as for add. */
int rls_trace_writer_flush(struct rls_trace_writer *writer);

/* Flushes, writes the end mark and frees the writer in any case. Without an RLS_EVENT_END
 * added before, readers will call the trace incomplete. 0 or the first error there was. */
int rls_trace_writer_close(struct rls_trace_writer *writer);

/* Frees it with no end mark, pending events lost: as if the program had died. */
void rls_trace_writer_abandon(struct rls_trace_writer *writer);

#endif
