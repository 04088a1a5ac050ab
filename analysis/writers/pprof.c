/* pprof's profile: gzipped protobuf, one sample for each stack of operations and category.
 *
 * Each sample has every figure of its row as a value; which thread and phase it is from is in
 * its labels. Every frame is a function of that name without a place in any program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cleanup.h"
#include "analysis/writers/gzip.h"
#include "analysis/writers/proto_stream.h"
#include "analysis/writers/writer.h"
#include "pprof.pb-c.h"

/* Fields of the profile itself. */
enum {
	SAMPLE_TYPE = 1,
	SAMPLE = 2,
	LOCATION = 4,
	FUNCTION = 5,
};

enum { LABELS_MAX = 8, FRAMES_MAX = RLS_OPERATION_DEPTH_MAX + 1 };

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

/* The format's string table is a string pool: dense, and "" is its number 0. */
struct pprof {
	struct rls_proto_stream stream;
	struct rls_string_pool *strings;
	bool *is_frame;             /* by string: it is a location and function of that number */
	size_t frame_capacity;
	int err;                    /* the first failure; nothing is done after it */
};

static int64_t string(struct pprof *pprof, const char *text)
{
	rls_string_id id = 0;
	int err = rls_string_pool_add(pprof->strings, text, strlen(text), &id);

	if (!pprof->err)
		pprof->err = err;
	return id;
}

static void put(struct pprof *pprof, unsigned int field, const ProtobufCMessage *message)
{
	if (!pprof->err)
		pprof->err = rls_proto_stream_put(&pprof->stream, field, message);
}

static void put_types(struct pprof *pprof)
{
	for (size_t i = 0; i < VALUE_COUNT; i++) {
		RlsPprof__ValueType type = RLS_PPROF__VALUE_TYPE__INIT;

		type.type_string = string(pprof, values[i].name);
		type.unit_string = string(pprof, values[i].unit);
		put(pprof, SAMPLE_TYPE, &type.base);
	}
}

/* The location of a frame, written with its function where it is first used. Numbers are the
 * string's plus one: 0 is none. */
static uint64_t frame(struct pprof *pprof, const char *name)
{
	RlsPprof__Function function = RLS_PPROF__FUNCTION__INIT;
	RlsPprof__Location location = RLS_PPROF__LOCATION__INIT;
	RlsPprof__Line line = RLS_PPROF__LINE__INIT, *lines[] = {&line};
	size_t id = (size_t)string(pprof, *name ? name : "(unnamed)");

	if (id >= pprof->frame_capacity) {
		size_t capacity = 2 * id + 64;
		bool *is_frame = realloc(pprof->is_frame, capacity);

		if (!is_frame) {
			pprof->err = -ENOMEM;
			return 0;
		}
		memset(is_frame + pprof->frame_capacity, 0, capacity - pprof->frame_capacity);
		pprof->is_frame = is_frame;
		pprof->frame_capacity = capacity;
	}
	if (pprof->is_frame[id])
		return id + 1;
	pprof->is_frame[id] = true;
	function.id = location.id = line.function_id = id + 1;
	function.name_string = function.system_name_string = (int64_t)id;
	location.n_line = 1;
	location.line = lines;
	put(pprof, FUNCTION, &function.base);
	put(pprof, LOCATION, &location.base);
	return id + 1;
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

static void add_label(struct pprof *pprof, struct labels *labels, const char *key,
		      const char *text)
{
	if (*text)
		new_label(pprof, labels, key)->str_string = string(pprof, text);
}

static void make_labels(struct pprof *pprof, struct labels *labels, const struct rls_report *report,
			const struct rls_stack_row *row)
{
	add_label(pprof, labels, "process", rls_report_process_name(report, row->pid));
	add_label(pprof, labels, "thread", rls_report_thread_name(report, row->pid, row->tid));
	new_label(pprof, labels, "pid")->num = row->pid;
	new_label(pprof, labels, "tid")->num = row->tid;
	add_label(pprof, labels, "phase", row->phase);
	add_label(pprof, labels, "operation",
		  row->depth ? row->operations[row->depth - 1] : "");
	if (!row->gpu_alone)
		add_label(pprof, labels, "category", rls_category_name(row->category));
}

static void put_sample(struct pprof *pprof, const struct rls_report *report,
		       const struct rls_stack_row *row)
{
	RlsPprof__Sample sample = RLS_PPROF__SAMPLE__INIT;
	struct labels labels = {.count = 0};
	uint64_t locations[FRAMES_MAX];
	int64_t figures[VALUE_COUNT];

	/* The leaf comes first. */
	locations[sample.n_location_id++] =
		frame(pprof, row->gpu_alone ? "GPU without a thread"
					    : rls_category_name(row->category));
	for (size_t i = row->depth; i-- && sample.n_location_id < FRAMES_MAX;)
		locations[sample.n_location_id++] = frame(pprof, row->operations[i]);
	for (size_t i = 0; i < VALUE_COUNT; i++)
		figures[i] = *(const int64_t *)((const char *)row + values[i].offset);
	make_labels(pprof, &labels, report, row);
	sample.location_id = locations;
	sample.n_value = VALUE_COUNT;
	sample.value = figures;
	sample.n_label = labels.count;
	sample.label = labels.pointers;
	put(pprof, SAMPLE, &sample.base);
}

/* The fields that are no samples, at once; the strings of all come last. */
static void put_rest(struct pprof *pprof, const struct rls_report *report)
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
	profile.default_sample_type_string = string(pprof, values[0].name);

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
	put_types(&pprof);
	for (size_t i = 0; i < report->stack_count; i++)
		put_sample(&pprof, report, &report->stacks[i]);
	put_rest(&pprof, report);
	fclose(gzip);
	rls_proto_stream_free(&pprof.stream);
	rls_string_pool_free(pprof.strings);
	free(pprof.is_frame);
	return pprof.err;
}

const struct rls_report_writer rls_pprof_writer = {
	.name = "pprof",
	.write = write_pprof,
	.binary = true,
};
