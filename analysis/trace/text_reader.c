#include "analysis/base/grow.h"
#include "analysis/trace/text_form.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/base/cleanup.h"
#include "analysis/event/event_fields.h"
#include "analysis/event/event_store.h"
#include "analysis/event/layer_pass.h"
#include "analysis/event/memory_source.h"
#include "analysis/event/memory_words.h"
#include "analysis/event/sample_kind.h"
#include "analysis/trace/trace_damage.h"

#define LINE_BYTES_MAX (4u << 20) /* a full stack of the longest names, all escaped */
#define WATCH_LINES 16384 /* the watch is called every so many lines */
#define LINES_NAMED_MAX 10 /* broken lines that get a warning each */
#define WHOLE_REAL_MAX 9007199254740992.0 /* 2^53: larger reals are not exact */

struct text_reader {
	struct rls_event_store *store;
	struct rls_string_pool *strings;
	uint64_t last_ns; /* latest event seen: warnings are put there */
	uint64_t events, broken_lines;
	bool end_seen, incomplete;
	bool no_end_reported, incomplete_reported; /* the trace has that warning already */
};

static bool get_number(const json_t *json, uint64_t max, uint64_t *out)
{
	if (json_is_integer(json)) {
		json_int_t value = json_integer_value(json);

		if (value < 0 || (uint64_t)value > max)
			return false;
		*out = value;
		return true;
	}
	if (json_is_real(json)) {
		double value = json_real_value(json);

		if (!(value >= 0) || value > WHOLE_REAL_MAX || value > (double)max ||
		    (double)(uint64_t)value != value)
			return false;
		*out = (uint64_t)value;
		return true;
	}
	return false;
}

static int add_string(struct text_reader *reader, const json_t *json, rls_string_id *out)
{
	if (!json_is_string(json))
		return -EINVAL;
	return rls_string_pool_add(reader->strings, json_string_value(json),
				   json_string_length(json), out);
}

/* How many of the array's items its shortest text can hold in a string. */
static size_t count_fitting(const json_t *array)
{
	size_t bytes = 1; /* a bracket; each item's comma, or the closing bracket, is its own */
	size_t i;

	for (i = 0; i < json_array_size(array); i++) {
		bytes += json_dumpb(json_array_get(array, i), NULL, 0,
				    JSON_COMPACT | JSON_ENCODE_ANY) +
			 1;
		if (bytes > RLS_STRING_BYTES_MAX)
			break;
	}
	return i;
}

/* An array is kept as its shortest text. One longer than a string may be loses its last
 * items: cut text would be no array any more. */
static int add_json(struct text_reader *reader, json_t *json, rls_string_id *out)
{
	if (!json_is_array(json))
		return add_string(reader, json, out);
	for (size_t i = json_array_size(json), fitting = count_fitting(json); i > fitting; i--)
		json_array_remove(json, i - 1);

	_cleanup_free_ char *text = json_dumps(json, JSON_COMPACT);

	return text ? rls_string_pool_add(reader->strings, text, strlen(text), out) : -ENOMEM;
}

static int get_stack(struct text_reader *reader, const json_t *json, struct rls_event *out)
{
	size_t depth = json_array_size(json);

	if (!json_is_array(json))
		return -EINVAL;
	if (depth > RLS_OPERATION_DEPTH_MAX)
		depth = RLS_OPERATION_DEPTH_MAX; /* event.h: deeper ones are not distinguished */
	out->operation.depth = depth;
	for (size_t i = 0; i < depth; i++) {
		int error = add_string(reader, json_array_get(json, i), &out->operation.stack[i]);

		if (error)
			return error;
	}
	return 0;
}

static int get_word(const json_t *json, enum rls_field_type type, void *out)
{
	if (!json_is_string(json))
		return -EINVAL;
	if (type == RLS_FIELD_CATEGORY)
		return rls_category_parse(json_string_value(json), out);
	if (type == RLS_FIELD_SAMPLE_KIND)
		return rls_sample_kind_parse(json_string_value(json), out);
	if (type == RLS_FIELD_MEMORY_SOURCE)
		return rls_memory_source_parse(json_string_value(json), out);
	if (type == RLS_FIELD_MEMORY_METHOD)
		return rls_memory_method_parse(json_string_value(json), out);
	if (type == RLS_FIELD_COPY_KIND)
		return rls_copy_kind_parse(json_string_value(json), out);
	if (type == RLS_FIELD_LAYER_PASS)
		return rls_layer_pass_parse(json_string_value(json), out);
	return rls_gpu_kind_parse(json_string_value(json), out);
}

static int get_value(struct text_reader *reader, json_t *json, const struct rls_event_field *field,
		     struct rls_event *event)
{
	void *out = (char *)event + field->offset;
	uint64_t number;

	switch (field->type) {
	case RLS_FIELD_U32:
		if (!get_number(json, UINT32_MAX, &number))
			return -EINVAL;
		*(uint32_t *)out = number;
		return 0;
	case RLS_FIELD_U64:
		return get_number(json, RLS_EVENT_NUMBER_MAX, out) ? 0 : -EINVAL;
	case RLS_FIELD_STRING:
		return add_string(reader, json, out);
	case RLS_FIELD_JSON:
		return add_json(reader, json, out);
	case RLS_FIELD_CATEGORY:
	case RLS_FIELD_GPU_KIND:
	case RLS_FIELD_SAMPLE_KIND:
	case RLS_FIELD_MEMORY_SOURCE:
	case RLS_FIELD_MEMORY_METHOD:
	case RLS_FIELD_COPY_KIND:
	case RLS_FIELD_LAYER_PASS:
		return get_word(json, field->type, out);
	case RLS_FIELD_BOOL:
		*(bool *)out = json_is_true(json);
		return json_is_boolean(json) ? 0 : -EINVAL;
	case RLS_FIELD_DOUBLE:
		*(double *)out = json_number_value(json);
		return json_is_number(json) ? 0 : -EINVAL;
	case RLS_FIELD_STACK:
		return get_stack(reader, json, event);
	case RLS_FIELD_CONTINUED:
		if (!get_number(json, UINT16_MAX, &number))
			return -EINVAL;
		/* Of a stack that was too deep the innermost are left out. */
		event->operation.continued =
			(uint16_t)(number < event->operation.depth ? number
								   : event->operation.depth);
		return 0;
	case RLS_FIELD_END:
		break;
	}
	return -EINVAL;
}

static int get_id(const json_t *line, const char *name, bool required, uint32_t *out)
{
	const json_t *json = json_object_get(line, name);
	uint64_t number = 0;

	if (json ? !get_number(json, UINT32_MAX, &number) : required)
		return -EINVAL;
	*out = number;
	return 0;
}

/* 0, or -EINVAL with the name of the field that is missing or wrong in *wrong, or -ENOMEM. */
static int get_event(struct text_reader *reader, const json_t *line, struct rls_event *event,
		     const char **wrong)
{
	const struct rls_event_layout *layout = rls_event_layout(event->kind);

	*wrong = layout->time_name;
	if (!get_number(json_object_get(line, layout->time_name), RLS_EVENT_NUMBER_MAX,
			&event->time_ns))
		return -EINVAL;
	*wrong = "pid";
	if (get_id(line, "pid", layout->scope != RLS_SCOPE_TRACE, &event->pid))
		return -EINVAL;
	*wrong = "tid";
	if (get_id(line, "tid", layout->scope == RLS_SCOPE_THREAD, &event->tid))
		return -EINVAL;
	for (const struct rls_event_field *field = layout->fields; field->name; field++) {
		json_t *json = json_object_get(line, field->name);
		int error = 0;

		*wrong = field->name;
		if (json && !(json_is_null(json) && !field->required))
			error = get_value(reader, json, field, event);
		else if (field->required)
			error = -EINVAL;
		if (error)
			return error;
	}
	*wrong = event->kind == RLS_EVENT_GPU ? "end_ns" : "value";
	return rls_event_check(event);
}

static enum rls_event_kind find_kind(const char *name)
{
	for (unsigned int kind = 1; kind < RLS_EVENT_MAX; kind++) {
		const struct rls_event_layout *layout = rls_event_layout(kind);

		if (layout && !strcmp(name, layout->name))
			return kind;
	}
	return 0;
}

static int add_warning(struct text_reader *reader, const char *text)
{
	struct rls_event event = {.kind = RLS_EVENT_WARNING, .time_ns = reader->last_ns};
	int error = rls_string_pool_add(reader->strings, text, strlen(text), &event.warning.text);

	return error ? error : rls_event_store_add(reader->store, &event);
}

static int add_event(struct text_reader *reader, const struct rls_event *event)
{
	reader->events++;
	if (event->time_ns > reader->last_ns)
		reader->last_ns = event->time_ns;
	if (event->kind == RLS_EVENT_END) {
		reader->end_seen = true;
		reader->incomplete |= !event->end.complete;
	}
	if (event->kind == RLS_EVENT_WARNING) {
		const char *text = rls_string_pool_get(reader->strings, event->warning.text);

		reader->no_end_reported |= !strcmp(text, RLS_DAMAGE_NO_END);
		reader->incomplete_reported |= !strcmp(text, RLS_DAMAGE_INCOMPLETE);
	}
	return rls_event_store_add(reader->store, event);
}

/* Takes a line that is a JSON object. 0, -ENOMEM, or -EINVAL with *wrong, the field. */
static int take_object(struct text_reader *reader, const json_t *line, const char **wrong)
{
	const json_t *name = json_object_get(line, "event");
	struct rls_event event = {0};
	int error;

	*wrong = "event";
	if (!json_is_string(name))
		return -EINVAL;
	event.kind = find_kind(json_string_value(name));
	if (!event.kind) {
		reader->events++; /* from a later version: not for us */
		return 0;
	}
	error = get_event(reader, line, &event, wrong);
	return error ? error : add_event(reader, &event);
}

static bool blank(const char *line, size_t bytes)
{
	while (bytes && memchr(" \t\r", line[bytes - 1], 3))
		bytes--;
	return !bytes;
}

/* 0, or -ENOMEM. A blank line is nothing; a broken line is counted, and reported if it is among
 * the first. */
static int take_line(struct text_reader *reader, const char *line, size_t bytes, uint64_t number)
{
	json_t *json;
	const char *wrong = NULL;
	char text[160];
	int error;

	if (blank(line, bytes))
		return 0;
	json = bytes <= LINE_BYTES_MAX ? json_loadb(line, bytes, 0, NULL) : NULL;
	error = json_is_object(json) ? take_object(reader, json, &wrong) : -EINVAL;
	json_decref(json);
	if (error != -EINVAL)
		return error;
	if (++reader->broken_lines > LINES_NAMED_MAX)
		return 0;
	if (wrong)
		snprintf(text, sizeof(text),
			 "line %" PRIu64
			 " of the trace was left out: its \"%s\" is missing or wrong",
			 number, wrong);
	else
		snprintf(text, sizeof(text),
			 "line %" PRIu64 " of the trace was left out: it is no JSON object",
			 number);
	return add_warning(reader, text);
}

/* The line being read. Its buffer grows as lines ask for it. */
struct line {
	char *text;
	size_t bytes, room;
};

static int add_byte(struct line *line, char byte)
{
	if (line->bytes > LINE_BYTES_MAX)
		return 0; /* too long: the rest is dropped, and the line refused */
	if (rls_grow(&line->text, &line->room, line->bytes))
		return -ENOMEM;
	line->text[line->bytes++] = byte;
	return 0;
}

/* 1, 0 at the end of the file, or -ENOMEM. */
static int read_line(FILE *file, struct line *line)
{
	int c, error = 0;

	line->bytes = 0;
	while (!error && (c = getc_unlocked(file)) != EOF && c != '\n')
		error = add_byte(line, (char)c);
	return error ? error : c != EOF || line->bytes;
}

static void text_reader_report(struct rls_event_source_watch *watch, FILE *file, off_t whole,
			       uint64_t events)
{
	off_t at = ftello(file);

	watch->report(watch, whole > 0 && at >= 0 ? (double)at / (double)whole : -1, events);
}

static int read_lines(struct text_reader *reader, FILE *file, struct rls_event_source_watch *watch)
{
	struct line line = {0};
	struct stat status;
	off_t whole = fstat(fileno(file), &status) ? 0 : status.st_size;
	int got, error = 0;

	for (uint64_t number = 1; !error && (got = read_line(file, &line)) != 0; number++) {
		error = got < 0 ? got : take_line(reader, line.text, line.bytes, number);
		if (watch && number % WATCH_LINES == 0)
			text_reader_report(watch, file, whole, reader->events);
	}
	free(line.text);
	if (!error && ferror(file))
		error = errno ? -errno : -EIO;
	return error;
}

/* Warnings about the trace as a whole, once all of it is known. */
static int text_reader_conclude(struct text_reader *reader)
{
	char text[96];
	int error = 0;

	if (reader->broken_lines > LINES_NAMED_MAX) {
		snprintf(text, sizeof(text), "%" PRIu64 " more lines of the trace were left out",
			 reader->broken_lines - LINES_NAMED_MAX);
		error = add_warning(reader, text);
	}
	if (!error && !reader->end_seen && !reader->no_end_reported)
		error = add_warning(reader, RLS_DAMAGE_NO_END);
	if (!error && reader->incomplete && !reader->incomplete_reported)
		error = add_warning(reader, RLS_DAMAGE_INCOMPLETE);
	return error;
}

static int read_text(struct text_reader *reader, FILE *file, struct rls_event_source_watch *watch,
		     struct rls_event_source **out)
{
	int error;

	reader->store = rls_event_store_new();
	reader->strings = rls_string_pool_new();
	if (!reader->store || !reader->strings)
		return -ENOMEM;
	error = read_lines(reader, file, watch);
	if (!error && !reader->events)
		error = -EINVAL;
	if (!error)
		error = text_reader_conclude(reader);
	if (error)
		return error;
	return rls_memory_source_take(
		reader->store, reader->strings,
		reader->broken_lines || !reader->end_seen || reader->incomplete, out);
}

int rls_text_reader_open(int fd, struct rls_event_source_watch *watch,
			 struct rls_event_source **out, char *message, size_t message_bytes)
{
	_cleanup_fclose_ FILE *file = fdopen(fd, "r");
	struct text_reader reader = {0};
	int error = file ? read_text(&reader, file, watch, out) : -errno;

	if (!file)
		close(fd);
	if (!error)
		return 0;
	rls_event_store_free(reader.store);
	rls_string_pool_free(reader.strings);
	snprintf(message, message_bytes, "%s",
		 error == -EINVAL ? "it is no trace: none of its lines is an event"
				  : strerror(-error));
	return error;
}
