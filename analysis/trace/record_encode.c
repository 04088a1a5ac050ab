#include "analysis/trace/trace_record.h"

#include <errno.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/varint.h"
#include "analysis/event/event_fields.h"
#include "analysis/trace/trace_format.h"

#define FIRST_BYTES (128 * 1024)
#define FIRST_THREADS 64
/* No record is longer: tag, thread number, pid, tid, time, and a full stack or two
 * kinds' worth of numbers. */
#define RECORD_BYTES_MAX                                                                           \
	(1 + 5 * RLS_VARINT_BYTES_MAX + (RLS_OPERATION_DEPTH_MAX + 8) * RLS_VARINT_BYTES_MAX)

struct rls_record_encoder {
	uint8_t *bytes, *to, *end;
	uint64_t time_ns;
	struct rls_record_thread *threads;
	uint32_t thread_count, thread_room;
	uint32_t thread; /* of the record before */
	uint32_t *slots; /* open addressing, number + 1 of a thread; twice thread_room */
};

struct rls_record_encoder *rls_record_encoder_new(void)
{
	struct rls_record_encoder *encoder = calloc(1, sizeof(*encoder));

	if (!encoder)
		return NULL;
	encoder->bytes = malloc(FIRST_BYTES);
	encoder->threads = calloc(FIRST_THREADS, sizeof(*encoder->threads));
	encoder->slots = calloc(FIRST_THREADS * 2, sizeof(*encoder->slots));
	if (!encoder->bytes || !encoder->threads || !encoder->slots) {
		rls_record_encoder_free(encoder);
		return NULL;
	}
	encoder->end = encoder->bytes + FIRST_BYTES;
	encoder->thread_room = FIRST_THREADS;
	return encoder;
}

void rls_record_encoder_free(struct rls_record_encoder *encoder)
{
	if (!encoder)
		return;
	free(encoder->bytes);
	free(encoder->threads);
	free(encoder->slots);
	free(encoder);
}

static void record_encode_write(struct rls_record_encoder *encoder, uint64_t value)
{
	encoder->to = rls_varint_put(encoder->to, value);
}

static int reserve_record(struct rls_record_encoder *encoder)
{
	size_t used = encoder->to - encoder->bytes, room = encoder->end - encoder->bytes;

	if (room - used >= RECORD_BYTES_MAX)
		return 0;

	uint8_t *bytes = realloc(encoder->bytes, room * 2);

	if (!bytes)
		return -ENOMEM;
	encoder->bytes = bytes;
	encoder->to = bytes + used;
	encoder->end = bytes + room * 2;
	return 0;
}

static uint32_t first_slot(const struct rls_record_encoder *encoder, uint32_t pid, uint32_t tid)
{
	uint32_t hash = (pid * 0x9e3779b1u) ^ (tid * 0x85ebca6bu);

	return (hash ^ hash >> 15) & (encoder->thread_room * 2 - 1);
}

static void add_slot(struct rls_record_encoder *encoder, uint32_t number)
{
	const struct rls_record_thread *thread = &encoder->threads[number];
	uint32_t mask = encoder->thread_room * 2 - 1;
	uint32_t slot = first_slot(encoder, thread->pid, thread->tid);

	while (encoder->slots[slot])
		slot = (slot + 1) & mask;
	encoder->slots[slot] = number + 1;
}

static int grow_threads(struct rls_record_encoder *encoder)
{
	uint32_t room = encoder->thread_room * 2;
	struct rls_record_thread *threads = reallocarray(encoder->threads, room, sizeof(*threads));

	if (!threads)
		return -ENOMEM;
	encoder->threads = threads;

	uint32_t *slots = calloc((size_t)room * 2, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(encoder->slots);
	encoder->slots = slots;
	encoder->thread_room = room;
	for (uint32_t number = 0; number < encoder->thread_count; number++)
		add_slot(encoder, number);
	return 0;
}

/* The thread's number, thread_count when it is new to this chunk. */
static uint32_t find_thread(const struct rls_record_encoder *encoder, uint32_t pid, uint32_t tid)
{
	uint32_t mask = encoder->thread_room * 2 - 1;

	for (uint32_t slot = first_slot(encoder, pid, tid); encoder->slots[slot];
	     slot = (slot + 1) & mask) {
		uint32_t number = encoder->slots[slot] - 1;

		if (encoder->threads[number].pid == pid && encoder->threads[number].tid == tid)
			return number;
	}
	return encoder->thread_count;
}

/* Writes a record's tag, thread and time; the fields follow, or first a further kind. */
static int put_head(struct rls_record_encoder *encoder, unsigned int code,
		    const struct rls_event *event)
{
	uint32_t number = find_thread(encoder, event->pid, event->tid);
	unsigned int thread_bits = number == encoder->thread && encoder->thread_count
					   ? RLS_THREAD_SAME
				   : number < RLS_THREAD_SHORT_MAX ? number + 1
								   : RLS_THREAD_LONG;

	if (number == encoder->thread_room && grow_threads(encoder))
		return -ENOMEM;
	*encoder->to++ = code | thread_bits << RLS_CODE_BITS;
	if (thread_bits == RLS_THREAD_LONG)
		record_encode_write(encoder, number);
	if (number == encoder->thread_count) {
		record_encode_write(encoder, event->pid);
		record_encode_write(encoder, event->tid);
		encoder->threads[number] =
			(struct rls_record_thread){.pid = event->pid, .tid = event->tid};
		add_slot(encoder, encoder->thread_count++);
	}
	encoder->thread = number;
	record_encode_write(encoder, event->time_ns - encoder->time_ns);
	encoder->time_ns = event->time_ns;
	return 0;
}

static void put_field(struct rls_record_encoder *encoder, const struct rls_event *event,
		      const struct rls_event_field *field)
{
	const void *value = (const char *)event + field->offset;

	switch (field->type) {
	case RLS_FIELD_U32:
	case RLS_FIELD_STRING:
	case RLS_FIELD_JSON:
	case RLS_FIELD_CATEGORY:
	case RLS_FIELD_GPU_KIND:
	case RLS_FIELD_SAMPLE_KIND:
	case RLS_FIELD_MEMORY_SOURCE:
	case RLS_FIELD_MEMORY_METHOD:
	case RLS_FIELD_COPY_KIND:
	case RLS_FIELD_LAYER_PASS:
		record_encode_write(encoder, *(const uint32_t *)value);
		break;
	case RLS_FIELD_U64:
		record_encode_write(encoder, *(const uint64_t *)value);
		break;
	case RLS_FIELD_BOOL:
		record_encode_write(encoder, *(const bool *)value);
		break;
	case RLS_FIELD_DOUBLE:
		memcpy(encoder->to, value, sizeof(double));
		encoder->to += sizeof(double);
		break;
	case RLS_FIELD_STACK:
		record_encode_write(encoder,
				    event->operation.depth | (uint64_t)event->operation.continued
								     << RLS_DEPTH_BITS);
		for (unsigned int i = 0; i < event->operation.depth; i++)
			record_encode_write(encoder, event->operation.stack[i]);
		break;
	case RLS_FIELD_CONTINUED:
	case RLS_FIELD_END:
		break;
	}
}

/* How far the cost is from count × the thread's last cost per hit, zigzagged. Wraps around
 * where the product does; the decoder wraps the same way. */
static uint64_t cost_surprise(const struct rls_record_encoder *encoder, uint32_t number,
			      const struct rls_event *hits)
{
	uint64_t unit = number < encoder->thread_count ? encoder->threads[number].unit_cost_ns : 0;

	return rls_zigzag(hits->hits.cost_ns - hits->hits.count * unit);
}

/* code: how the cost is written. */
static void put_hits(struct rls_record_encoder *encoder, const struct rls_event *hits,
		     uint64_t surprise, unsigned int code)
{
	record_encode_write(encoder, hits->hits.count);
	if (!rls_code_leaves_cost_out(code))
		record_encode_write(encoder, surprise);
	if (hits->hits.count && code != RLS_CODE_CATEGORY_HITS_ALL)
		encoder->threads[encoder->thread].unit_cost_ns =
			hits->hits.cost_ns / hits->hits.count;
}

static int put_category_hits(struct rls_record_encoder *encoder, const struct rls_event *category,
			     const struct rls_event *hits)
{
	uint32_t number = find_thread(encoder, hits->pid, hits->tid);
	uint64_t surprise = cost_surprise(encoder, number, hits);
	unsigned int code = RLS_CODE_CATEGORY_HITS;
	int error;

	/* More is never charged than there was time (record/cost/cost_carryover.h), so often it is all. */
	if (!surprise)
		code = RLS_CODE_CATEGORY_HITS_UNIT;
	else if (hits->hits.cost_ns == category->time_ns - encoder->time_ns)
		code = RLS_CODE_CATEGORY_HITS_ALL;
	error = put_head(encoder, code, category);
	if (error)
		return error;
	record_encode_write(encoder, category->category.category);
	put_hits(encoder, hits, surprise, code);
	return 0;
}

static int put_event(struct rls_record_encoder *encoder, const struct rls_event *event)
{
	bool further = event->kind >= RLS_CODE_FURTHER;
	int error = put_head(encoder, further ? RLS_CODE_FURTHER : event->kind, event);

	if (error)
		return error;
	if (further)
		record_encode_write(encoder, event->kind);
	if (event->kind == RLS_EVENT_HITS) {
		put_hits(encoder, event, cost_surprise(encoder, encoder->thread, event),
			 RLS_EVENT_HITS);
		return 0;
	}
	for (const struct rls_event_field *field = rls_event_layout(event->kind)->fields;
	     field->name; field++)
		put_field(encoder, event, field);
	return 0;
}

static bool pairs(const struct rls_event *category, const struct rls_event *hits)
{
	return category->kind == RLS_EVENT_CATEGORY && hits->kind == RLS_EVENT_HITS &&
	       category->time_ns == hits->time_ns && category->pid == hits->pid &&
	       category->tid == hits->tid;
}

static void start_chunk(struct rls_record_encoder *encoder, uint64_t min_time_ns)
{
	encoder->to = encoder->bytes;
	encoder->time_ns = min_time_ns;
	encoder->thread_count = 0;
	encoder->thread = 0;
	memset(encoder->slots, 0, (size_t)encoder->thread_room * 2 * sizeof(*encoder->slots));
}

int rls_record_encode(struct rls_record_encoder *encoder, const struct rls_event_store *store,
		      const uint8_t **bytes, size_t *count)
{
	size_t events = rls_event_store_count(store);
	struct rls_event pair[2];
	struct rls_event *event = &pair[0], *after = &pair[1];

	rls_event_store_get(store, 0, event);
	start_chunk(encoder, event->time_ns);
	for (size_t i = 0; i < events;) {
		bool paired = false;
		int error = reserve_record(encoder);

		if (!error && i + 1 < events) {
			rls_event_store_get(store, i + 1, after);
			paired = pairs(event, after);
		}
		if (!error)
			error = paired ? put_category_hits(encoder, event, after)
				       : put_event(encoder, event);
		if (error)
			return error;
		i += paired ? 2 : 1;
		if (paired && i < events) {
			rls_event_store_get(store, i, event);
		} else {
			struct rls_event *swap = event;

			event = after;
			after = swap;
		}
	}
	*bytes = encoder->bytes;
	*count = encoder->to - encoder->bytes;
	return 0;
}
