/* pprof's profile: gzipped protobuf, one sample for each stack of operations and category.
 *
 * Each sample has every figure of its row as a value; which thread and phase it is from is in
 * its labels. Operations and categories are functions without a place in any program.
 *
 * Stacks that were sampled follow with sample types of their own, 0 in the others, as the
 * traced have 0 in theirs: no sum is of both.
 *
 * A profile of memory has lines in operations as samples, and types by the names that heap profiles of
 * other tools have.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/index_map.h"
#include "analysis/event/memory_words.h"
#include "analysis/event/sample_kind.h"
#include "analysis/writers/export/gzip.h"
#include "analysis/writers/export/proto_stream.h"
#include "analysis/writers/writer.h"
#include "pprof.pb-c.h"

/* Fields of the profile itself. */
enum {
	SAMPLE_TYPE = 1,
	SAMPLE = 2,
	LOCATION = 4,
	FUNCTION = 5,
};

enum { LABELS_MAX = 8, FRAMES_MAX = RLS_OPERATION_DEPTH_MAX + 1 + RLS_STACK_FRAMES_MAX };

static const struct {
	const char *name;
	const char *unit;
	size_t offset;
} values[] = {
	{"wall", "nanoseconds", offsetof(struct rls_stack_row, wall_ns)},
	{"on_cpu", "nanoseconds", offsetof(struct rls_stack_row, on_cpu_ns)},
	{"corrected", "nanoseconds", offsetof(struct rls_stack_row, corrected_ns)},
	{"transitions", "count", offsetof(struct rls_stack_row, transitions)},
	{"gpu", "nanoseconds", offsetof(struct rls_stack_row, gpu_ns)},
};
#define VALUE_COUNT (sizeof(values) / sizeof(*values))

/* Of sampled stacks, behind those; there only when the recording has samples. */
static const struct {
	const char *name;
	const char *unit;
	size_t offset;
} sampled_values[] = {
	{"samples", "count", offsetof(struct rls_sampled_stack_row, samples)},
	{"sampled", "nanoseconds", offsetof(struct rls_sampled_stack_row, ns)},
};
#define SAMPLED_VALUE_COUNT (sizeof(sampled_values) / sizeof(*sampled_values))

/* Of lines that allocate: all that there is in a profile of memory. */
static const struct {
	const char *name;
	size_t offset;
} memory_values[] = {
	{"alloc_space", offsetof(struct rls_memory_line_row, alloc_bytes)},
	{"inuse_space", offsetof(struct rls_memory_line_row, live_bytes)},
};
#define MEMORY_VALUE_COUNT (sizeof(memory_values) / sizeof(*memory_values))

/* The format's string table is a string pool: dense, and "" is its number 0. */
struct pprof {
	struct rls_proto_stream stream;
	struct rls_string_pool *strings;
	struct rls_index_map functions; /* (name, file) -> number */
	struct rls_index_map locations; /* (function, line) -> number */
	size_t value_count; /* of each sample */
	int err; /* the first failure; nothing is done after it */
};

static int64_t string(struct pprof *pprof, const char *text)
{
	rls_string_id id = 0;
	int err = rls_string_pool_add(pprof->strings, text, strlen(text), &id);

	if (!pprof->err)
		pprof->err = err;
	return id;
}

static void pprof_write(struct pprof *pprof, unsigned int field, const ProtobufCMessage *message)
{
	if (!pprof->err)
		pprof->err = rls_proto_stream_put(&pprof->stream, field, message);
}

static void put_type(struct pprof *pprof, const char *name, const char *unit)
{
	RlsPprof__ValueType type = RLS_PPROF__VALUE_TYPE__INIT;

	type.type_string = string(pprof, name);
	type.unit_string = string(pprof, unit);
	pprof_write(pprof, SAMPLE_TYPE, &type.base);
	pprof->value_count++;
}

static void put_types(struct pprof *pprof, bool sampled)
{
	for (size_t i = 0; i < VALUE_COUNT; i++)
		put_type(pprof, values[i].name, values[i].unit);
	for (size_t i = 0; sampled && i < SAMPLED_VALUE_COUNT; i++)
		put_type(pprof, sampled_values[i].name, sampled_values[i].unit);
}

/* Things are numbered from 1 as they come. The number of this one; *added is it too when the
 * thing is new, and left alone otherwise. */
static uint64_t number_of(struct pprof *pprof, struct rls_index_map *map, uint64_t a, uint64_t b,
			  uint64_t *added)
{
	uint64_t number = (uintptr_t)rls_index_map_get(map, a, b);
	int err;

	if (number)
		return number;
	number = map->count + 1;
	err = rls_index_map_put(map, a, b, (void *)(uintptr_t)number);
	if (err && !pprof->err)
		pprof->err = err;
	*added = number;
	return number;
}

/* The number of a function, written where it is first used. */
static uint64_t function_of(struct pprof *pprof, const char *name, const char *file)
{
	RlsPprof__Function function = RLS_PPROF__FUNCTION__INIT;
	int64_t name_string = string(pprof, *name ? name : "(unnamed)");
	int64_t file_string = string(pprof, file);
	uint64_t id = number_of(pprof, &pprof->functions, (uint64_t)name_string,
				(uint64_t)file_string, &function.id);

	if (!function.id)
		return id;
	function.name_string = function.system_name_string = name_string;
	function.filename_string = file_string;
	pprof_write(pprof, FUNCTION, &function.base);
	return id;
}

/* The number of a location, likewise. Frames that are in no program have no file and line. */
static uint64_t pprof_place(struct pprof *pprof, const char *name, const char *file, uint32_t line)
{
	RlsPprof__Location location = RLS_PPROF__LOCATION__INIT;
	RlsPprof__Line lines = RLS_PPROF__LINE__INIT, *pointer = &lines;
	uint64_t id;

	lines.function_id = function_of(pprof, name, file);
	id = number_of(pprof, &pprof->locations, lines.function_id, line, &location.id);
	if (!location.id)
		return id;
	lines.line = line;
	location.n_line = 1;
	location.line = &pointer;
	pprof_write(pprof, LOCATION, &location.base);
	return id;
}

struct labels {
	RlsPprof__Label items[LABELS_MAX];
	RlsPprof__Label *pointers[LABELS_MAX];
	size_t count;
};

static RlsPprof__Label *new_label(struct pprof *pprof, struct labels *labels, const char *key)
{
	RlsPprof__Label *label = &labels->items[labels->count];

	rls_pprof__label__init(label);
	label->key_string = string(pprof, key);
	labels->pointers[labels->count++] = label;
	return label;
}

static void add_label(struct pprof *pprof, struct labels *labels, const char *key, const char *text)
{
	if (*text)
		new_label(pprof, labels, key)->str_string = string(pprof, text);
}

/* Those of every kind of row; tid NULL: it is of no thread. */
static void add_labels(struct pprof *pprof, struct labels *labels, const struct rls_report *report,
		       uint32_t pid, const uint32_t *tid, const char *phase, const char *operation)
{
	add_label(pprof, labels, "process", rls_report_process_name(report, pid));
	if (tid)
		add_label(pprof, labels, "thread", rls_report_thread_name(report, pid, *tid));
	new_label(pprof, labels, "pid")->num = pid;
	if (tid)
		new_label(pprof, labels, "tid")->num = *tid;
	add_label(pprof, labels, "phase", phase);
	add_label(pprof, labels, "operation", operation);
}

/* Its locations are counted; as many figures as the profile has types. */
static void finish_sample(struct pprof *pprof, RlsPprof__Sample *sample, uint64_t *locations,
			  int64_t *figures, struct labels *labels)
{
	sample->location_id = locations;
	sample->n_value = pprof->value_count;
	sample->value = figures;
	sample->n_label = labels->count;
	sample->label = labels->pointers;
	pprof_write(pprof, SAMPLE, &sample->base);
}

static void put_sample(struct pprof *pprof, const struct rls_report *report,
		       const struct rls_stack_row *row)
{
	RlsPprof__Sample sample = RLS_PPROF__SAMPLE__INIT;
	struct labels labels = {.count = 0};
	uint64_t locations[FRAMES_MAX];
	int64_t figures[VALUE_COUNT + SAMPLED_VALUE_COUNT] = {0};

	/* The leaf comes first. */
	locations[sample.n_location_id++] = pprof_place(
		pprof, row->gpu_alone ? "GPU without a thread" : rls_category_name(row->category),
		"", 0);
	for (size_t i = row->depth; i-- && sample.n_location_id < FRAMES_MAX;)
		locations[sample.n_location_id++] = pprof_place(pprof, row->operations[i], "", 0);
	for (size_t i = 0; i < VALUE_COUNT; i++)
		figures[i] = *(const int64_t *)((const char *)row + values[i].offset);
	add_labels(pprof, &labels, report, row->pid, &row->tid, row->phase,
		   row->depth ? row->operations[row->depth - 1] : "");
	if (!row->gpu_alone)
		add_label(pprof, &labels, "category", rls_category_name(row->category));
	finish_sample(pprof, &sample, locations, figures, &labels);
}

static void put_sampled(struct pprof *pprof, const struct rls_report *report,
			const struct rls_sampled_stack_row *row)
{
	const struct rls_stack_frame *frames[RLS_STACK_FRAMES_MAX];
	RlsPprof__Sample sample = RLS_PPROF__SAMPLE__INIT;
	int64_t figures[VALUE_COUNT + SAMPLED_VALUE_COUNT] = {0};
	struct labels labels = {.count = 0};
	uint64_t locations[FRAMES_MAX];
	size_t count = rls_report_frames(report, row, frames);

	for (size_t i = 0; i < count; i++)
		locations[sample.n_location_id++] =
			pprof_place(pprof, frames[i]->function, frames[i]->file, frames[i]->line);
	locations[sample.n_location_id++] =
		pprof_place(pprof, rls_category_name(row->category), "", 0);
	for (size_t i = row->depth; i-- && sample.n_location_id < FRAMES_MAX;)
		locations[sample.n_location_id++] = pprof_place(pprof, row->operations[i], "", 0);
	for (size_t i = 0; i < SAMPLED_VALUE_COUNT; i++)
		figures[VALUE_COUNT + i] =
			*(const int64_t *)((const char *)row + sampled_values[i].offset);
	add_labels(pprof, &labels, report, row->pid, NULL, row->phase,
		   row->depth ? row->operations[row->depth - 1] : "");
	add_label(pprof, &labels, "category", rls_category_name(row->category));
	add_label(pprof, &labels, "kind", rls_sample_kind_name(row->kind));
	finish_sample(pprof, &sample, locations, figures, &labels);
}

static void put_memory(struct pprof *pprof, const struct rls_report *report,
		       const struct rls_memory_line_row *row)
{
	RlsPprof__Sample sample = RLS_PPROF__SAMPLE__INIT;
	int64_t figures[MEMORY_VALUE_COUNT];
	struct labels labels = {.count = 0};
	uint64_t locations[2];

	locations[sample.n_location_id++] =
		pprof_place(pprof, *row->file || row->line ? row->function : "(no Python code)",
			    row->file, row->line);
	if (*row->operation)
		locations[sample.n_location_id++] = pprof_place(pprof, row->operation, "", 0);
	for (size_t i = 0; i < MEMORY_VALUE_COUNT; i++) {
		figures[i] = *(const int64_t *)((const char *)row + memory_values[i].offset);
		if ((uint64_t)figures[i] == RLS_COUNT_UNKNOWN)
			figures[i] = 0;
	}
	add_labels(pprof, &labels, report, row->pid, NULL, row->phase, row->operation);
	add_label(pprof, &labels, "source", rls_memory_source_name(row->source));
	if (row->device >= 0)
		new_label(pprof, &labels, "device")->num = row->device;
	finish_sample(pprof, &sample, locations, figures, &labels);
}

static void put_time_profile(struct pprof *pprof, const struct rls_report *report)
{
	put_types(pprof, report->sampled_stack_count);
	for (size_t i = 0; i < report->stack_count; i++)
		put_sample(pprof, report, &report->stacks[i]);
	for (size_t i = 0; i < report->sampled_stack_count; i++)
		put_sampled(pprof, report, &report->sampled_stacks[i]);
}

static void put_memory_profile(struct pprof *pprof, const struct rls_report *report)
{
	for (size_t i = 0; i < MEMORY_VALUE_COUNT; i++)
		put_type(pprof, memory_values[i].name, "bytes");
	for (size_t i = 0; i < report->memory_line_count; i++)
		put_memory(pprof, report, &report->memory_lines[i]);
}

/* The fields that are no samples, at once; the strings of all come last. */
static void put_rest(struct pprof *pprof, const struct rls_report *report, const char *type)
{
	RlsPprof__Profile profile = RLS_PPROF__PROFILE__INIT;
	_cleanup_free_ int64_t *comments = calloc(report->warning_count + 1, sizeof(*comments));
	_cleanup_free_ char **strings = NULL;

	if (comments) {
		comments[profile.n_comment_string++] = string(pprof, report->tool);
		for (size_t i = 0; i < report->warning_count; i++)
			comments[profile.n_comment_string++] = string(pprof, report->warnings[i]);
	}
	profile.comment_string = comments;
	profile.duration_nanos = (int64_t)(report->end_ns - report->start_ns);
	profile.default_sample_type_string = string(pprof, type);

	profile.n_string_table = rls_string_pool_count(pprof->strings);
	strings = calloc(profile.n_string_table, sizeof(*strings));
	if (!comments || !strings) {
		pprof->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < profile.n_string_table; i++)
		strings[i] = (char *)rls_string_pool_get(pprof->strings, (rls_string_id)i);
	profile.string_table = strings;
	if (!pprof->err)
		pprof->err = rls_proto_stream_fields(&pprof->stream, &profile.base);
}

static int write_pprof(const struct rls_report *report, FILE *output,
		       const struct rls_write_options *options)
{
	struct pprof pprof = {.strings = rls_string_pool_new()};
	FILE *gzip = pprof.strings ? rls_gzip_open(output) : NULL;

	if (!gzip) {
		rls_string_pool_free(pprof.strings);
		return -ENOMEM;
	}
	pprof.stream.out = gzip;
	if (options->memory)
		put_memory_profile(&pprof, report);
	else
		put_time_profile(&pprof, report);
	put_rest(&pprof, report, options->memory ? "inuse_space" : values[0].name);
	fclose(gzip);
	rls_proto_stream_free(&pprof.stream);
	rls_string_pool_free(pprof.strings);
	rls_index_map_free(&pprof.functions);
	rls_index_map_free(&pprof.locations);
	return pprof.err;
}

const struct rls_report_writer rls_pprof_writer = {
	.name = "pprof",
	.write = write_pprof,
	.binary = true,
};
