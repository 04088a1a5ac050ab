/* The trace file, byte by byte. Little-endian throughout.
 *
 *     rls_trace_header                       once
 *     { rls_chunk_header  payload }          as often as wanted, any order of times
 *     { rls_chunk_header of type END }       when the recorder closed the file
 *
 * Every byte is covered by a crc32 (zlib's polynomial): a header by its own last field, a
 * payload by its chunk's header. A chunk is written with one write and stands by itself
 * but for strings: it may use ids defined by STRINGS chunks before it in the file. So a
 * file cut anywhere is good up to its last whole chunk.
 *
 * A payload, after inflating when RLS_CHUNK_DEFLATED is set:
 *
 * STRINGS   varint first id, then per string varint length, bytes. Ids are dense over the
 *           whole file; id 0 is "" and never written.
 * EVENTS    records in the order of rls_event_order, times as differences, the first from
 *           the header's min_time_ns. A record:
 *             tag byte: low 5 bits code, high 3 bits thread
 *             thread: 0 that of the record before; 1..6 thread number 0..5 of this chunk;
 *                     7 varint thread number. A number equal to the count of threads so
 *                     far is a new one: varint pid, varint tid follow.
 *             varint time difference, ns
 *             the kind's fields in the order of event_fields.c: numbers, strings, enums as
 *             varints, figures as 8 bytes, a stack as varint depth + 128 × continued, and
 *             that many strings.
 *           The code is the event's kind, but for these, which carry most of a recording:
 *             HITS: count as varint, then zigzag(cost - count × unit) as varint, unit being
 *             the cost per hit of that thread's HITS before, 0 in a chunk's first;
 *             RLS_CODE_CATEGORY_HITS: a CATEGORY and a HITS of the same thread and instant
 *             RLS_CODE_CATEGORY_HITS_UNIT: the same, the cost being as predicted, left out
 *             RLS_CODE_CATEGORY_HITS_ALL: the same, the cost being all the time since the
 *             record before, left out; it is no unit
 *             RLS_CODE_FURTHER: any kind from that number on, as varint, and then its fields
 * END       one byte, enum rls_trace_end.
 *
 * Chunk types a reader does not know are skipped. Whatever changes the meaning of a type
 * it knows raises RLS_TRACE_VERSION, and older readers refuse the file.
 */
#ifndef RLS_TRACE_FORMAT_H
#define RLS_TRACE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RLS_TRACE_MAGIC "\x89RLSTRC\n" /* not text, and damaged by a text-mode copy */
#define RLS_TRACE_MAGIC_BYTES 8
#define RLS_TRACE_VERSION 6
/* That can be read: 2 has no RLS_CODE_CATEGORY_HITS_ALL, 3 no operations that are continued, 4 no
 * RLS_CODE_FURTHER and no kinds beyond, 5 no layers. */
#define RLS_TRACE_VERSION_OLDEST 2
#define RLS_CHUNK_MAGIC 0x4b484352u /* "RCHK" */

/* Largest payload, inflated or not. A writer's chunk is closed long before. */
#define RLS_CHUNK_BYTES_MAX (4u << 20)

enum rls_chunk_type {
	RLS_CHUNK_STRINGS = 1,
	RLS_CHUNK_EVENTS = 2,
	RLS_CHUNK_END = 3,
};

enum rls_chunk_flag {
	RLS_CHUNK_DEFLATED = 1 << 0,
};

/* What the END events in the file said; none is as bad as incomplete. */
enum rls_trace_end {
	RLS_TRACE_END_NONE = 0,
	RLS_TRACE_END_COMPLETE = 1,
	RLS_TRACE_END_INCOMPLETE = 2,
};

#define RLS_CODE_BITS 5
#define RLS_DEPTH_BITS 7
#define RLS_CODE_FURTHER 28
#define RLS_CODE_CATEGORY_HITS_ALL 29
#define RLS_CODE_CATEGORY_HITS 30
#define RLS_CODE_CATEGORY_HITS_UNIT 31
#define RLS_THREAD_SAME 0
#define RLS_THREAD_SHORT_MAX 6
#define RLS_THREAD_LONG 7

/* What hits cost follows from what came before. */
static inline bool rls_code_leaves_cost_out(unsigned int code)
{
	return code == RLS_CODE_CATEGORY_HITS_UNIT || code == RLS_CODE_CATEGORY_HITS_ALL;
}

struct rls_trace_header {
	uint8_t magic[RLS_TRACE_MAGIC_BYTES];
	uint32_t version;
	uint32_t header_bytes; /* where the first chunk begins */
	uint32_t reserved[3];
	uint32_t crc; /* of the bytes before it */
};

struct rls_chunk_header {
	uint32_t magic;
	uint16_t type;
	uint16_t flags;
	uint32_t number; /* 0, 1, 2, ... in the file */
	uint32_t stored_bytes; /* of payload, as it follows */
	uint32_t raw_bytes; /* of payload, inflated */
	uint32_t records; /* EVENTS: events; STRINGS: strings */
	uint64_t min_time_ns; /* EVENTS: of the first event */
	uint64_t max_time_ns; /* EVENTS: of the last */
	uint32_t payload_crc; /* as stored */
	uint32_t crc; /* of the bytes before it */
};

_Static_assert(sizeof(struct rls_trace_header) == 32, "trace header");
_Static_assert(offsetof(struct rls_trace_header, crc) == 28, "trace header crc");
_Static_assert(sizeof(struct rls_chunk_header) == 48, "chunk header");
_Static_assert(offsetof(struct rls_chunk_header, min_time_ns) == 24, "chunk times");
_Static_assert(offsetof(struct rls_chunk_header, crc) == 44, "chunk header crc");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "headers are stored as they lie in memory");

#endif
