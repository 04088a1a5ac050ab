/* A protobuf message written field by field: what is long or endless never stands in memory.
 *
 * The top-level message of a file is only its fields one after the other; each is built with
 * protobuf-c, packed and written.
 */
#ifndef RLS_PROTO_STREAM_H
#define RLS_PROTO_STREAM_H

#include <stdio.h>

#include <protobuf-c/protobuf-c.h>

/* Zeroed: ready. */
struct rls_proto_stream {
	FILE *out; /* whose failures the caller notices */
	uint8_t *bytes;
	size_t capacity;
};

void rls_proto_stream_free(struct rls_proto_stream *stream);

/* Writes a message as field `number` of the file's. 0, or -ENOMEM. */
int rls_proto_stream_put(struct rls_proto_stream *stream, unsigned int number,
			 const ProtobufCMessage *message);

/* Writes the fields of a message as the file's own. 0, or -ENOMEM. */
int rls_proto_stream_fields(struct rls_proto_stream *stream, const ProtobufCMessage *message);

#endif
