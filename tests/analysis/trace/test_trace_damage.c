/* A trace cut at any byte, or with any byte changed, is refused with a sentence, or read in
 * part with a warning and without any event that was not in it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "analysis/trace/trace_damage.h"
#include "analysis/trace/trace_format.h"
#include "analysis/trace/trace_reader.h"
#include "event_maker.h"

#define EVENTS 60
#define FLUSH_EVERY 12

struct trace {
	unsigned char *bytes;
	size_t count;
	char *text; /* what it reads as while whole */
};

static int set_up(void **state)
{
	static struct rls_event events[EVENTS];
	struct trace *trace = calloc(1, sizeof(*trace));
	struct event_maker maker = {.random = 4, .span_ns = 900, .strings = rls_string_pool_new()};
	struct rls_event_source *source;
	char message[200];

	for (size_t i = 0; i < EVENTS; i++) {
		do
			events[i] = event_maker_event(&maker);
		while (events[i].kind == RLS_EVENT_WARNING); /* these are ours to look for */
	}

	int fd = write_trace(events, EVENTS, maker.strings, FLUSH_EVERY);

	trace->bytes = file_bytes(fd, &trace->count);
	if (rls_trace_reader_open(fd, &source, message, sizeof(message)))
		return -1;
	trace->text = render(source);
	source->free(source);
	rls_string_pool_free(maker.strings);
	*state = trace;
	return 0;
}

static int tear_down(void **state)
{
	struct trace *trace = *state;

	free(trace->bytes);
	free(trace->text);
	free(trace);
	return 0;
}

/* Every line of part, warnings and the end mark aside, is in whole, in the same order. */
static void assert_part(char *part, const char *whole)
{
	unsigned int warnings = 0;
	char *rest = part;

	for (char *line; (line = strsep(&rest, "\n")) && *line;) {
		if (strstr(line, "{\"event\":\"warning\"") == line) {
			warnings++;
			continue;
		}
		if (strstr(line, "{\"event\":\"end\"") == line)
			continue;
		whole = strstr(whole, line);
		assert_non_null(whole);
		whole += strlen(line);
	}
	assert_true(warnings > 0);
}

/* How far reading got: refused, or read in part. Anything else fails the test. */
static bool read_damaged(const unsigned char *bytes, size_t count, const char *whole)
{
	struct rls_event_source *source;
	char message[200] = "";
	int error =
		rls_trace_reader_open(memory_file(bytes, count), &source, message, sizeof(message));

	if (error) {
		assert_true(error == -EINVAL || error == -EPROTONOSUPPORT);
		assert_true(strlen(message) > 10);
		return false;
	}

	char *text = render(source);

	assert_true(source->damaged);
	assert_part(text, whole);
	source->free(source);
	free(text);
	return true;
}

static void cut_at_any_byte(void **state)
{
	const struct trace *trace = *state;

	for (size_t count = 0; count < trace->count; count++) {
		bool read = read_damaged(trace->bytes, count, trace->text);

		assert_int_equal(read, count >= sizeof(struct rls_trace_header));
	}
}

static void any_byte_changed(void **state)
{
	const struct trace *trace = *state;

	for (size_t at = 0; at < trace->count; at++) {
		unsigned char was = trace->bytes[at];
		/* Every bit, and a few whole bytes. */
		unsigned char values[] = {was ^ 1,   was ^ 2,  was ^ 4,  was ^ 8,
					  was ^ 16,  was ^ 32, was ^ 64, was ^ 128,
					  was ^ 255, was + 1,  was - 1};

		for (size_t i = 0; i < sizeof(values); i++) {
			trace->bytes[at] = values[i];
			assert_int_equal(read_damaged(trace->bytes, trace->count, trace->text),
					 at >= sizeof(struct rls_trace_header));
		}
		trace->bytes[at] = was;
	}
}

static struct rls_chunk_header header_at(const unsigned char *bytes)
{
	struct rls_chunk_header header;

	memcpy(&header, bytes, sizeof(header)); /* chunks lie unaligned */
	return header;
}

/* Puts the header before its payload, with checksums that fit. */
static void seal(unsigned char *bytes, struct rls_chunk_header header)
{
	header.payload_crc = crc32(0, bytes + sizeof(header), header.stored_bytes);
	header.crc = crc32(0, (const Bytef *)&header, offsetof(struct rls_chunk_header, crc));
	memcpy(bytes, &header, sizeof(header));
}

static void a_chunk_taken_out(void **state)
{
	const struct trace *trace = *state;
	size_t offset = sizeof(struct rls_trace_header);
	unsigned int chunks = 0;

	while (offset < trace->count) {
		size_t next = offset + sizeof(struct rls_chunk_header) +
			      header_at(trace->bytes + offset).stored_bytes;
		unsigned char *bytes = malloc(trace->count);

		memcpy(bytes, trace->bytes, offset);
		memcpy(bytes + offset, trace->bytes + next, trace->count - next);
		assert_true(read_damaged(bytes, trace->count - (next - offset), trace->text));
		free(bytes);
		offset = next;
		chunks++;
	}
	assert_true(chunks > EVENTS / FLUSH_EVERY);
}

static void read_hostile(const unsigned char *bytes, size_t count)
{
	struct rls_event_source *source;
	char message[200];

	assert_int_equal(
		rls_trace_reader_open(memory_file(bytes, count), &source, message, sizeof(message)),
		0);

	char *text = render(source);

	assert_null(strstr(text, "OUT OF ORDER"));
	assert_null(strstr(text, "INVALID"));
	assert_null(strstr(text, "FAILED"));
	source->free(source);
	free(text);
}

/* Good checksums, bad content: what a hostile writer makes. Any outcome without a crash or
 * disorder will do. */
static void hostile_content_with_good_checksums(void **state)
{
	const struct trace *trace = *state;
	unsigned char *bytes = malloc(trace->count);

	for (size_t offset = sizeof(struct rls_trace_header), next; offset < trace->count;
	     offset = next) {
		uint32_t stored = header_at(trace->bytes + offset).stored_bytes;

		next = offset + sizeof(struct rls_chunk_header) + stored;
		for (size_t at = offset; at < next; at++) {
			memcpy(bytes, trace->bytes, trace->count);
			bytes[at] += 1 + at % 5;
			if (header_at(bytes + offset).stored_bytes == stored)
				seal(bytes + offset, header_at(bytes + offset));
			read_hostile(bytes, trace->count);
		}
	}
	free(bytes);
}

static void unknown_chunks_are_skipped(void **state)
{
	const struct trace *trace = *state;
	const size_t end_bytes = sizeof(struct rls_chunk_header) + 1,
		     before = trace->count - end_bytes;
	struct rls_chunk_header end = header_at(trace->bytes + before);
	struct rls_chunk_header added = {.magic = RLS_CHUNK_MAGIC,
					 .type = 200,
					 .number = end.number++,
					 .stored_bytes = 3,
					 .raw_bytes = 3};
	const size_t added_bytes = sizeof(added) + 3;
	unsigned char *bytes = malloc(trace->count + added_bytes);
	struct rls_event_source *source;
	char message[200];

	assert_int_equal(end.type, RLS_CHUNK_END);
	memcpy(bytes, trace->bytes, before);
	memcpy(bytes + before + sizeof(added), "new", 3);
	seal(bytes + before, added);
	memcpy(bytes + before + added_bytes, trace->bytes + before, end_bytes);
	seal(bytes + before + added_bytes, end);
	assert_int_equal(rls_trace_reader_open(memory_file(bytes, trace->count + added_bytes),
					       &source, message, sizeof(message)),
			 0);

	char *text = render(source);

	assert_false(source->damaged);
	assert_string_equal(text, trace->text);
	source->free(source);
	free(text);
	free(bytes);
}

static void bytes_after_the_end_are_reported(void **state)
{
	const struct trace *trace = *state;
	unsigned char *bytes = malloc(trace->count + 1);

	memcpy(bytes, trace->bytes, trace->count);
	bytes[trace->count] = 0;
	assert_true(read_damaged(bytes, trace->count + 1, trace->text));
	free(bytes);
}

static struct rls_trace_header header_of_version(const struct trace *trace, uint32_t version)
{
	struct rls_trace_header header;

	memcpy(&header, trace->bytes, sizeof(header));
	header.version = version;
	header.crc = crc32(0, (const Bytef *)&header, offsetof(struct rls_trace_header, crc));
	return header;
}

static void another_version_is_refused(void **state)
{
	static const uint32_t versions[] = {RLS_TRACE_VERSION + 1, RLS_TRACE_VERSION_OLDEST - 1};
	struct rls_event_source *source;
	char message[200];

	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		struct rls_trace_header header = header_of_version(*state, versions[i]);

		assert_int_equal(rls_trace_reader_open(memory_file(&header, sizeof(header)),
						       &source, message, sizeof(message)),
				 -EPROTONOSUPPORT);
		assert_non_null(strstr(message, "version"));
	}
}

static void an_older_version_is_read(void **state)
{
	const struct trace *trace = *state;
	struct rls_trace_header header = header_of_version(trace, RLS_TRACE_VERSION_OLDEST);
	unsigned char *bytes = malloc(trace->count);
	struct rls_event_source *source;
	char message[200], *text;

	assert_non_null(bytes);
	memcpy(bytes, trace->bytes, trace->count);
	memcpy(bytes, &header, sizeof(header));
	assert_int_equal(rls_trace_reader_open(memory_file(bytes, trace->count), &source, message,
					       sizeof(message)),
			 0);
	text = render(source);
	assert_false(source->damaged);
	assert_string_equal(text, trace->text);
	source->free(source);
	free(text);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_at_any_byte),
		cmocka_unit_test(any_byte_changed),
		cmocka_unit_test(a_chunk_taken_out),
		cmocka_unit_test(hostile_content_with_good_checksums),
		cmocka_unit_test(unknown_chunks_are_skipped),
		cmocka_unit_test(bytes_after_the_end_are_reported),
		cmocka_unit_test(another_version_is_refused),
		cmocka_unit_test(an_older_version_is_read),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
