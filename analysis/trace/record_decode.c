#include "analysis/base/grow.h"
#include "analysis/trace/trace_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/varint.h"
#include "analysis/event/event_fields.h"
#include "analysis/trace/trace_format.h"

void rls_record_decoder_init(struct rls_record_decoder *decoder, const uint8_t *bytes, size_t count,
			     uint64_t min_time_ns)
{
	*decoder = (struct rls_record_decoder){
		.at = bytes, .end = bytes + count, .time_ns = min_time_ns};
}

void rls_record_decoder_clear(struct rls_record_decoder *decoder)
{
	free(decoder->threads);
	*decoder = (struct rls_record_decoder){0};
}

static bool record_decode_get(struct rls_record_decoder *decoder, uint64_t *out)
{
	return rls_varint_get(&decoder->at, decoder->end, out);
}

static bool get_u32(struct rls_record_decoder *decoder, uint32_t *out)
{
	uint64_t value;

	if (!record_decode_get(decoder, &value) || value > UINT32_MAX)
		return false;
	*out = value;
	return true;
}

static bool get_string(struct rls_record_decoder *decoder, const struct rls_record_strings *strings,
		       rls_string_id *out)
{
	uint64_t id;

	if (!record_decode_get(decoder, &id) || id >= strings->count)
		return false;
	*out = strings->ids[id];
	return true;
}

/* A new thread: its pid and tid follow. */
static int get_new_thread(struct rls_record_decoder *decoder)
{
	struct rls_record_thread thread = {0};

	if (!get_u32(decoder, &thread.pid) || !get_u32(decoder, &thread.tid))
		return -EBADMSG;
	if (rls_grow(&decoder->threads, &decoder->thread_room, decoder->thread_count))
		return -ENOMEM;
	decoder->threads[decoder->thread_count++] = thread;
	return 0;
}

static int get_thread(struct rls_record_decoder *decoder, unsigned int bits)
{
	uint64_t number = bits - 1;

	if (bits == RLS_THREAD_SAME)
		number = decoder->thread;
	else if (bits == RLS_THREAD_LONG && !record_decode_get(decoder, &number))
		return -EBADMSG;
	if (number > decoder->thread_count ||
	    (bits == RLS_THREAD_SAME && number == decoder->thread_count))
		return -EBADMSG;
	decoder->thread = number;
	return number == decoder->thread_count ? get_new_thread(decoder) : 0;
}

static int get_head(struct rls_record_decoder *decoder, unsigned int bits, struct rls_event *out)
{
	uint64_t passed_ns;
	int error = get_thread(decoder, bits);

	if (error)
		return error;
	if (!record_decode_get(decoder, &passed_ns) ||
	    passed_ns > RLS_EVENT_NUMBER_MAX - decoder->time_ns)
		return -EBADMSG;
	decoder->time_ns += passed_ns;
	decoder->passed_ns = passed_ns;
	out->time_ns = decoder->time_ns;
	out->pid = decoder->threads[decoder->thread].pid;
	out->tid = decoder->threads[decoder->thread].tid;
	return 0;
}

static bool get_stack(struct rls_record_decoder *decoder, const struct rls_record_strings *strings,
		      struct rls_event *out)
{
	uint64_t number, depth, continued;

	if (!record_decode_get(decoder, &number))
		return false;
	depth = number & ((1u << RLS_DEPTH_BITS) - 1);
	continued = number >> RLS_DEPTH_BITS;
	if (depth > RLS_OPERATION_DEPTH_MAX || continued > depth)
		return false;
	out->operation.depth = (uint16_t)depth;
	out->operation.continued = (uint16_t)continued;
	for (uint64_t i = 0; i < depth; i++)
		if (!get_string(decoder, strings, &out->operation.stack[i]))
			return false;
	return true;
}

static bool get_double(struct rls_record_decoder *decoder, void *out)
{
	if ((size_t)(decoder->end - decoder->at) < sizeof(double))
		return false;
	memcpy(out, decoder->at, sizeof(double));
	decoder->at += sizeof(double);
	return true;
}

static bool get_bool(struct rls_record_decoder *decoder, bool *out)
{
	uint64_t value;

	if (!record_decode_get(decoder, &value) || value > 1)
		return false;
	*out = value;
	return true;
}

static bool get_field(struct rls_record_decoder *decoder, const struct rls_record_strings *strings,
		      const struct rls_event_field *field, struct rls_event *out)
{
	void *value = (char *)out + field->offset;

	switch (field->type) {
	case RLS_FIELD_U32:
	case RLS_FIELD_CATEGORY:
	case RLS_FIELD_GPU_KIND:
	case RLS_FIELD_SAMPLE_KIND:
	case RLS_FIELD_MEMORY_SOURCE:
	case RLS_FIELD_MEMORY_METHOD:
	case RLS_FIELD_COPY_KIND:
	case RLS_FIELD_LAYER_PASS:
		return get_u32(decoder, value);
	case RLS_FIELD_STRING:
	case RLS_FIELD_JSON:
		return get_string(decoder, strings, value);
	case RLS_FIELD_U64:
		return record_decode_get(decoder, value);
	case RLS_FIELD_BOOL:
		return get_bool(decoder, value);
	case RLS_FIELD_DOUBLE:
		return get_double(decoder, value);
	case RLS_FIELD_STACK:
		return get_stack(decoder, strings, out);
	case RLS_FIELD_CONTINUED:
		return true;
	case RLS_FIELD_END:
		break;
	}
	return false;
}

/* code: how the cost is written. */
static int get_hits(struct rls_record_decoder *decoder, unsigned int code, struct rls_event *out)
{
	struct rls_record_thread *thread = &decoder->threads[decoder->thread];
	uint64_t count, surprise = 0;

	if (!record_decode_get(decoder, &count) ||
	    (!rls_code_leaves_cost_out(code) && !record_decode_get(decoder, &surprise)))
		return -EBADMSG;
	out->kind = RLS_EVENT_HITS;
	out->hits.count = count;
	out->hits.cost_ns = code == RLS_CODE_CATEGORY_HITS_ALL
				    ? decoder->passed_ns
				    : count * thread->unit_cost_ns + rls_unzigzag(surprise);
	if (count && code != RLS_CODE_CATEGORY_HITS_ALL)
		thread->unit_cost_ns = out->hits.cost_ns / count;
	return rls_event_check(out) ? -EBADMSG : 1;
}

static int get_category_hits(struct rls_record_decoder *decoder, unsigned int code,
			     struct rls_event *out)
{
	uint32_t category;

	if (!get_u32(decoder, &category) || category >= RLS_CATEGORY_MAX)
		return -EBADMSG;
	out->kind = RLS_EVENT_CATEGORY;
	out->category.category = category;
	decoder->hits.time_ns = out->time_ns;
	decoder->hits.pid = out->pid;
	decoder->hits.tid = out->tid;

	int got = get_hits(decoder, code, &decoder->hits);

	decoder->hits_pending = got > 0;
	return got;
}

static int get_fields(struct rls_record_decoder *decoder, const struct rls_record_strings *strings,
		      unsigned int kind, struct rls_event *out)
{
	const struct rls_event_layout *layout = rls_event_layout(kind);

	if (!layout)
		return -EBADMSG;
	out->kind = kind;
	for (const struct rls_event_field *field = layout->fields; field->name; field++)
		if (!get_field(decoder, strings, field, out))
			return -EBADMSG;
	return rls_event_check(out) ? -EBADMSG : 1;
}

/* A kind whose number is no code. */
static int get_further(struct rls_record_decoder *decoder, const struct rls_record_strings *strings,
		       struct rls_event *out)
{
	uint32_t kind;

	if (!get_u32(decoder, &kind) || kind < RLS_CODE_FURTHER)
		return -EBADMSG;
	return get_fields(decoder, strings, kind, out);
}

int rls_record_decode(struct rls_record_decoder *decoder, const struct rls_record_strings *strings,
		      struct rls_event *out)
{
	if (decoder->hits_pending) {
		decoder->hits_pending = false;
		*out = decoder->hits;
		return 1;
	}
	if (decoder->at == decoder->end)
		return 0;

	unsigned int tag = *decoder->at++;
	unsigned int code = tag & ((1u << RLS_CODE_BITS) - 1);
	int error = get_head(decoder, tag >> RLS_CODE_BITS, out);

	if (error)
		return error;
	switch (code) {
	case RLS_EVENT_HITS:
		return get_hits(decoder, code, out);
	case RLS_CODE_CATEGORY_HITS:
	case RLS_CODE_CATEGORY_HITS_UNIT:
	case RLS_CODE_CATEGORY_HITS_ALL:
		return get_category_hits(decoder, code, out);
	case RLS_CODE_FURTHER:
		return get_further(decoder, strings, out);
	default:
		return get_fields(decoder, strings, code, out);
	}
}
