/* Trace reader: trace file (trace_format.h) → events in time order.
 *
 * Opening reads chunk headers and strings only. Chunks are then loaded when the time of
 * their first event comes and merged, so that memory is bounded by the chunks that overlap
 * at one instant, not by the trace's length.
 *
 * Nothing in the file is trusted. Where the chain of chunks breaks, or a chunk's content is
 * not what its checksum says, reading ends: at the last chunk before the break, at the
 * first instant of the bad chunk. Events after a hole would be taken for the state they
 * are not, so none are given.
 */
#ifndef RLS_TRACE_READER_H
#define RLS_TRACE_READER_H

#include "analysis/event/event_source.h"

/* fd is a regular file, or anything else that pread works on; the source's from here on, also on
 * failure. 0 and *out; -EINVAL for no trace file, -EPROTONOSUPPORT for one of another
 * version, other -errno, with a sentence in message that names no file. */
int rls_trace_reader_open(int fd, struct rls_event_source **out, char *message,
			  size_t message_bytes);

#endif
