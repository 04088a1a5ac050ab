#include "analysis/writers/export/proto_stream.h"

#include <errno.h>
#include <stdlib.h>

#define LENGTH_DELIMITED 2

void rls_proto_stream_free(struct rls_proto_stream *stream)
{
	free(stream->bytes);
	*stream = (struct rls_proto_stream){0};
}

static void put_number(FILE *out, size_t number)
{
	for (; number >= 0x80; number >>= 7)
		putc_unlocked((int)(number & 0x7f) | 0x80, out);
	putc_unlocked((int)number, out);
}

/* The message's packed bytes. 0 and *count, or -ENOMEM. */
static int pack(struct rls_proto_stream *stream, const ProtobufCMessage *message, size_t *count)
{
	size_t wanted = protobuf_c_message_get_packed_size(message);

	if (wanted > stream->capacity) {
		uint8_t *bytes = realloc(stream->bytes, 2 * wanted);

		if (!bytes)
			return -ENOMEM;
		stream->bytes = bytes;
		stream->capacity = 2 * wanted;
	}
	*count = protobuf_c_message_pack(message, stream->bytes);
	return 0;
}

int rls_proto_stream_put(struct rls_proto_stream *stream, unsigned int number,
			 const ProtobufCMessage *message)
{
	size_t count;
	int err = pack(stream, message, &count);

	if (err)
		return err;
	put_number(stream->out, number << 3 | LENGTH_DELIMITED);
	put_number(stream->out, count);
	fwrite_unlocked(stream->bytes, 1, count, stream->out);
	return 0;
}

int rls_proto_stream_fields(struct rls_proto_stream *stream, const ProtobufCMessage *message)
{
	size_t count;
	int err = pack(stream, message, &count);

	if (!err)
		fwrite_unlocked(stream->bytes, 1, count, stream->out);
	return err;
}
