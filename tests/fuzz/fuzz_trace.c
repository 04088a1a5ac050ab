/* The trace reader on any bytes. Checksums would turn nearly every changed input away at the
 * door, so each input is read twice: as it is, and with checksums and chunk numbers put right.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "analysis/trace/trace_format.h"
#include "analysis/trace/trace_reader.h"

static void read_bytes(const uint8_t *data, size_t size)
{
	struct rls_event_source *source;
	char message[200] = "";

	if (!rls_trace_reader_open(fuzz_file(data, size), &source, message, sizeof(message)))
		fuzz_drain(source);
	else if (!*message)
		abort();
}

static void repair_header(uint8_t *data)
{
	struct rls_trace_header header;

	memcpy(&header, data, sizeof(header));
	memcpy(header.magic, RLS_TRACE_MAGIC, sizeof(header.magic));
	header.version = RLS_TRACE_VERSION;
	header.header_bytes = sizeof(header);
	header.crc = crc32(0, (const Bytef *)&header, offsetof(struct rls_trace_header, crc));
	memcpy(data, &header, sizeof(header));
}

static void repair(uint8_t *data, size_t size)
{
	size_t at = sizeof(struct rls_trace_header);
	struct rls_chunk_header header;

	repair_header(data);
	for (uint32_t number = 0; size - at >= sizeof(header); number++) {
		size_t left = size - at - sizeof(header);

		memcpy(&header, data + at, sizeof(header));
		header.magic = RLS_CHUNK_MAGIC;
		header.number = number;
		if (header.stored_bytes > left)
			header.stored_bytes = left;
		if (!(header.flags & RLS_CHUNK_DEFLATED))
			header.raw_bytes = header.stored_bytes;
		header.payload_crc = crc32(0, data + at + sizeof(header), header.stored_bytes);
		header.crc =
			crc32(0, (const Bytef *)&header, offsetof(struct rls_chunk_header, crc));
		memcpy(data + at, &header, sizeof(header));
		at += sizeof(header) + header.stored_bytes;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *repaired;

	read_bytes(data, size);
	if (size < sizeof(struct rls_trace_header))
		return 0;
	repaired = malloc(size);
	if (!repaired)
		return 0;
	memcpy(repaired, data, size);
	repair(repaired, size);
	read_bytes(repaired, size);
	free(repaired);
	return 0;
}
