#include "cupti_bridge/decode.h"

#include <errno.h>
#include <string.h>

#include "cupti_bridge/calls.h"

#define END_OF_BUFFER 12 /* CUPTI_ERROR_MAX_LIMIT_REACHED */

/* Offset 0 is the kind's own, so that as a field's it means: has none. */
struct layout {
	uint8_t kind; /* ours */
	uint8_t bytes; /* that must be there */
	uint8_t start, end, device, context, stream, correlation;
	uint8_t subkind; /* one byte */
	uint8_t value; /* eight */
	uint8_t name, graph_node, graph, tid;
};

static const struct layout kernel = {
	.kind = RLS_CUPTI_KERNEL,
	.bytes = 160,
	.start = 16,
	.end = 24,
	.device = 40,
	.context = 44,
	.stream = 48,
	.correlation = 92,
	.name = 104,
	.graph_node = 144,
	.graph = 156,
};
static const struct layout copy = {
	.kind = RLS_CUPTI_MEMCPY,
	.bytes = 76,
	.start = 16,
	.end = 24,
	.device = 32,
	.context = 36,
	.stream = 40,
	.correlation = 44,
	.subkind = 4,
	.value = 8,
	.graph_node = 64,
	.graph = 72,
};
static const struct layout peer_copy = {
	.kind = RLS_CUPTI_MEMCPY,
	.bytes = 84,
	.start = 16,
	.end = 24,
	.device = 32,
	.context = 36,
	.stream = 40,
	.correlation = 60,
	.subkind = 4,
	.value = 8,
	.graph_node = 72,
	.graph = 80,
};
static const struct layout set = {
	.kind = RLS_CUPTI_MEMSET,
	.bytes = 76,
	.start = 16,
	.end = 24,
	.device = 32,
	.context = 36,
	.stream = 40,
	.correlation = 44,
	.value = 8,
	.graph_node = 64,
	.graph = 72,
};
static const struct layout synchronization = {
	.kind = RLS_CUPTI_SYNC,
	.bytes = 36,
	.start = 8,
	.end = 16,
	.context = 28,
	.stream = 32,
	.correlation = 24,
	.subkind = 4,
};
static const struct layout graph = {
	.kind = RLS_CUPTI_GRAPH,
	.bytes = 40,
	.start = 8,
	.end = 16,
	.device = 24,
	.context = 32,
	.stream = 36,
	.correlation = 4,
	.graph = 28,
};
static const struct layout overhead = {
	.kind = RLS_CUPTI_OVERHEAD,
	.bytes = 40,
	.start = 24,
	.end = 32,
};
static const struct layout call = {
	.kind = RLS_CUPTI_API,
	.bytes = 40,
	.start = 8,
	.end = 16,
	.correlation = 32,
	.tid = 28,
};

static const struct layout *layout_of(uint32_t kind)
{
	switch (kind) {
	case RLS_ACTIVITY_KERNEL:
	case RLS_ACTIVITY_CONCURRENT_KERNEL:
		return &kernel;
	case RLS_ACTIVITY_MEMCPY:
		return &copy;
	case RLS_ACTIVITY_MEMCPY_PEER:
		return &peer_copy;
	case RLS_ACTIVITY_MEMSET:
		return &set;
	case RLS_ACTIVITY_SYNCHRONIZATION:
		return &synchronization;
	case RLS_ACTIVITY_GRAPH_TRACE:
		return &graph;
	case RLS_ACTIVITY_OVERHEAD:
		return &overhead;
	case RLS_ACTIVITY_DRIVER:
	case RLS_ACTIVITY_RUNTIME:
		return &call;
	}
	return NULL;
}

static uint32_t get32(const uint8_t *bytes, size_t offset)
{
	uint32_t value = 0;

	if (offset)
		memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static uint64_t get64(const uint8_t *bytes, size_t offset)
{
	uint64_t value = 0;

	if (offset)
		memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static uint32_t kind_of(const uint8_t *bytes)
{
	uint32_t kind;

	memcpy(&kind, bytes, sizeof(kind));
	return kind;
}

/* CUPTI's own kinds are numbered in the upper half, a compiler's 1 in the lower. It has a
 * thread where the object kind (at 8) says so. */
static void decode_overhead(const uint8_t *bytes, struct rls_cupti_record *out)
{
	out->value = get32(bytes, 4);
	out->subkind = out->value >> 16;
	out->tid = get32(bytes, 8) == 2 ? get32(bytes, 16) : 0;
}

static bool decode_call(const uint8_t *bytes, struct rls_cupti_record *out)
{
	out->subkind =
		kind_of(bytes) == RLS_ACTIVITY_RUNTIME ? RLS_CUPTI_RUNTIME : RLS_CUPTI_DRIVER;
	out->value = get32(bytes, 4);
	return rls_call_launches(out->subkind, out->value);
}

enum rls_decoded rls_record_decode(const uint8_t *bytes, size_t length,
				   struct rls_cupti_record *out, const char **name)
{
	const struct layout *layout = length >= 4 ? layout_of(kind_of(bytes)) : NULL;

	if (length < 4)
		return RLS_DECODE_SHORT;
	if (!layout)
		return RLS_DECODE_UNKNOWN;
	if (length < layout->bytes)
		return RLS_DECODE_SHORT;
	*out = (struct rls_cupti_record){
		.kind = layout->kind,
		.subkind = layout->subkind ? bytes[layout->subkind] : 0,
		.correlation = get32(bytes, layout->correlation),
		.start_ns = get64(bytes, layout->start),
		.end_ns = get64(bytes, layout->end),
		.device = get32(bytes, layout->device),
		.context = get32(bytes, layout->context),
		.stream = get32(bytes, layout->stream),
		.tid = get32(bytes, layout->tid),
		.value = get64(bytes, layout->value),
		.graph_node = get64(bytes, layout->graph_node),
		.graph = get32(bytes, layout->graph),
	};
	*name = (const char *)(uintptr_t)get64(bytes, layout->name);
	if (layout == &overhead)
		decode_overhead(bytes, out);
	if (layout == &call && !decode_call(bytes, out))
		return RLS_DECODE_SKIPPED;
	return RLS_DECODED;
}

bool rls_record_is_possible(const struct rls_cupti_record *record, uint64_t earliest_ns,
			    uint64_t latest_ns)
{
	return record->start_ns && record->start_ns >= earliest_ns &&
	       record->end_ns >= record->start_ns && record->end_ns <= latest_ns;
}

bool rls_record_is_work(const struct rls_cupti_record *record)
{
	return record->kind == RLS_CUPTI_KERNEL || record->kind == RLS_CUPTI_MEMCPY ||
	       record->kind == RLS_CUPTI_MEMSET || record->kind == RLS_CUPTI_GRAPH;
}

/* Asks CUPTI for the record after `ahead`: it must lie behind that, and inside. */
static void read_ahead(struct rls_walk *walk)
{
	uint8_t *last = walk->ahead, *next = last;

	walk->result = walk->next(walk->buffer, walk->valid_bytes, &next);
	if (!walk->result && next >= walk->buffer && next < walk->buffer + walk->valid_bytes &&
	    (!last || next > last)) {
		walk->ahead = next;
		return;
	}
	walk->has_ended = true;
	walk->error = walk->result == END_OF_BUFFER ? 0 : -EBADMSG;
}

/* A record's length is the way to the next one, so that one is asked for before it is given
 * out; the last one's is the way to the end. */
int rls_walk_step(struct rls_walk *walk, const uint8_t **record, size_t *length)
{
	if (!walk->has_begun) {
		walk->has_begun = true;
		read_ahead(walk);
	}
	if (walk->has_ended)
		return walk->error;
	*record = walk->ahead;
	read_ahead(walk);
	*length = (walk->has_ended ? walk->buffer + walk->valid_bytes : walk->ahead) - *record;
	return 1;
}
