/* Writes the seeds the corpus began with into a folder: trace-N, plain-N (the same with no
 * payload deflated, so that a fuzzer's changes reach the records) and text-N. By hand:
 *
 *     make_seeds FOLDER
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "analysis/trace/trace_format.h"
#include "analysis/trace/trace_reader.h"
#include "event_maker.h"

#define SEEDS 6

static void write_file(const char *folder, const char *name, unsigned int number, const void *bytes,
		       size_t count)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s-%u", folder, name, number);
	file = fopen(path, "we");
	if (!file || fwrite(bytes, 1, count, file) != count || fclose(file))
		abort();
}

/* Copies a trace, payloads inflated; the fuzz target puts the checksums right. */
static size_t inflate_trace(const unsigned char *from, size_t count, unsigned char *to)
{
	size_t at = sizeof(struct rls_trace_header), used = at;
	struct rls_chunk_header header;

	memcpy(to, from, at);
	for (; at < count; at += header.stored_bytes) {
		unsigned char *payload = to + used + sizeof(header);
		uLongf raw;

		memcpy(&header, from + at, sizeof(header));
		at += sizeof(header);
		raw = header.raw_bytes;
		if (!(header.flags & RLS_CHUNK_DEFLATED))
			memcpy(payload, from + at, raw);
		else if (uncompress(payload, &raw, from + at, header.stored_bytes) != Z_OK)
			abort();

		struct rls_chunk_header plain = header;

		plain.flags = 0;
		plain.stored_bytes = header.raw_bytes;
		memcpy(to + used, &plain, sizeof(plain));
		used += sizeof(plain) + plain.stored_bytes;
	}
	return used;
}

static void write_seed(const char *folder, unsigned int number)
{
	struct event_maker maker = {
		.random = 40 + number, .span_ns = 500, .strings = rls_string_pool_new()};
	struct rls_event events[8 * SEEDS];
	static unsigned char plain[1 << 20];
	struct rls_event_source *source;
	size_t count = 8 * number, bytes_count;
	char message[200];

	for (size_t i = 0; i < count; i++)
		events[i] = event_maker_event(&maker);

	int fd = write_trace(events, count, maker.strings, number % 2 ? 5 : 0);
	unsigned char *bytes = file_bytes(fd, &bytes_count);

	write_file(folder, "trace", number, bytes, bytes_count);
	write_file(folder, "plain", number, plain, inflate_trace(bytes, bytes_count, plain));
	if (rls_trace_reader_open(fd, &source, message, sizeof(message)))
		abort();

	char *text = render(source);

	write_file(folder, "text", number, text, strlen(text));
	source->free(source);
	free(text);
	free(bytes);
	rls_string_pool_free(maker.strings);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	for (unsigned int number = 0; number < SEEDS; number++)
		write_seed(argv[1], number);
	return 0;
}
