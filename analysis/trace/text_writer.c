#include "analysis/trace/text_form.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "analysis/event/event_fields.h"
#include "analysis/event/layer_pass.h"
#include "analysis/event/memory_words.h"
#include "analysis/event/sample_kind.h"

static const char *const gpu_kinds[] = {
	[RLS_GPU_KERNEL] = "kernel", [RLS_GPU_MEMCPY] = "memcpy", [RLS_GPU_MEMSET] = "memset",
	[RLS_GPU_SYNC] = "sync",     [RLS_GPU_GRAPH] = "graph",
};
_Static_assert(sizeof(gpu_kinds) / sizeof(gpu_kinds[0]) == RLS_GPU_KIND_MAX, "a name per kind");

const char *rls_gpu_kind_name(enum rls_gpu_kind kind)
{
	return (unsigned int)kind < RLS_GPU_KIND_MAX ? gpu_kinds[kind] : "unknown";
}

int rls_gpu_kind_parse(const char *name, enum rls_gpu_kind *out)
{
	for (int i = 0; i < RLS_GPU_KIND_MAX; i++) {
		if (!strcmp(name, gpu_kinds[i])) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* The pool's strings are valid UTF-8; only what JSON forbids in a string is escaped. */
static void write_string(FILE *out, const char *text)
{
	putc_unlocked('"', out);
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			putc_unlocked('\\', out);
		if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			putc_unlocked(c, out);
	}
	putc_unlocked('"', out);
}

/* A real array where the text is one; what is none, say a list cut at the longest string
 * there may be, stays a string, and reads back as it was. */
static void write_json(FILE *out, const char *text)
{
	json_t *array = json_loads(text, 0, NULL);

	if (json_is_array(array))
		json_dumpf(array, out, JSON_COMPACT);
	else
		write_string(out, text);
	json_decref(array);
}

/* Always with a point or exponent: "-0" would come back as an integer, without its sign. */
static void write_double(FILE *out, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.17g", value);
	fputs(text, out);
	if (!strpbrk(text, ".e"))
		fputs(".0", out);
}

static void write_stack(FILE *out, const struct rls_event *event,
			const struct rls_string_pool *strings)
{
	putc_unlocked('[', out);
	for (unsigned int i = 0; i < event->operation.depth; i++) {
		if (i)
			putc_unlocked(',', out);
		write_string(out, rls_string_pool_get(strings, event->operation.stack[i]));
	}
	putc_unlocked(']', out);
}

static void write_value(FILE *out, const struct rls_event *event,
			const struct rls_event_field *field, const struct rls_string_pool *strings)
{
	const void *value = (const char *)event + field->offset;

	switch (field->type) {
	case RLS_FIELD_U32:
		fprintf(out, "%" PRIu32, *(const uint32_t *)value);
		break;
	case RLS_FIELD_U64:
		fprintf(out, "%" PRIu64, *(const uint64_t *)value);
		break;
	case RLS_FIELD_STRING:
		write_string(out, rls_string_pool_get(strings, *(const rls_string_id *)value));
		break;
	case RLS_FIELD_JSON:
		write_json(out, rls_string_pool_get(strings, *(const rls_string_id *)value));
		break;
	case RLS_FIELD_CATEGORY:
		write_string(out, rls_category_name(*(const enum rls_category *)value));
		break;
	case RLS_FIELD_GPU_KIND:
		write_string(out, rls_gpu_kind_name(*(const enum rls_gpu_kind *)value));
		break;
	case RLS_FIELD_SAMPLE_KIND:
		write_string(out, rls_sample_kind_name(*(const enum rls_sample_kind *)value));
		break;
	case RLS_FIELD_MEMORY_SOURCE:
		write_string(out, rls_memory_source_name(*(const enum rls_memory_source *)value));
		break;
	case RLS_FIELD_MEMORY_METHOD:
		write_string(out, rls_memory_method_name(*(const enum rls_memory_method *)value));
		break;
	case RLS_FIELD_COPY_KIND:
		write_string(out, rls_copy_kind_name(*(const enum rls_copy_kind *)value));
		break;
	case RLS_FIELD_LAYER_PASS:
		write_string(out, rls_layer_pass_name(*(const enum rls_layer_pass *)value));
		break;
	case RLS_FIELD_BOOL:
		fputs(*(const bool *)value ? "true" : "false", out);
		break;
	case RLS_FIELD_DOUBLE:
		write_double(out, *(const double *)value);
		break;
	case RLS_FIELD_STACK:
		write_stack(out, event, strings);
		break;
	case RLS_FIELD_CONTINUED:
		fprintf(out, "%u", event->operation.continued);
		break;
	case RLS_FIELD_END:
		break;
	}
}

/* Sparse fields are numbers, strings and words, 0 meaning nothing. */
static bool left_out(const struct rls_event *event, const struct rls_event_field *field)
{
	const void *value = (const char *)event + field->offset;

	if (field->type == RLS_FIELD_CONTINUED)
		return !event->operation.continued;
	if (!field->sparse)
		return false;
	if (field->type == RLS_FIELD_U64)
		return !*(const uint64_t *)value;
	if (field->type == RLS_FIELD_BOOL)
		return !*(const bool *)value;
	return !*(const uint32_t *)value;
}

int rls_text_write_event(FILE *out, const struct rls_event *event,
			 const struct rls_string_pool *strings)
{
	const struct rls_event_layout *layout = rls_event_layout(event->kind);

	if (rls_event_check(event))
		return -EINVAL;
	fprintf(out, "{\"event\":\"%s\",\"%s\":%" PRIu64, layout->name, layout->time_name,
		event->time_ns);
	if (layout->scope != RLS_SCOPE_TRACE || event->pid)
		fprintf(out, ",\"pid\":%" PRIu32, event->pid);
	if (layout->scope == RLS_SCOPE_THREAD || event->tid)
		fprintf(out, ",\"tid\":%" PRIu32, event->tid);
	for (const struct rls_event_field *field = layout->fields; field->name; field++) {
		if (left_out(event, field))
			continue;
		fprintf(out, ",\"%s\":", field->name);
		write_value(out, event, field, strings);
	}
	fputs("}\n", out);
	return ferror(out) ? (errno ? -errno : -EIO) : 0;
}
