#include "analysis/trace/trace_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/event/event_order.h"
#include "analysis/trace/trace_chunks.h"
#include "analysis/trace/trace_damage.h"
#include "analysis/trace/trace_record.h"

#define NOTES_MAX 4
/* Overlapping chunks of a real recording take a few MiB. A file made to fill memory by
 * small chunks that inflate hugely and all overlap is read up to here. */
#define LOADED_BYTES_MAX (256ull << 20)

/* A loaded chunk, at its next event. */
struct cursor {
	struct rls_event head;
	struct rls_record_decoder decoder;
	uint8_t *payload;
	uint32_t raw_bytes;
};

struct rls_trace_reader {
	struct rls_event_source source; /* first: the source is the reader */
	struct rls_string_pool *strings;
	struct rls_trace_chunks chunks;
	size_t next_chunk; /* chunks before it are or were loaded */
	struct cursor **heap; /* the earliest head is [0] */
	size_t heap_count, heap_room;
	uint64_t loaded_bytes;
	struct rls_event notes[NOTES_MAX]; /* warnings of our own, due at the trace's end */
	unsigned int note_count, notes_given;
};

static void free_cursor(struct rls_trace_reader *reader, struct cursor *cursor)
{
	reader->loaded_bytes -= cursor->raw_bytes;
	rls_record_decoder_clear(&cursor->decoder);
	free(cursor->payload);
	free(cursor);
}

static void free_reader(struct rls_event_source *source)
{
	struct rls_trace_reader *reader = (struct rls_trace_reader *)source;

	while (reader->heap_count)
		free_cursor(reader, reader->heap[--reader->heap_count]);
	free(reader->heap);
	close(reader->chunks.fd);
	rls_trace_chunks_clear(&reader->chunks);
	rls_string_pool_free(reader->strings);
	free(reader);
}

static int trace_reader_note(struct rls_trace_reader *reader, uint64_t time_ns, const char *text)
{
	struct rls_event *event = &reader->notes[reader->note_count];
	int error;

	reader->source.damaged = true;
	if (reader->note_count == NOTES_MAX)
		return 0;
	*event = (struct rls_event){.kind = RLS_EVENT_WARNING, .time_ns = time_ns};
	error = rls_string_pool_add(reader->strings, text, strlen(text), &event->warning.text);
	if (!error)
		reader->note_count++;
	return error;
}

static bool earlier(const struct rls_trace_reader *reader, size_t a, size_t b)
{
	return rls_event_order(&reader->heap[a]->head, &reader->heap[b]->head, reader->strings) < 0;
}

static void swap(struct rls_trace_reader *reader, size_t a, size_t b)
{
	struct cursor *cursor = reader->heap[a];

	reader->heap[a] = reader->heap[b];
	reader->heap[b] = cursor;
}

static void sink(struct rls_trace_reader *reader, size_t at)
{
	for (;;) {
		size_t first = at, left = at * 2 + 1, right = left + 1;

		if (left < reader->heap_count && earlier(reader, left, first))
			first = left;
		if (right < reader->heap_count && earlier(reader, right, first))
			first = right;
		if (first == at)
			return;
		swap(reader, at, first);
		at = first;
	}
}

static int trace_reader_push(struct rls_trace_reader *reader, struct cursor *cursor)
{
	size_t at = reader->heap_count;

	if (rls_grow(&reader->heap, &reader->heap_room, reader->heap_count))
		return -ENOMEM;
	reader->heap_count++;
	reader->heap[at] = cursor;
	for (; at && earlier(reader, at, (at - 1) / 2); at = (at - 1) / 2)
		swap(reader, at, (at - 1) / 2);
	return 0;
}

static struct rls_record_strings strings_of(const struct rls_trace_reader *reader)
{
	return (struct rls_record_strings){reader->chunks.string_ids, reader->chunks.string_count};
}

static void trace_reader_start(struct cursor *cursor, const struct rls_chunk_header *header)
{
	rls_record_decoder_clear(&cursor->decoder);
	rls_record_decoder_init(&cursor->decoder, cursor->payload, header->raw_bytes,
				header->min_time_ns);
}

/* Decodes a chunk to its end. What does not decode, is out of order, outside the header's
 * times or not as many as it says is -EBADMSG. Decoding twice costs less than being caught
 * by a bad record halfway through an instant that was given already. */
static int validate(struct rls_trace_reader *reader, struct cursor *cursor,
		    const struct rls_chunk_header *header)
{
	const struct rls_record_strings strings = strings_of(reader);
	struct rls_event events[2];
	uint32_t count = 0;
	int got;

	trace_reader_start(cursor, header);
	while ((got = rls_record_decode(&cursor->decoder, &strings, &events[count % 2])) > 0) {
		const struct rls_event *event = &events[count % 2], *before = &events[!(count % 2)];

		if (event->time_ns > header->max_time_ns)
			return -EBADMSG;
		if (count && event->time_ns == before->time_ns &&
		    rls_event_order(before, event, reader->strings) > 0)
			return -EBADMSG;
		count++;
	}
	if (got < 0)
		return got;
	return count && count == header->records ? 0 : -EBADMSG;
}

/* Steps to the chunk's next event: 1, 0 when there is none, -ENOMEM. */
static int trace_reader_advance(struct rls_trace_reader *reader, struct cursor *cursor)
{
	const struct rls_record_strings strings = strings_of(reader);

	return rls_record_decode(&cursor->decoder, &strings, &cursor->head);
}

static int trace_reader_load(struct rls_trace_reader *reader, const struct rls_chunk *chunk)
{
	const struct rls_chunk_header *header = &chunk->header;
	struct cursor *cursor;
	int error;

	if (header->raw_bytes > LOADED_BYTES_MAX - reader->loaded_bytes)
		return -EBADMSG;
	cursor = calloc(1, sizeof(*cursor));
	if (!cursor)
		return -ENOMEM;
	cursor->raw_bytes = header->raw_bytes;
	reader->loaded_bytes += header->raw_bytes;
	error = rls_trace_chunks_load(&reader->chunks, chunk, &cursor->payload);
	if (!error)
		error = validate(reader, cursor, header);
	if (!error) {
		trace_reader_start(cursor, header);
		error = trace_reader_advance(reader, cursor) > 0 ? trace_reader_push(reader, cursor)
								 : -ENOMEM;
	}
	if (error)
		free_cursor(reader, cursor);
	return error;
}

/* Ends the trace at an instant from which on something is missing. */
static int break_off(struct rls_trace_reader *reader, uint64_t time_ns)
{
	while (reader->heap_count)
		free_cursor(reader, reader->heap[--reader->heap_count]);
	reader->next_chunk = reader->chunks.count;
	for (unsigned int i = 0; i < reader->note_count; i++)
		reader->notes[i].time_ns = time_ns;
	return trace_reader_note(reader, time_ns,
				 "the trace is damaged: a part of it cannot be read, and figures "
				 "cover only the time "
				 "before that part");
}

/* Loads what may hold the next event. */
static int load_due(struct rls_trace_reader *reader)
{
	while (reader->next_chunk < reader->chunks.count) {
		const struct rls_chunk *chunk = &reader->chunks.events[reader->next_chunk];
		int error;

		if (reader->heap_count && chunk->header.min_time_ns > reader->heap[0]->head.time_ns)
			return 0;
		reader->next_chunk++;
		error = trace_reader_load(reader, chunk);
		if (error == -EBADMSG)
			error = break_off(reader, chunk->header.min_time_ns);
		if (error)
			return error;
	}
	return 0;
}

static int give_note(struct rls_trace_reader *reader, struct rls_event *out)
{
	if (reader->notes_given == reader->note_count)
		return 0;
	*out = reader->notes[reader->notes_given++];
	return 1;
}

static int next_event(struct rls_event_source *source, struct rls_event *out)
{
	struct rls_trace_reader *reader = (struct rls_trace_reader *)source;
	int error = load_due(reader);

	if (error)
		return error;
	if (!reader->heap_count)
		return give_note(reader, out);

	struct cursor *first = reader->heap[0];

	if (reader->notes_given < reader->note_count &&
	    rls_event_order(&reader->notes[reader->notes_given], &first->head, reader->strings) < 0)
		return give_note(reader, out);
	*out = first->head;
	/* The recorder's word for the whole does not hold for the part that is left. */
	if (out->kind == RLS_EVENT_END && reader->source.damaged)
		out->end.complete = false;

	int got = trace_reader_advance(reader, first);

	if (!got) {
		reader->heap[0] = reader->heap[--reader->heap_count];
		free_cursor(reader, first);
	}
	if (got < 0)
		return got;
	if (reader->heap_count > 1)
		sink(reader, 0);
	return 1;
}

/* By chunks, which are much alike. */
static double share_given(const struct rls_event_source *source)
{
	const struct rls_trace_reader *reader = (const struct rls_trace_reader *)source;

	return reader->chunks.count ? (double)reader->next_chunk / (double)reader->chunks.count : 1;
}

/* What the chain of chunks alone tells to be missing. */
static int note_damage(struct rls_trace_reader *reader)
{
	const struct rls_trace_chunks *chunks = &reader->chunks;
	uint64_t end_ns = 0;
	char text[256];
	int error = 0;

	for (size_t i = 0; i < chunks->count; i++)
		if (chunks->events[i].header.max_time_ns > end_ns)
			end_ns = chunks->events[i].header.max_time_ns;
	/* In the order of their texts, as all else that ties. */
	if (chunks->end == RLS_TRACE_END_INCOMPLETE)
		error = trace_reader_note(reader, end_ns, RLS_DAMAGE_INCOMPLETE);
	if (!error && chunks->broken) {
		snprintf(text, sizeof(text),
			 "the trace is damaged or cut at byte %" PRIu64 " of %" PRIu64
			 ": figures cover only what was written before it",
			 chunks->broken_at, chunks->file_bytes);
		error = trace_reader_note(reader, end_ns, text);
	} else if (!error && chunks->end == RLS_TRACE_END_NONE) {
		error = trace_reader_note(reader, end_ns, RLS_DAMAGE_NO_END);
	}
	return error;
}

static const char *refusal(int error)
{
	if (error == -EINVAL)
		return "it is no trace, or its first bytes are damaged";
	if (error == -EPROTONOSUPPORT)
		return "it was written by another version of rlscope-bpf, in a form this one "
		       "cannot read";
	return strerror(-error);
}

int rls_trace_reader_open(int fd, struct rls_event_source **out, char *message,
			  size_t message_bytes)
{
	struct rls_trace_reader *reader = calloc(1, sizeof(*reader));
	int error = -ENOMEM;

	if (!reader) {
		close(fd);
	} else {
		reader->source.next = next_event;
		reader->source.share = share_given;
		reader->source.free = free_reader;
		reader->chunks.fd = fd;
		reader->source.strings = reader->strings = rls_string_pool_new();
		if (reader->strings)
			error = rls_trace_chunks_scan(&reader->chunks, fd, reader->strings);
		if (!error)
			error = note_damage(reader);
		if (error)
			free_reader(&reader->source);
	}
	if (error) {
		snprintf(message, message_bytes, "%s", refusal(error));
		return error;
	}
	*out = &reader->source;
	return 0;
}
