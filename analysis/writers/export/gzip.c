#include "analysis/writers/export/gzip.h"

#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* zlib's way to say: with gzip's header, not its own */
#define MEMORY_LEVEL 8
#define BLOCK_BYTES 16384

struct gzip {
	z_stream stream;
	FILE *output;
};

static void compress_more(struct gzip *gzip, int flush)
{
	unsigned char block[BLOCK_BYTES];

	do {
		gzip->stream.next_out = block;
		gzip->stream.avail_out = sizeof(block);
		deflate(&gzip->stream, flush);
		fwrite(block, 1, sizeof(block) - gzip->stream.avail_out, gzip->output);
	} while (!gzip->stream.avail_out);
}

static ssize_t write_gzip(void *cookie, const char *bytes, size_t count)
{
	struct gzip *gzip = cookie;

	gzip->stream.next_in = (unsigned char *)bytes;
	gzip->stream.avail_in = (unsigned int)count;
	compress_more(gzip, Z_NO_FLUSH);
	return (ssize_t)count;
}

static int close_gzip(void *cookie)
{
	struct gzip *gzip = cookie;

	compress_more(gzip, Z_FINISH);
	deflateEnd(&gzip->stream);
	free(gzip);
	return 0;
}

FILE *rls_gzip_open(FILE *output)
{
	const cookie_io_functions_t functions = {.write = write_gzip, .close = close_gzip};
	struct gzip *gzip = calloc(1, sizeof(*gzip));
	FILE *stream;

	if (!gzip)
		return NULL;
	gzip->output = output;
	if (deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
			 MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(gzip);
		return NULL;
	}
	stream = fopencookie(gzip, "w", functions);
	if (!stream) {
		deflateEnd(&gzip->stream);
		free(gzip);
	}
	return stream;
}
