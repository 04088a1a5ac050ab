/* The three forms of one report: complete, exact, and harmless whatever a target is called. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/base/cleanup.h"
#include "analysis/writers/text/text_format.h"
#include "analysis/writers/text/text_tree.h"
#include "analysis/writers/write.h"
#include "tests/analysis/writers/full_report.h"

/* --- json and its schema ------------------------------------------------------------ */

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
