#include "event_maker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/event/event_fields.h"
#include "analysis/event/event_order.h"
#include "analysis/trace/text_form.h"
#include "analysis/trace/trace_writer.h"

static const char *const texts[] = {
	"",
	"a",
	"inference",
	"back\\slash",
	"quo\"te",
	"new\nline",
	"\x01\x1f\x7f",
	"naïve λ 模型 🤖",
	"{\"event\":\"end\"}",
	"[not json",
	"/usr/lib/x.so",
	"\xff\xfe broken",
};
static const char *const arrays[] = {"", "[]", "[\"python3\",\"-c\",\"a \\\"b\\\"\"]", "[1,2]",
				     "[cut"};

uint32_t event_maker_draw(struct event_maker *maker, uint32_t below)
{
	maker->random ^= maker->random << 13;
	maker->random ^= maker->random >> 7;
	maker->random ^= maker->random << 17;
	return (uint32_t)(maker->random >> 32) % below;
}

/* Mostly small, at times anything up to the largest. */
static uint64_t number(struct event_maker *maker, uint64_t max)
{
	uint64_t any = (uint64_t)event_maker_draw(maker, UINT32_MAX) << 32 |
		       event_maker_draw(maker, UINT32_MAX);

	switch (event_maker_draw(maker, 8)) {
	case 0:
		return max;
	case 1:
		return any > max ? any % max : any;
	default:
		return event_maker_draw(maker, 3000);
	}
}

static rls_string_id string(struct event_maker *maker, const char *const *from, size_t count)
{
	const char *text = from[event_maker_draw(maker, count)];
	rls_string_id id;
	int error = rls_string_pool_add(maker->strings, text, strlen(text), &id);

	assert(!error);
	return error ? 0 : id;
}

static double figure(struct event_maker *maker)
{
	static const double figures[] = {
		0, -0.0, 0.1, 640, 9.2e3, -1e-300, 1.7976931348623157e308, 5e-324};

	return figures[event_maker_draw(maker, sizeof(figures) / sizeof(figures[0]))];
}

static void fill_stack(struct event_maker *maker, struct rls_event *event)
{
	event->operation.depth = event_maker_draw(maker, 20)
					 ? event_maker_draw(maker, 4)
					 : event_maker_draw(maker, RLS_OPERATION_DEPTH_MAX + 1);
	event->operation.continued = event_maker_draw(maker, event->operation.depth + 1);
	for (unsigned int i = 0; i < event->operation.depth; i++)
		event->operation.stack[i] = string(maker, texts, sizeof(texts) / sizeof(texts[0]));
}

static void fill(struct event_maker *maker, struct rls_event *event,
		 const struct rls_event_field *field)
{
	void *value = (char *)event + field->offset;

	switch (field->type) {
	case RLS_FIELD_U32:
		*(uint32_t *)value = number(maker, UINT32_MAX);
		break;
	case RLS_FIELD_U64:
		*(uint64_t *)value = number(maker, RLS_EVENT_NUMBER_MAX);
		break;
	case RLS_FIELD_STRING:
		*(rls_string_id *)value = string(maker, texts, sizeof(texts) / sizeof(texts[0]));
		break;
	case RLS_FIELD_JSON:
		*(rls_string_id *)value = string(maker, arrays, sizeof(arrays) / sizeof(arrays[0]));
		break;
	case RLS_FIELD_CATEGORY:
		*(enum rls_category *)value = event_maker_draw(maker, RLS_CATEGORY_MAX);
		break;
	case RLS_FIELD_GPU_KIND:
		*(enum rls_gpu_kind *)value = event_maker_draw(maker, RLS_GPU_KIND_MAX);
		break;
	case RLS_FIELD_SAMPLE_KIND:
		*(enum rls_sample_kind *)value = event_maker_draw(maker, RLS_SAMPLE_KIND_MAX);
		break;
	case RLS_FIELD_MEMORY_SOURCE:
		*(enum rls_memory_source *)value = event_maker_draw(maker, RLS_MEMORY_SOURCE_MAX);
		break;
	case RLS_FIELD_LAYER_PASS:
		*(enum rls_layer_pass *)value = event_maker_draw(maker, RLS_PASS_MAX);
		break;
	case RLS_FIELD_MEMORY_METHOD:
		*(enum rls_memory_method *)value = event_maker_draw(maker, RLS_MEMORY_METHOD_MAX);
		break;
	case RLS_FIELD_COPY_KIND:
		*(enum rls_copy_kind *)value = event_maker_draw(maker, RLS_COPY_KIND_MAX);
		break;
	case RLS_FIELD_BOOL:
		*(bool *)value = event_maker_draw(maker, 2);
		break;
	case RLS_FIELD_DOUBLE:
		*(double *)value = figure(maker);
		break;
	case RLS_FIELD_STACK:
		fill_stack(maker, event);
		break;
	case RLS_FIELD_CONTINUED: /* with the stack */
	case RLS_FIELD_END:
		break;
	}
}

/* Any kind but the end mark. */
static enum rls_event_kind draw_kind(struct event_maker *maker)
{
	enum rls_event_kind kind;

	do
		kind = 1 + event_maker_draw(maker, RLS_EVENT_MAX - 1);
	while (kind == RLS_EVENT_END || !rls_event_layout(kind));
	return kind;
}

struct rls_event event_maker_event(struct event_maker *maker)
{
	/* Half of all events are the common pair, so that its special records are met. */
	static const enum rls_event_kind common[] = {RLS_EVENT_CATEGORY, RLS_EVENT_HITS};
	struct rls_event event = {0};
	const struct rls_event_layout *layout;

	event.kind =
		event_maker_draw(maker, 2) ? common[event_maker_draw(maker, 2)] : draw_kind(maker);
	layout = rls_event_layout(event.kind);
	event.time_ns = event_maker_draw(maker, 200) ? event_maker_draw(maker, maker->span_ns)
						     : number(maker, RLS_EVENT_NUMBER_MAX);
	if (layout->scope != RLS_SCOPE_TRACE)
		event.pid = 1 + event_maker_draw(maker, 3);
	if (layout->scope == RLS_SCOPE_THREAD)
		event.tid = event_maker_draw(maker, 50)
				    ? event.pid * 10 + event_maker_draw(maker, 4)
				    : number(maker, UINT32_MAX);
	for (const struct rls_event_field *field = layout->fields; field->name; field++)
		fill(maker, &event, field);
	if (event.kind == RLS_EVENT_GPU && event.gpu.end_ns < event.time_ns)
		event.gpu.end_ns = event.time_ns;
	if (event.kind == RLS_EVENT_MEMORY_AGES &&
	    event.memory_ages.to_ns <= event.memory_ages.from_ns) {
		event.memory_ages.from_ns = event.memory_ages.to_ns / 2;
		event.memory_ages.to_ns = event.memory_ages.from_ns + 1;
	}
	return event;
}

int memory_file(const void *bytes, size_t count)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert(fd >= 0);
	if (write(fd, bytes, count) != (ssize_t)count || lseek(fd, 0, SEEK_SET))
		abort();
	return fd;
}

int write_trace(const struct rls_event *events, size_t count, const struct rls_string_pool *strings,
		size_t flush_every)
{
	struct rls_event end = {.kind = RLS_EVENT_END, .end.complete = true};
	struct rls_trace_writer *writer;
	int fd = memory_file("", 0);

	if (rls_trace_writer_open_fd(dup(fd), strings, &writer))
		abort();
	for (size_t i = 0; i < count; i++) {
		if (rls_trace_writer_add(writer, &events[i]))
			abort();
		if (flush_every && i % flush_every == flush_every - 1 &&
		    rls_trace_writer_flush(writer))
			abort();
		if (events[i].time_ns > end.time_ns)
			end.time_ns = events[i].time_ns;
	}
	if (rls_trace_writer_add(writer, &end) || rls_trace_writer_close(writer))
		abort();
	return fd;
}

char *render(struct rls_event_source *source)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	struct rls_event before, event;
	bool first = true;
	int got;

	if (!out)
		abort();
	while ((got = source->next(source, &event)) > 0) {
		if (!first && rls_event_order(&before, &event, source->strings) > 0)
			fputs("OUT OF ORDER\n", out);
		if (rls_text_write_event(out, &event, source->strings))
			fputs("INVALID\n", out);
		before = event;
		first = false;
	}
	if (got)
		fputs("FAILED\n", out);
	fclose(out);
	return text;
}

unsigned char *file_bytes(int fd, size_t *count)
{
	off_t size = lseek(fd, 0, SEEK_END);
	unsigned char *bytes = malloc(size + 1);

	if (!bytes || size < 0 || pread(fd, bytes, size, 0) != size)
		abort();
	lseek(fd, 0, SEEK_SET);
	*count = size;
	return bytes;
}
