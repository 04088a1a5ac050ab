#include "analysis/trace/trace_writer.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/private_file.h"
#include "analysis/base/varint.h"
#include "analysis/event/event_fields.h"
#include "analysis/event/event_store.h"
#include "analysis/trace/trace_format.h"
#include "analysis/trace/trace_record.h"

#define CHUNK_EVENTS 32768 /* about 64 KiB of records in a common recording */
#define CHUNK_STORE_BYTES (2u << 20) /* bounds a chunk of large events */
#define STRINGS_BYTES (256u * 1024) /* a STRINGS chunk is closed after so many */
#define DEFLATE_LEVEL 1

struct rls_trace_writer {
	int fd;
	int error; /* the first failure to write; it stays */
	const struct rls_string_pool *strings;
	rls_string_id next_string; /* ids below are in the file */
	struct rls_event_store *pending;
	struct rls_record_encoder *encoder;
	z_stream deflater;
	bool deflater_ready;
	uint8_t *out; /* a chunk as written: header, payload */
	size_t out_room;
	uint64_t file_bytes;
	uint32_t chunks;
	enum rls_trace_end end;
};

void rls_trace_writer_abandon(struct rls_trace_writer *writer)
{
	if (!writer)
		return;
	if (writer->deflater_ready)
		deflateEnd(&writer->deflater);
	rls_record_encoder_free(writer->encoder);
	rls_event_store_free(writer->pending);
	free(writer->out);
	close(writer->fd);
	free(writer);
}

/* Writes all of it at the end of the file, or nothing: a part of a chunk is taken back. */
static int trace_writer_append(struct rls_trace_writer *writer, const void *bytes, size_t count)
{
	for (size_t done = 0; done < count;) {
		ssize_t wrote = pwrite(writer->fd, (const char *)bytes + done, count - done,
				       (off_t)(writer->file_bytes + done));

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0) {
			writer->error = wrote ? -errno : -EIO;
			/* Should this fail too, readers find a broken chunk and stop there. */
			if (ftruncate(writer->fd, (off_t)writer->file_bytes))
				return writer->error;
			return writer->error;
		}
		done += wrote;
	}
	writer->file_bytes += count;
	return 0;
}

static int write_header(struct rls_trace_writer *writer)
{
	struct rls_trace_header header = {.version = RLS_TRACE_VERSION,
					  .header_bytes = sizeof(header)};

	memcpy(header.magic, RLS_TRACE_MAGIC, sizeof(header.magic));
	header.crc = crc32(0, (const Bytef *)&header, offsetof(struct rls_trace_header, crc));
	return trace_writer_append(writer, &header, sizeof(header));
}

int rls_trace_writer_open_fd(int fd, const struct rls_string_pool *strings,
			     struct rls_trace_writer **out)
{
	struct rls_trace_writer *writer = calloc(1, sizeof(*writer));
	int error;

	if (!writer) {
		close(fd);
		return -ENOMEM;
	}
	writer->fd = fd;
	writer->strings = strings;
	writer->next_string = 1;
	writer->pending = rls_event_store_new();
	writer->encoder = rls_record_encoder_new();
	writer->deflater_ready = deflateInit(&writer->deflater, DEFLATE_LEVEL) == Z_OK;
	error = writer->pending && writer->encoder && writer->deflater_ready ? write_header(writer)
									     : -ENOMEM;
	if (error) {
		rls_trace_writer_abandon(writer);
		return error;
	}
	*out = writer;
	return 0;
}

int rls_trace_writer_open(const char *path, const struct rls_string_pool *strings,
			  struct rls_trace_writer **out)
{
	int fd;
	int error = rls_private_file_create(path, &fd);

	return error ? error : rls_trace_writer_open_fd(fd, strings, out);
}

static int reserve_out(struct rls_trace_writer *writer, size_t bytes)
{
	if (bytes <= writer->out_room)
		return 0;

	uint8_t *out = realloc(writer->out, bytes);

	if (!out)
		return -ENOMEM;
	writer->out = out;
	writer->out_room = bytes;
	return 0;
}

/* Puts the payload behind the header in writer->out, deflated if that makes it smaller. */
static int pack_payload(struct rls_trace_writer *writer, struct rls_chunk_header *header,
			const uint8_t *payload)
{
	z_stream *stream = &writer->deflater;
	size_t room = deflateBound(stream, header->raw_bytes);

	if (room < header->raw_bytes)
		room = header->raw_bytes;
	if (reserve_out(writer, sizeof(*header) + room))
		return -ENOMEM;
	deflateReset(stream);
	stream->next_in = (Bytef *)payload;
	stream->avail_in = header->raw_bytes;
	stream->next_out = writer->out + sizeof(*header);
	stream->avail_out = room;
	if (deflate(stream, Z_FINISH) == Z_STREAM_END && stream->total_out < header->raw_bytes) {
		header->flags |= RLS_CHUNK_DEFLATED;
		header->stored_bytes = stream->total_out;
	} else {
		memcpy(writer->out + sizeof(*header), payload, header->raw_bytes);
		header->stored_bytes = header->raw_bytes;
	}
	return 0;
}

/* Completes the header, which comes with type, raw_bytes, records and times, and appends
 * the chunk. */
static int write_chunk(struct rls_trace_writer *writer, struct rls_chunk_header *header,
		       const uint8_t *payload)
{
	int error = pack_payload(writer, header, payload);

	if (error)
		return writer->error = error;
	header->magic = RLS_CHUNK_MAGIC;
	header->number = writer->chunks;
	header->payload_crc = crc32(0, writer->out + sizeof(*header), header->stored_bytes);
	header->crc = crc32(0, (const Bytef *)header, offsetof(struct rls_chunk_header, crc));
	memcpy(writer->out, header, sizeof(*header));
	error = trace_writer_append(writer, writer->out, sizeof(*header) + header->stored_bytes);
	if (!error)
		writer->chunks++;
	return error;
}

/* One STRINGS chunk with as many of the new strings as it takes. */
static int write_some_strings(struct rls_trace_writer *writer)
{
	uint32_t count = rls_string_pool_count(writer->strings);
	_cleanup_free_ uint8_t *payload =
		malloc(STRINGS_BYTES + RLS_STRING_BYTES_MAX + 2 * RLS_VARINT_BYTES_MAX);
	rls_string_id id = writer->next_string;

	if (!payload)
		return writer->error = -ENOMEM;

	uint8_t *to = rls_varint_put(payload, id);

	for (; id < count && to - payload < STRINGS_BYTES; id++) {
		const char *text = rls_string_pool_get(writer->strings, id);
		size_t bytes = strlen(text);

		to = rls_varint_put(to, bytes);
		memcpy(to, text, bytes);
		to += bytes;
	}

	struct rls_chunk_header header = {.type = RLS_CHUNK_STRINGS,
					  .raw_bytes = to - payload,
					  .records = id - writer->next_string};
	int error = write_chunk(writer, &header, payload);

	if (!error)
		writer->next_string = id;
	return error;
}

static int write_events(struct rls_trace_writer *writer)
{
	const struct rls_event_store *pending = writer->pending;
	size_t count = rls_event_store_count(pending);
	struct rls_event first, last;
	const uint8_t *payload;
	size_t bytes;
	int error = rls_event_store_sort(writer->pending, writer->strings);

	if (!error)
		error = rls_record_encode(writer->encoder, pending, &payload, &bytes);
	if (error)
		return writer->error = error;
	rls_event_store_get(pending, 0, &first);
	rls_event_store_get(pending, count - 1, &last);

	struct rls_chunk_header header = {.type = RLS_CHUNK_EVENTS,
					  .raw_bytes = bytes,
					  .records = count,
					  .min_time_ns = first.time_ns,
					  .max_time_ns = last.time_ns};

	return write_chunk(writer, &header, payload);
}

int rls_trace_writer_flush(struct rls_trace_writer *writer)
{
	while (!writer->error && writer->next_string < rls_string_pool_count(writer->strings))
		write_some_strings(writer);
	if (!writer->error && rls_event_store_count(writer->pending))
		write_events(writer);
	rls_event_store_clear(writer->pending);
	return writer->error;
}

static bool strings_known(const struct rls_trace_writer *writer, const struct rls_event *event)
{
	uint32_t count = rls_string_pool_count(writer->strings);

	for (const struct rls_event_field *field = rls_event_layout(event->kind)->fields;
	     field->name; field++) {
		const void *value = (const char *)event + field->offset;

		if ((field->type == RLS_FIELD_STRING || field->type == RLS_FIELD_JSON) &&
		    *(const rls_string_id *)value >= count)
			return false;
	}
	for (unsigned int i = 0; event->kind == RLS_EVENT_OPERATION && i < event->operation.depth;
	     i++)
		if (event->operation.stack[i] >= count)
			return false;
	return true;
}

int rls_trace_writer_add(struct rls_trace_writer *writer, const struct rls_event *event)
{
	if (writer->error)
		return writer->error;
	if (rls_event_check(event) || !strings_known(writer, event))
		return -EINVAL;

	int error = rls_event_store_add(writer->pending, event);

	if (error)
		return error;
	if (event->kind == RLS_EVENT_END) {
		if (!event->end.complete)
			writer->end = RLS_TRACE_END_INCOMPLETE;
		else if (writer->end == RLS_TRACE_END_NONE)
			writer->end = RLS_TRACE_END_COMPLETE;
	}
	if (rls_event_store_count(writer->pending) < CHUNK_EVENTS &&
	    rls_event_store_bytes(writer->pending) < CHUNK_STORE_BYTES)
		return 0;
	return rls_trace_writer_flush(writer);
}

/* After a failure no end mark is tried: what it promises, that all is there, is not so. */
static int write_end(struct rls_trace_writer *writer)
{
	uint8_t end = writer->end;
	struct rls_chunk_header header = {.type = RLS_CHUNK_END, .raw_bytes = sizeof(end)};

	return write_chunk(writer, &header, &end);
}

int rls_trace_writer_close(struct rls_trace_writer *writer)
{
	int error = rls_trace_writer_flush(writer);

	if (!error)
		error = write_end(writer);
	rls_trace_writer_abandon(writer);
	return error;
}
