/* The three forms of one report: complete, exact, and harmless whatever a target is called. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/base/cleanup.h"
#include "analysis/report/tables.h"
#include "analysis/writers/text/text_format.h"
#include "analysis/writers/text/text_tree.h"
#include "analysis/writers/write.h"
#include "tests/analysis/breakdown/script.h"

static char *render(const struct rls_report *report, const char *format,
		    const struct rls_write_options *options)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(rls_report_write(report, rls_report_writer_find(format), out, options), 0);
	fclose(out);
	return text;
}

/* One of everything, with names as bad as names can be. */
static struct rls_report *full_report(struct script *script)
{
	struct rls_event *event;

	script_begin(script);
	add_process(script, 10, 1, "name, \"quoted\"\n\x1b[31m and \xe2\x80\xae turned");
	event = script_add(script, RLS_EVENT_PROCESS, 10, 1, 0);
	event->process.cmdline = script_string(script, "[\"a\", 1, \"b \\\"c\\\"\"]");
	event->process.container = script_string(script, "c0ffee");
	event->process.ns_pid = 5;
	event = script_add(script, RLS_EVENT_LIBRARY, 0, 1, 0);
	event->library.path = script_string(script, "/lib/a b\\.so");
	event->library.role = script_string(script, "backend");
	event = script_add(script, RLS_EVENT_HOST, 0, 0, 0);
	event->host.gpus = script_string(script, "[\"H100\", {\"x\": 1}]");
	event = script_add(script, RLS_EVENT_CALIBRATION, 0, 0, 0);
	event->calibration.name = script_string(script, "nop5.entry");
	event->calibration.value_ns = 470.25;
	event->calibration.error_ns = 3.5;
	event = script_add(script, RLS_EVENT_LOSS, 90, 0, 0);
	event->loss.buffer = script_string(script, "control");
	event->loss.dropped = 1;
	add_thread(script, 10, 1, 1);
	add_category(script, 10, 1, 1, RLS_CATEGORY_PYTHON);
	add_operation(script, 20, 1, 1, "op,\"\xc3\xa9\"");
	add_launch(script, 25, 1, 1, 7);
	add_gpu(script, 30, 40, 1, RLS_GPU_KERNEL, 7);
	add_category(script, 50, 1, 1, RLS_CATEGORY_CUDA_API);
	add_hits(script, 50, 1, 1, 3, 5);
	add_gpu(script, 98, 120, 1, RLS_GPU_KERNEL, 8);
	add_end(script, 100);
	return script_report(script);
}

/* --- json and its schema ------------------------------------------------------------ */

static const json_t *resolve(const json_t *root, const json_t *schema)
{
	const char *name = json_string_value(json_object_get(schema, "$ref"));

	if (!name)
		return schema;
	assert_memory_equal(name, "#/$defs/", 8);
	return json_object_get(json_object_get(root, "$defs"), name + 8);
}

static bool has_type(const json_t *value, const char *type)
{
	return (!strcmp(type, "object") && json_is_object(value)) ||
	       (!strcmp(type, "array") && json_is_array(value)) ||
	       (!strcmp(type, "string") && json_is_string(value)) ||
	       (!strcmp(type, "boolean") && json_is_boolean(value)) ||
	       (!strcmp(type, "integer") && json_is_integer(value)) ||
	       (!strcmp(type, "number") && json_is_number(value)) ||
	       (!strcmp(type, "null") && json_is_null(value));
}

static bool has_one_of(const json_t *value, const json_t *types)
{
	bool found = false;
	json_t *type;
	size_t i;

	if (json_is_string(types))
		return has_type(value, json_string_value(types));
	json_array_foreach(types, i, type) found =
		found || has_type(value, json_string_value(type));
	return found;
}

static void validate(const json_t *root, const json_t *schema, const json_t *value);

static void validate_object(const json_t *root, const json_t *schema, const json_t *value)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *additional = json_object_get(schema, "additionalProperties");
	const char *key;
	json_t *member, *name;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i, name)
	{
		if (!json_object_get(value, json_string_value(name)))
			fail_msg("%s is missing", json_string_value(name));
	}
	json_object_foreach((json_t *)value, key, member)
	{
		const json_t *known = json_object_get(properties, key);

		if (known)
			validate(root, known, member);
		else if (json_is_object(additional))
			validate(root, additional, member);
		else if (json_is_false(additional))
			fail_msg("%s is not in the schema", key);
	}
}

/* As much of JSON Schema as this schema uses. */
static void validate(const json_t *root, const json_t *schema, const json_t *value)
{
	const json_t *choices, *minimum, *constant;
	json_t *item;
	size_t i;

	schema = resolve(root, schema);
	choices = json_object_get(schema, "enum");
	minimum = json_object_get(schema, "minimum");
	constant = json_object_get(schema, "const");
	if (json_object_get(schema, "type"))
		assert_true(has_one_of(value, json_object_get(schema, "type")));
	if (constant)
		assert_true(json_equal(constant, value));
	if (minimum && !json_is_null(value))
		assert_true(json_number_value(value) >= json_number_value(minimum));
	if (choices) {
		bool found = false;

		json_array_foreach(choices, i, item) found = found || json_equal(item, value);
		assert_true(found);
	}
	if (json_is_object(value))
		validate_object(root, schema, value);
	if (!json_is_array(value) || !json_object_get(schema, "items"))
		return;
	json_array_foreach(value, i, item) validate(root, json_object_get(schema, "items"), item);
}

static void test_json_keeps_to_the_schema(void **unused)
{
	struct script script;
	struct rls_report *report = full_report(&script);
	char *text = render(report, "json", NULL);
	json_t *schema = json_loads(rls_report_schema(), JSON_REJECT_DUPLICATES, NULL);
	json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const json_t *process;

	assert_non_null(schema);
	assert_non_null(value);
	validate(schema, schema, value);
	process = json_array_get(json_object_get(value, "processes"), 0);
	assert_string_equal(json_string_value(json_object_get(process, "name")),
			    "name, \"quoted\"\n\x1b[31m and \xe2\x80\xae turned");
	assert_int_equal(json_integer_value(json_object_get(process, "ns_pid")), 5);
	assert_int_equal(json_array_size(json_object_get(process, "cmdline")), 2);
	assert_int_equal(json_array_size(json_object_get(json_object_get(value, "host"), "gpus")),
			 2);
	assert_null(json_object_get(value, "lines"));
	json_decref(schema);
	json_decref(value);
	free(text);
	rls_report_free(report);
	script_end(&script);
}

static bool is_required(const json_t *items, const char *name)
{
	json_t *required;
	size_t i;

	json_array_foreach(json_object_get(items, "required"), i, required)
	{
		if (!strcmp(json_string_value(required), name))
			return true;
	}
	return false;
}

/* What a column's values are, by the schema's words. */
static const char *schema_type(const struct rls_column *column)
{
	switch (column->type) {
	case RLS_COLUMN_U32:
	case RLS_COLUMN_U64:
	case RLS_COLUMN_I32:
	case RLS_COLUMN_I64:
		return "integer";
	case RLS_COLUMN_DOUBLE:
		return "number";
	case RLS_COLUMN_BOOL:
		return "boolean";
	case RLS_COLUMN_STRINGS:
		return "array";
	default:
		return "string";
	}
}

static void check_column(const json_t *schema, const json_t *items, const struct rls_table *table,
			 const struct rls_column *column)
{
	const json_t *known = json_object_get(json_object_get(items, "properties"), column->name);
	json_t *null = json_null();
	const json_t *types, *value;
	bool nullable;

	if (!known)
		fail_msg("the schema's %s lacks \"%s\": {\"type\": \"%s\"}", table->name,
			 column->name, schema_type(column));
	if (is_required(items, column->name) == !!(column->flags & RLS_OPTIONAL))
		fail_msg("%s.%s is %s", table->name, column->name,
			 column->flags & RLS_OPTIONAL ? "optional" : "required");
	known = resolve(schema, known);
	types = json_object_get(known, "type");
	value = json_array_get(json_object_get(known, "enum"), 0);
	if (value) { /* words */
		assert_string_equal(schema_type(column), "string");
		assert_true(json_is_string(value));
		return;
	}
	nullable = has_one_of(null, types);
	if (nullable != !!(column->flags & RLS_NULLABLE))
		fail_msg("%s.%s %s null", table->name, column->name,
			 nullable ? "may not be" : "may be");
	if (json_is_array(types))
		types = json_array_get(types, 0);
	assert_string_equal(json_string_value(types), schema_type(column));
}

/* Every column of the table, and nothing else but the arrays that its rows hold. */
static void check_items(const json_t *schema, const json_t *items, const struct rls_table *table)
{
	size_t columns = 0, inner = 0;

	for (size_t i = 0; i < table->column_count; i++) {
		if (table->columns[i].flags & (RLS_HIDDEN | RLS_OUTER))
			continue;
		check_column(schema, items, table, &table->columns[i]);
		columns++;
	}
	for (int i = 0; i < RLS_TABLE_MAX; i++) {
		const struct rls_table *held = &rls_report_tables[i];
		const json_t *array =
			held->json_name ? json_object_get(json_object_get(items, "properties"),
							  held->json_name)
					: NULL;

		if (!held->json_name || &rls_report_tables[held->outer] != table)
			continue;
		assert_non_null(array);
		check_items(schema, json_object_get(array, "items"), held);
		inner++;
	}
	assert_int_equal(json_object_size(json_object_get(items, "properties")), columns + inner);
}

/* A column that the schema does not know, or takes for something else, or the other way round. */
static void test_tables_are_the_schema(void **unused)
{
	json_t *schema = json_loads(rls_report_schema(), 0, NULL);
	const json_t *properties = json_object_get(schema, "properties");

	for (int table = 0; table < RLS_TABLE_MAX; table++) {
		const struct rls_table *of = &rls_report_tables[table];
		const json_t *array = json_object_get(properties, of->name);
		bool required = of->json_when == RLS_JSON_ALWAYS;

		if (!of->json)
			continue;
		if (!array)
			fail_msg("the schema lacks \"%s\"", of->name);
		check_items(schema, json_object_get(array, "items"), of);
		assert_int_equal(is_required(schema, of->name), required);
	}
	json_decref(schema);
}

/* What table_rows.c takes for granted of a descriptor. */
static void test_tables_are_sound(void **unused)
{
	bool places[RLS_TABLE_MAX + 1] = {false};

	for (int i = 0; i < RLS_TABLE_ALL; i++) {
		const struct rls_table *table = &rls_report_tables[i];
		bool summed = table->flags & (RLS_TABLE_GROUPED | RLS_TABLE_DISTINCT);
		unsigned int keys = 0;

		assert_true(table->columns && table->column_count);
		assert_int_equal(i < RLS_TABLE_MAX, table->name != NULL);
		assert_true(!table->inner || !rls_report_tables[table->outer].inner);
		assert_true(table->json <= RLS_TABLE_MAX && (!table->json || !places[table->json]));
		places[table->json] = true;
		for (size_t k = 0; k < table->column_count; k++) {
			const struct rls_column *column = &table->columns[k];

			assert_true(column->key <= 8 &&
				    !(keys & 1u << column->key >> 1 && column->key));
			keys |= column->key ? 1u << (column->key - 1) : 0;
			/* A row that is summed into another one is dropped as it is. */
			assert_false(summed && column->type == RLS_COLUMN_STRINGS);
			assert_true(!(column->flags & RLS_SUM) || column->type == RLS_COLUMN_U64 ||
				    column->type == RLS_COLUMN_DOUBLE);
			assert_true(!(column->flags & RLS_WORST) ||
				    column->type == RLS_COLUMN_METHOD ||
				    column->type == RLS_COLUMN_MEMORY_METHOD);
			assert_true(!(column->flags & RLS_INSTANT) ||
				    column->type == RLS_COLUMN_U64);
			assert_true(!(column->flags & (RLS_PID | RLS_FRAME)) ||
				    column->type == RLS_COLUMN_U32);
			assert_true(!(column->flags & RLS_NULLABLE) ||
				    column->type == RLS_COLUMN_U64 ||
				    column->type == RLS_COLUMN_DOUBLE);
			assert_true(!(column->flags & RLS_OUTER) || table->inner);
			/* Blanked, and no longer distinguished by it: so it must be a key. */
			assert_true(
				!(column->flags &
				  (RLS_BY_THREAD | RLS_BY_PHASE | RLS_BY_OPERATION | RLS_BY_PLACE |
				   RLS_BY_FILE | RLS_BY_FUNCTION | RLS_BY_LINE)) ||
				column->key);
		}
		/* 1, 2, 3, without a gap. */
		assert_int_equal(keys & (keys + 1), 0);
	}
}

/* --- csv ---------------------------------------------------------------------------- */

static void test_csv_quotes(void **unused)
{
	struct rls_write_options options = {.table = RLS_TABLE_TRANSITIONS};
	struct script script;
	struct rls_report *report = full_report(&script);
	char *text = render(report, "csv", &options);

	assert_string_equal(text, "pid,tid,phase,operation,from,to,count,method,error,count_error\n"
				  "1,1,,\"op,\"\"\xc3\xa9\"\"\",python,cuda_api,1,traced,0,0\n");
	free(text);
	options.table = RLS_TABLE_GPU;
	text = render(report, "csv", &options);
	assert_string_equal(text, "pid,device,busy_ns,kernel_ns,memcpy_ns,kernels,smi_style_"
				  "percent,idle_host_late_ns,idle_queue_ns,idle_other_ns\n"
				  "1,0,32,32,0,2,100,0,0,58\n");
	free(text);
	options.table = RLS_TABLE_GPU_OPERATIONS;
	text = render(report, "csv", &options);
	assert_string_equal(text,
			    "pid,device,phase,operation,busy_ns,kernels,kernel_ns,idle_host_late_"
			    "ns,idle_queue_ns,idle_other_ns\n"
			    "1,0,,,22,1,22,0,0,58\n1,0,,\"op,\"\"\xc3\xa9\"\"\",10,1,10,0,0,0\n");
	free(text);
	rls_report_free(report);
	script_end(&script);
}

/* --- sqlite ------------------------------------------------------------------------- */

/* What is in the database the clients' tests say (tests/clients/test_tables.py). */
static void test_sqlite_is_a_file_of_its_own(void **unused)
{
	const struct rls_report_writer *writer = rls_report_writer_find("sqlite");
	char path[] = "/tmp/rls-writers-XXXXXX";
	struct script script;
	struct rls_report *report = full_report(&script);
	const struct rls_named_report named[] = {{"a", report}, {"b \xff", report}};
	struct rls_write_options options = {.reports = named, .report_count = 2};
	int fd = mkstemp(path);
	FILE *out = fdopen(fd, "w+");

	assert_non_null(out);
	assert_int_equal(rls_report_writer_check(writer, NULL), -EINVAL);
	assert_int_equal(rls_report_writer_check(rls_report_writer_find("json"), NULL), 0);
	assert_int_equal(rls_report_writer_check(writer, path), 0);
	fputs("figures", out);
	fflush(out);
	assert_int_equal(rls_report_writer_check(writer, path), -EEXIST);
	rewind(out);
	assert_int_equal(rls_report_write(report, writer, out, &options), 0);
	assert_int_equal(rls_report_writer_check(writer, path), 0);
	setenv("TMPDIR", "/tmp/rls-no-such-folder", 1);
	assert_int_equal(rls_report_write(report, writer, out, &options), -ENOENT);
	unsetenv("TMPDIR");
	fclose(out);
	unlink(path);
	rls_report_free(report);
	script_end(&script);
}

/* --- html --------------------------------------------------------------------------- */

static void assert_title(const char *name, const char *expected)
{
	const struct rls_write_options options = {0};
	struct rls_report *report;
	struct script script;
	char *text;

	script_begin(&script);
	add_process(&script, 10, 1, name);
	add_end(&script, 20);
	report = script_report(&script);
	text = render(report, "html", &options);
	assert_non_null(strstr(text, expected));
	free(text);
	rls_report_free(report);
	script_end(&script);
}

static void test_titles_are_cut_between_characters(void **unused)
{
	char name[301] = "x", expected[301];

	assert_title("python3", "<title>python3 (1)");
	memset(name, 'x', 200);
	snprintf(expected, sizeof(expected), ">%.200s (1)", name);
	assert_title(name, expected);
	memcpy(name + 200, "y\xc3\xa9", 4);
	assert_title(name, expected);
	memcpy(name + 198, "\xe6\xa8\xa1", 4); /* from 198 to 200: half of it would fit */
	snprintf(expected, sizeof(expected), ">%.198s (1)", name);
	assert_title(name, expected);
	memcpy(name + 197, "\xe6\xa8\xa1", 4);
	snprintf(expected, sizeof(expected), ">%.200s (1)", name);
	assert_title(name, expected);
}

/* --- text --------------------------------------------------------------------------- */

static unsigned int widest_table_line(const char *text)
{
	unsigned int widest = 0;

	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[1024];

		assert_true(length < sizeof(line));
		memcpy(line, text, length);
		line[length] = '\0';
		if (!strncmp(line, "  ", 2) && rls_text_width(line) > widest)
			widest = rls_text_width(line);
		text += length + !!text[length];
	}
	return widest;
}

static void test_text_is_harmless_and_fits(void **unused)
{
	static const unsigned int widths[] = {80, 81, 100, 132, 200};
	struct script script;
	struct rls_report *report = full_report(&script);

	for (size_t i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
		struct rls_write_options options = {.columns = widths[i]};
		char *text = render(report, "text", &options);

		assert_null(strchr(text, '\x1b'));
		assert_null(strstr(text, "\xe2\x80\xae"));
		assert_non_null(strstr(text, "lost: 1 event of buffer control"));
		assert_non_null(strstr(text, "python → cuda_api"));
		assert_non_null(strstr(text, "GPU busy while no thread was traced: 20 ns"));
		assert_true(widest_table_line(text) <= widths[i]);
		free(text);
	}
	rls_report_free(report);
	script_end(&script);
}

static void test_numbers(void **unused)
{
	char buffer[RLS_TEXT_NUMBER_BYTES];

	assert_string_equal(rls_text_ns(buffer, 0), "0 ns");
	assert_string_equal(rls_text_ns(buffer, 999), "999 ns");
	assert_string_equal(rls_text_ns(buffer, 1700000), "1.700 ms");
	assert_string_equal(rls_text_ns(buffer, 12345678), "12.35 ms");
	assert_string_equal(rls_text_ns(buffer, 3600000000000), "3600.0 s");
	assert_string_equal(rls_text_count(buffer, 999), "999");
	assert_string_equal(rls_text_count(buffer, 1000), "1,000");
	assert_string_equal(rls_text_count(buffer, 12345678), "12,345,678");
	assert_string_equal(rls_text_share(buffer, 1, 3), "33.3%");
	assert_string_equal(rls_text_estimate(buffer, 1945556, 0, RLS_METHOD_TRACED), "1,945,556");
	assert_string_equal(rls_text_estimate(buffer, 1945556, 200000, RLS_METHOD_SCALED),
			    "~1.95 M ± 0.20 M");
	assert_string_equal(rls_text_estimate(buffer, 999999, 12345, RLS_METHOD_SCALED),
			    "~1.00 M ± 0.01 M");
	assert_string_equal(rls_text_estimate(buffer, 45, 28, RLS_METHOD_SCALED), "~45 ± 28");
	assert_string_equal(rls_text_estimate(buffer, 5, 123456, RLS_METHOD_SCALED),
			    "~0.01 k ± 123.46 k");
	assert_string_equal(rls_text_estimate(buffer, 500, 20, RLS_METHOD_TRACED), "500 ± 20");
	assert_string_equal(rls_text_estimate(buffer, RLS_COUNT_UNKNOWN, 0, RLS_METHOD_SCALED),
			    "not known");
	assert_string_equal(rls_text_estimate_ns(buffer, 12345678, 1200000, RLS_METHOD_SCALED),
			    "~12.3 ± 1.2 ms");
	assert_string_equal(rls_text_estimate_ns(buffer, 12345678, 0, RLS_METHOD_TRACED),
			    "12.35 ms");
	assert_string_equal(rls_text_estimate_ns(buffer, 999, 5, RLS_METHOD_SCALED), "~999 ± 5 ns");
	assert_string_equal(rls_text_share(buffer, 1, 0), "-");
}

static void check_print(const char *text, unsigned int columns, const char *expected)
{
	char *printed = NULL;
	size_t bytes;
	FILE *out = open_memstream(&printed, &bytes);

	rls_text_print(out, text, columns);
	fclose(out);
	assert_string_equal(printed, expected);
	free(printed);
}

static void test_names_are_cut_and_padded(void **unused)
{
	check_print("abc", 5, "abc  ");
	check_print("abcdef", 4, "abc…");
	check_print("模拟器", 5, "模拟…");
	check_print("模拟器", 4, "模… ");
	check_print("é\x01\xc2\x9b", 0, "é??");
	check_print("ab\xe6\xa8", 0, "ab?");
}

/* --- the tree, and outputs that fail ------------------------------------------------ */

static void test_tree_of_processes(void **unused)
{
	static const uint32_t parents[][2] = {{5, 1}, {7, 5}, {6, 5}, {9, 7}, {20, 21}, {21, 20}};
	static const struct {
		uint32_t pid, depth;
	} expected[] = {{5, 0}, {6, 1}, {7, 1}, {9, 2}, {20, 0}, {21, 1}};
	struct rls_tree_node *nodes;
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	for (size_t i = 0; i < 6; i++)
		script_add(&script, RLS_EVENT_PROCESS, 1, parents[i][0], 0)->process.ppid =
			parents[i][1];
	add_end(&script, 10);
	report = script_report(&script);
	assert_int_equal(rls_tree_order(report, &nodes), 0);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(nodes[i].process->pid, expected[i].pid);
		assert_int_equal(nodes[i].depth, expected[i].depth);
	}
	free(nodes);
	rls_report_free(report);
	script_end(&script);
}

static void test_sort_words(void **unused)
{
	enum rls_sort sort = RLS_SORT_NAME;

	assert_int_equal(rls_sort_parse("time", &sort), 0);
	assert_int_equal(sort, RLS_SORT_TIME);
	assert_int_equal(rls_sort_parse("on-cpu", &sort), 0);
	assert_int_equal(sort, RLS_SORT_ON_CPU);
	assert_int_equal(rls_sort_parse("size", &sort), -EINVAL);
	assert_int_equal(rls_sort_parse("", &sort), -EINVAL);
	assert_int_equal(sort, RLS_SORT_ON_CPU);
}

/* Whatever a bar is of, it is as long as it says. */
static void test_bars(void **unused)
{
	for (unsigned int eighths = 0; eighths < 30; eighths++) {
		_cleanup_free_ char *text = NULL;
		size_t bytes;
		FILE *out = open_memstream(&text, &bytes);

		assert_non_null(out);
		rls_text_bar(out, eighths);
		fclose(out);
		assert_int_equal(rls_text_width(text), (eighths + 7) / 8);
	}
}

static void test_a_full_disk_is_noticed(void **unused)
{
	static const char *const formats[] = {"text", "json", "csv"};
	struct script script;
	struct rls_report *report = full_report(&script);

	for (size_t i = 0; i < 3; i++) {
		FILE *out = fopen("/dev/full", "we");

		assert_non_null(out);
		assert_int_equal(
			rls_report_write(report, rls_report_writer_find(formats[i]), out, NULL),
			-ENOSPC);
		fclose(out);
	}
	rls_report_free(report);
	script_end(&script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_keeps_to_the_schema),
		cmocka_unit_test(test_tables_are_the_schema),
		cmocka_unit_test(test_tables_are_sound),
		cmocka_unit_test(test_sqlite_is_a_file_of_its_own),
		cmocka_unit_test(test_csv_quotes),
		cmocka_unit_test(test_titles_are_cut_between_characters),
		cmocka_unit_test(test_text_is_harmless_and_fits),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_names_are_cut_and_padded),
		cmocka_unit_test(test_tree_of_processes),
		cmocka_unit_test(test_sort_words),
		cmocka_unit_test(test_bars),
		cmocka_unit_test(test_a_full_disk_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
