/* Every case of this folder: events.jsonl (and another.jsonl with it) must give exactly expected.json, .txt, .csv, ...
 *
 * RLS_UPDATE_GOLDEN=1 writes them instead (scripts/update-golden); read the difference before
 * committing it.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "analysis/base/cleanup.h"
#include "analysis/writers/write.h"

#define PATH_BYTES 512

struct form {
	const char *format;
	const char *file;
	const char *only; /* the case that has it; NULL: each */
	enum rls_group group;
	enum rls_report_table table;
	struct rls_write_options text; /* colour, columns, top, sort, stacks */
};

static const struct form forms[] = {
	{.format = "json", .file = "expected.json"},
	{.format = "text", .file = "expected.txt"},
	{.format = "csv", .file = "expected.csv"},
	{.format = "jsonl", .file = "expected.jsonl"},
	{.format = "html", .file = "expected.html"},
	{.format = "folded", .file = "expected.folded"},
	{.format = "chrome", .file = "expected.chrome"},
	{.format = "speedscope", .file = "expected.speedscope"},
	{.format = "pprof", .file = "expected.pprof"},
	{.format = "perfetto", .file = "expected.perfetto"},
	{.format = "text",
	 .file = "expected.wide.txt",
	 .only = "two_processes",
	 .text = {.colour = true, .columns = 120}},
	{.format = "text",
	 .file = "expected.top.txt",
	 .only = "two_processes",
	 .group = RLS_GROUP_OPERATION,
	 .text = {.columns = 66, .top = 1, .sort = RLS_SORT_NAME}},
	{.format = "text",
	 .file = "expected.threads.txt",
	 .only = "two_processes",
	 .group = RLS_GROUP_THREAD,
	 .text = {.sort = RLS_SORT_ERROR}},
	{.format = "text",
	 .file = "expected.phases.txt",
	 .only = "two_processes",
	 .group = RLS_GROUP_PHASE},
	{.format = "text",
	 .file = "expected.lines.txt",
	 .only = "samples",
	 .group = RLS_GROUP_LINE},
	{.format = "text",
	 .file = "expected.functions.txt",
	 .only = "samples",
	 .group = RLS_GROUP_FUNCTION},
	{.format = "text",
	 .file = "expected.files.txt",
	 .only = "samples",
	 .group = RLS_GROUP_FILE},
	{.format = "folded",
	 .file = "expected.sampled.folded",
	 .only = "samples",
	 .text = {.stacks = RLS_STACKS_SAMPLED}},
	{.format = "csv",
	 .file = "expected.lines.csv",
	 .only = "samples",
	 .table = RLS_TABLE_LINES},
	{.format = "csv",
	 .file = "expected.functions.csv",
	 .only = "samples",
	 .table = RLS_TABLE_FUNCTIONS},
	{.format = "csv",
	 .file = "expected.samples.csv",
	 .only = "samples",
	 .table = RLS_TABLE_SAMPLES},
	{.format = "text",
	 .file = "expected.memory.txt",
	 .only = "memory",
	 .group = RLS_GROUP_LINE,
	 .text = {.memory = true, .full = true}},
	{.format = "text",
	 .file = "expected.memory_operations.txt",
	 .only = "memory",
	 .group = RLS_GROUP_OPERATION,
	 .text = {.memory = true}},
	{.format = "text",
	 .file = "expected.memory_files.txt",
	 .only = "memory",
	 .group = RLS_GROUP_FILE,
	 .text = {.memory = true, .colour = true, .columns = 100}},
	{.format = "text",
	 .file = "expected.memory.txt",
	 .only = "figure3",
	 .text = {.memory = true}},
	{.format = "csv",
	 .file = "expected.memory_lines.csv",
	 .only = "memory",
	 .table = RLS_TABLE_MEMORY_LINES},
	{.format = "csv",
	 .file = "expected.memory_functions.csv",
	 .only = "memory",
	 .group = RLS_GROUP_FUNCTION,
	 .table = RLS_TABLE_MEMORY_LINES},
	{.format = "csv",
	 .file = "expected.memory_timeline.csv",
	 .only = "memory",
	 .table = RLS_TABLE_MEMORY_TIMELINE},
	{.format = "pprof",
	 .file = "expected.memory.pprof",
	 .only = "memory",
	 .text = {.memory = true}},
};

struct content {
	char *bytes;
	size_t count;
};

/* A memory stream's text is where it stays only once the stream is closed. */
static struct content read_file(const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	struct content content = {0};
	FILE *copy = open_memstream(&content.bytes, &content.count);
	int c;

	assert_non_null(copy);
	while (file && (c = getc(file)) != EOF)
		putc(c, copy);
	fclose(copy);
	return content;
}

/* Compressed bytes are zlib's affair and differ between its versions; their content is ours. */
static void unpack(struct content *content)
{
	struct content plain = {.bytes = malloc(1 << 20), .count = 1 << 20};
	z_stream stream = {
		.next_in = (unsigned char *)content->bytes,
		.avail_in = (unsigned int)content->count,
		.next_out = (unsigned char *)plain.bytes,
		.avail_out = (unsigned int)plain.count,
	};

	assert_non_null(plain.bytes);
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	plain.count = stream.total_out;
	inflateEnd(&stream);
	free(content->bytes);
	*content = plain;
}

/* Of a page, its data: style, markup and scripts are looked at in a browser. */
static void keep_data(struct content *content)
{
	char *begin = strstr(content->bytes, "<script type=");
	char *end = strstr(content->bytes, "<script>");

	assert_true(begin && end && begin < end);
	content->count = (size_t)(end - begin);
	memmove(content->bytes, begin, content->count);
	content->bytes[content->count] = '\0';
}

static struct rls_report *read_trace(const char *path, struct rls_tracks *tracks)
{
	char message[256];
	struct rls_event_source *source;
	struct rls_report *report;

	if (rls_event_source_open(path, &source, message, sizeof(message)))
		fail_msg("%s", message);
	assert_int_equal(rls_report_build_tracks(source, tracks, &report), 0);
	source->free(source);
	return report;
}

static struct rls_report *read_case(const char *name, struct rls_tracks *tracks)
{
	struct rls_report *report, *other;
	char path[PATH_BYTES];
	uint32_t pid;

	snprintf(path, sizeof(path), "%s/events.jsonl", name);
	report = read_trace(path, tracks);
	snprintf(path, sizeof(path), "%s/another.jsonl", name);
	if (!access(path, F_OK)) {
		other = read_trace(path, tracks);
		assert_int_equal(rls_report_merge(report, other, &pid), 0);
		rls_report_free(other);
	}
	return report;
}

static struct content render(const char *name, const struct form *form)
{
	const struct rls_report_writer *writer = rls_report_writer_find(form->format);
	struct rls_write_options options = form->text;
	struct rls_report *report;
	struct content content = {0};
	FILE *out = open_memstream(&content.bytes, &content.count);

	assert_non_null(out);
	options.table = form->table;
	assert_int_equal(rls_report_writer_tracks(writer, out, &options.tracks), 0);
	report = read_case(name, options.tracks);
	rls_report_group(report, form->group);
	assert_int_equal(rls_report_write(report, writer, out, &options), 0);
	rls_tracks_free(options.tracks);
	rls_report_free(report);
	fclose(out);
	if (!strcmp(form->format, "pprof"))
		unpack(&content);
	if (!strcmp(form->format, "html"))
		keep_data(&content);
	return content;
}

static void check(const char *path, const struct content *content)
{
	struct content expected;

	if (getenv("RLS_UPDATE_GOLDEN")) {
		_cleanup_fclose_ FILE *file = fopen(path, "we");

		assert_non_null(file);
		fwrite(content->bytes, 1, content->count, file);
		return;
	}
	expected = read_file(path);
	if (expected.count != content->count ||
	    memcmp(expected.bytes, content->bytes, content->count))
		fail_msg("%s has\n%s\nbut the report now is\n%s", path, expected.bytes,
			 content->bytes);
	free(expected.bytes);
}

static void test_cases(void **unused)
{
	DIR *folder = opendir(".");
	const struct dirent *entry;
	int cases = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		char path[PATH_BYTES];

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
			struct content content;

			if (forms[i].only && strcmp(forms[i].only, entry->d_name))
				continue;
			content = render(entry->d_name, &forms[i]);
			snprintf(path, sizeof(path), "%.200s/%s", entry->d_name, forms[i].file);
			check(path, &content);
			free(content.bytes);
		}
		cases++;
	}
	closedir(folder);
	assert_true(cases >= 3);
}

/* The learner's host booted 5 s of wall time before the worker's: the worker's times are later by
 * that on the learner's clock, and nothing else of it changes. */
static void test_two_hosts(void **unused)
{
	struct rls_report *report = read_case("two_hosts", NULL);

	assert_int_equal(report->process_count, 2);
	assert_int_equal(report->processes[0].start_ns, 6000000000);
	assert_int_equal(report->processes[1].start_ns, 1200000000 + 5000000000);
	assert_int_equal(report->processes[1].end_ns, 2000000000 + 5000000000);
	assert_int_equal(report->threads[1].wall_ns, 800000000);
	assert_int_equal(report->end_ns, 8000000000);
	assert_int_equal(report->warning_count, 1);
	assert_non_null(strstr(report->warnings[0], "to within 150 ns"));
	assert_non_null(strstr(report->warnings[0], "up to 2000 ns"));
	rls_report_free(report);
}

/* Hosts number their processes alike; one host has each number once. */
static void test_hosts_alike(void **unused)
{
	struct rls_report *report = read_case("hosts_alike", NULL);
	struct rls_report *again = read_trace("hosts_alike/another.jsonl", NULL);
	uint32_t pid;

	assert_int_equal(report->host_count, 2);
	assert_int_equal(report->process_count, 3);
	for (size_t i = 0; i < report->process_count; i++) {
		const struct rls_process_entry *process = &report->processes[i];

		assert_int_equal(process->host, strcmp(process->name, "learner") != 0);
		assert_int_equal(process->host_pid, strcmp(process->name, "worker") ? 0 : 10);
		assert_true(!i || process->pid != report->processes[i - 1].pid);
	}
	assert_int_equal(rls_report_merge(report, again, &pid), -EEXIST);
	rls_report_free(again);
	rls_report_free(report);
}

/* RL-Scope, MLSys 2021, figure 3: whatever the golden files say, these two figures hold. */
static void test_figure3(void **unused)
{
	struct rls_report *report = read_case("figure3", NULL);
	uint64_t cpu_ns = 0, cpu_gpu_ns = 0;

	for (size_t i = 0; i < report->breakdown_count; i++) {
		const struct rls_breakdown_row *row = &report->breakdown[i];

		if (strcmp(row->operation, "expand_leaf"))
			continue;
		if (row->resource == RLS_RESOURCE_CPU)
			cpu_ns += row->wall_ns;
		else
			cpu_gpu_ns += row->wall_ns;
	}
	assert_int_equal(cpu_ns, 790000);
	assert_int_equal(cpu_gpu_ns, 1700000);
	rls_report_free(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_figure3),
		cmocka_unit_test(test_two_hosts),
		cmocka_unit_test(test_hosts_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
