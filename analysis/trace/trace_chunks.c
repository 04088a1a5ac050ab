#include "analysis/trace/trace_chunks.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/base/varint.h"
#include "analysis/event/event_fields.h"

void rls_trace_chunks_clear(struct rls_trace_chunks *chunks)
{
	if (chunks->inflater_ready)
		inflateEnd(&chunks->inflater);
	free(chunks->events);
	free(chunks->string_ids);
	*chunks = (struct rls_trace_chunks){.fd = -1};
}

/* All of it, or -EBADMSG when the file ends first. */
static int read_at(int fd, void *to, size_t count, uint64_t offset)
{
	for (size_t done = 0; done < count;) {
		ssize_t got = pread(fd, (char *)to + done, count - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return -EBADMSG;
		done += got;
	}
	return 0;
}

static int inflate_payload(struct rls_trace_chunks *chunks, const uint8_t *stored,
			   const struct rls_chunk_header *header, uint8_t *raw)
{
	z_stream *stream = &chunks->inflater;

	if (!chunks->inflater_ready) {
		if (inflateInit(stream) != Z_OK)
			return -ENOMEM;
		chunks->inflater_ready = true;
	}
	inflateReset(stream);
	stream->next_in = (Bytef *)stored;
	stream->avail_in = header->stored_bytes;
	stream->next_out = raw;
	stream->avail_out = header->raw_bytes;

	int status = inflate(stream, Z_FINISH);

	if (status == Z_MEM_ERROR)
		return -ENOMEM;
	return status == Z_STREAM_END && !stream->avail_out && !stream->avail_in ? 0 : -EBADMSG;
}

int rls_trace_chunks_load(struct rls_trace_chunks *chunks, const struct rls_chunk *chunk,
			  uint8_t **payload)
{
	const struct rls_chunk_header *header = &chunk->header;
	/* One byte more, as malloc(0) may give NULL. */
	_cleanup_free_ uint8_t *stored = malloc((size_t)header->stored_bytes + 1);
	_cleanup_free_ uint8_t *raw = NULL;
	int error;

	if (!stored)
		return -ENOMEM;
	error = read_at(chunks->fd, stored, header->stored_bytes, chunk->offset);
	if (error)
		return error;
	if (crc32(0, stored, header->stored_bytes) != header->payload_crc)
		return -EBADMSG;
	if (!(header->flags & RLS_CHUNK_DEFLATED)) {
		*payload = rls_take(stored);
		return 0;
	}
	raw = malloc((size_t)header->raw_bytes + 1);
	if (!raw)
		return -ENOMEM;
	error = inflate_payload(chunks, stored, header, raw);
	if (error)
		return error;
	*payload = rls_take(raw);
	return 0;
}

static int check_trace_header(struct rls_trace_chunks *chunks)
{
	struct rls_trace_header header;
	int error = read_at(chunks->fd, &header, sizeof(header), 0);

	if (error)
		return error == -EBADMSG ? -EINVAL : error;
	if (memcmp(header.magic, RLS_TRACE_MAGIC, sizeof(header.magic)) ||
	    header.crc != crc32(0, (const Bytef *)&header, offsetof(struct rls_trace_header, crc)))
		return -EINVAL;
	if (header.version < RLS_TRACE_VERSION_OLDEST || header.version > RLS_TRACE_VERSION ||
	    header.header_bytes != sizeof(header))
		return -EPROTONOSUPPORT;
	return 0;
}

/* Reads the header of the chunk at offset; its payload is known to lie within the file then. */
static int read_chunk_header(const struct rls_trace_chunks *chunks, uint64_t offset,
			     uint32_t number, struct rls_chunk *out)
{
	struct rls_chunk_header *header = &out->header;
	int error = read_at(chunks->fd, header, sizeof(*header), offset);

	if (error)
		return error;
	if (header->magic != RLS_CHUNK_MAGIC || header->number != number ||
	    header->crc != crc32(0, (const Bytef *)header, offsetof(struct rls_chunk_header, crc)))
		return -EBADMSG;
	if (header->stored_bytes > RLS_CHUNK_BYTES_MAX || header->raw_bytes > RLS_CHUNK_BYTES_MAX ||
	    header->stored_bytes > chunks->file_bytes - offset - sizeof(*header))
		return -EBADMSG;
	if (!(header->flags & RLS_CHUNK_DEFLATED) && header->stored_bytes != header->raw_bytes)
		return -EBADMSG;
	if (header->min_time_ns > header->max_time_ns || header->max_time_ns > RLS_EVENT_NUMBER_MAX)
		return -EBADMSG;
	out->offset = (off_t)(offset + sizeof(*header));
	return 0;
}

static int add_events_chunk(struct rls_trace_chunks *chunks, const struct rls_chunk *chunk)
{
	if (rls_grow(&chunks->events, &chunks->room, chunks->count))
		return -ENOMEM;
	chunks->events[chunks->count++] = *chunk;
	return 0;
}

static int add_string(struct rls_trace_chunks *chunks, struct rls_string_pool *strings,
		      const char *text, size_t bytes)
{
	int error = rls_grow(&chunks->string_ids, &chunks->string_room, chunks->string_count);

	if (!error)
		error = rls_string_pool_add(strings, text, bytes,
					    &chunks->string_ids[chunks->string_count]);
	if (!error)
		chunks->string_count++;
	return error;
}

static int read_strings(struct rls_trace_chunks *chunks, const struct rls_chunk *chunk,
			struct rls_string_pool *strings)
{
	_cleanup_free_ uint8_t *payload = NULL;
	uint64_t first, bytes;
	int error = rls_trace_chunks_load(chunks, chunk, &payload);

	if (error)
		return error;

	const uint8_t *at = payload, *end = payload + chunk->header.raw_bytes;

	if (!rls_varint_get(&at, end, &first) || first != chunks->string_count)
		return -EBADMSG;
	for (uint32_t i = 0; i < chunk->header.records; i++) {
		if (!rls_varint_get(&at, end, &bytes) || bytes > (uint64_t)(end - at))
			return -EBADMSG;
		error = add_string(chunks, strings, (const char *)at, bytes);
		if (error)
			return error;
		at += bytes;
	}
	return at == end ? 0 : -EBADMSG;
}

static int read_end(struct rls_trace_chunks *chunks, const struct rls_chunk *chunk)
{
	_cleanup_free_ uint8_t *payload = NULL;
	int error = rls_trace_chunks_load(chunks, chunk, &payload);

	if (error)
		return error;
	if (chunk->header.raw_bytes != 1 || *payload > RLS_TRACE_END_INCOMPLETE)
		return -EBADMSG;
	chunks->end = *payload;
	chunks->ended = true;
	return 0;
}

static int take_chunk(struct rls_trace_chunks *chunks, const struct rls_chunk *chunk,
		      struct rls_string_pool *strings)
{
	switch (chunk->header.type) {
	case RLS_CHUNK_STRINGS:
		return read_strings(chunks, chunk, strings);
	case RLS_CHUNK_EVENTS:
		return add_events_chunk(chunks, chunk);
	case RLS_CHUNK_END:
		return read_end(chunks, chunk);
	default:
		return 0; /* from a later version: not for us */
	}
}

static int order_chunks(const void *a, const void *b)
{
	const struct rls_chunk_header *left = &((const struct rls_chunk *)a)->header;
	const struct rls_chunk_header *right = &((const struct rls_chunk *)b)->header;

	if (left->min_time_ns != right->min_time_ns)
		return left->min_time_ns < right->min_time_ns ? -1 : 1;
	return (left->number > right->number) - (left->number < right->number);
}

int rls_trace_chunks_scan(struct rls_trace_chunks *chunks, int fd, struct rls_string_pool *strings)
{
	struct stat status;
	uint64_t offset = sizeof(struct rls_trace_header);
	int error;

	*chunks = (struct rls_trace_chunks){.fd = fd};
	if (fstat(fd, &status))
		return -errno;
	chunks->file_bytes = status.st_size;
	error = check_trace_header(chunks);
	if (!error)
		error = add_string(chunks, strings, "", 0);
	for (uint32_t number = 0; !error && offset < chunks->file_bytes && !chunks->ended;
	     number++) {
		struct rls_chunk chunk;

		error = read_chunk_header(chunks, offset, number, &chunk);
		if (!error)
			error = take_chunk(chunks, &chunk, strings);
		if (!error)
			offset = (uint64_t)chunk.offset + chunk.header.stored_bytes;
	}
	/* Also when something follows the end mark: no writer of ours put it there. */
	if (error == -EBADMSG || (!error && offset != chunks->file_bytes)) {
		chunks->broken = true;
		chunks->broken_at = offset;
		error = 0;
	}
	if (chunks->count)
		qsort(chunks->events, chunks->count, sizeof(*chunks->events), order_chunks);
	return error;
}
