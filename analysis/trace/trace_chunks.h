/* The chunks of a trace file: found, checked, loaded. The reader's lower half.
 */
#ifndef RLS_TRACE_CHUNKS_H
#define RLS_TRACE_CHUNKS_H

#include <stdbool.h>
#include <sys/types.h>
#include <zlib.h>

#include "analysis/base/string_pool.h"
#include "analysis/trace/trace_format.h"
#include "analysis/trace/trace_record.h"

struct rls_chunk {
	struct rls_chunk_header header;
	off_t offset; /* of its payload */
};

struct rls_trace_chunks {
	int fd;
	uint64_t file_bytes;
	z_stream inflater;
	bool inflater_ready;

	struct rls_chunk *events; /* EVENTS chunks, by min_time_ns */
	size_t count, room;
	rls_string_id *string_ids; /* by the file's id */
	uint32_t string_count;
	size_t string_room;

	bool ended; /* an END chunk was found, with this in it: */
	enum rls_trace_end end;
	bool broken; /* the chain of chunks breaks at this byte: */
	uint64_t broken_at;
};

/* Checks the file's header and walks the chain of chunks. Strings go to the pool. A broken
 * chain is no error. -EINVAL for no trace, -EPROTONOSUPPORT for another version, -errno.
 * Clear it in any case. */
int rls_trace_chunks_scan(struct rls_trace_chunks *chunks, int fd, struct rls_string_pool *strings);
void rls_trace_chunks_clear(struct rls_trace_chunks *chunks);

/* The payload of a chunk, raw_bytes long, checked and inflated; the caller frees it.
 * -EBADMSG when it is not what was written, -ENOMEM, -errno. */
int rls_trace_chunks_load(struct rls_trace_chunks *chunks, const struct rls_chunk *chunk,
			  uint8_t **payload);

#endif
