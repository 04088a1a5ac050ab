/* The text form: exactly the lines that are promised, nothing lost on the way through. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/event/memory_source.h"
#include "analysis/trace/text_form.h"
#include "analysis/trace/trace_damage.h"
#include "analysis/trace/trace_reader.h"
#include "event_maker.h"

#define END_LINE "{\"event\":\"end\",\"time_ns\":100,\"complete\":true}\n"

static char *read_text(const char *text, bool *damaged)
{
	struct rls_event_source *source;
	char message[200];

	assert_int_equal(rls_text_reader_open(memory_file(text, strlen(text)), NULL, &source,
					      message, sizeof(message)),
			 0);

	char *got = render(source);

	*damaged = source->damaged;
	source->free(source);
	return got;
}

static void assert_reads_as(const char *text, const char *expected, bool expected_damage)
{
	bool damaged;
	char *got = read_text(text, &damaged);

	assert_string_equal(got, expected);
	assert_int_equal(damaged, expected_damage);
	free(got);
}

/* In order of time and meaning, as the writer spells them: each reads back as itself. */
static const char all_kinds[] =
	"{\"event\":\"host\",\"time_ns\":0,\"kernel\":\"6.18\",\"gpus\":[\"H100\"],\"tool\":"
	"\"rlscope-bpf 0\",\"cpus\":2}\n"
	"{\"event\":\"calibration\",\"time_ns\":0,\"name\":\"emulated.entry\",\"value_ns\":640.5,"
	"\"error_ns\":-0.0}\n"
	"{\"event\":\"process\",\"time_ns\":0,\"pid\":1,\"ppid\":0,\"name\":\"python3\"}\n"
	"{\"event\":\"process\",\"time_ns\":0,\"pid\":2,\"ppid\":1,\"name\":\"w\",\"ns_pid\":9,"
	"\"python\":\"3.11.2\","
	"\"cmdline\":[\"python3\",\"a b\"],\"container\":\"c0\"}\n"
	"{\"event\":\"library\",\"time_ns\":0,\"pid\":1,\"path\":\"/"
	"x.so\",\"role\":\"backend\",\"sites\":3}\n"
	"{\"event\":\"thread\",\"time_ns\":0,\"pid\":1,\"tid\":1,\"name\":\"\"}\n"
	"{\"event\":\"phase\",\"time_ns\":0,\"pid\":1,\"phase\":\"train\"}\n"
	"{\"event\":\"operation\",\"time_ns\":5,\"pid\":1,\"tid\":1,\"stack\":[\"step\","
	"\"inference\"]}\n"
	"{\"event\":\"operation\",\"time_ns\":6,\"pid\":1,\"tid\":1,\"stack\":[]}\n"
	"{\"event\":\"category\",\"time_ns\":10,\"pid\":1,\"tid\":1,\"category\":\"backend\"}\n"
	"{\"event\":\"hits\",\"time_ns\":10,\"pid\":1,\"tid\":1,\"count\":3,\"cost_ns\":2100}\n"
	"{\"event\":\"off_cpu\",\"time_ns\":10,\"pid\":1,\"tid\":1,\"ns\":9223372036854775807}\n"
	"{\"event\":\"launch\",\"time_ns\":20,\"pid\":1,\"tid\":1,\"name\":\"cudaLaunchKernel\","
	"\"correlation\":7}\n"
	"{\"event\":\"gpu\",\"start_ns\":30,\"pid\":1,\"end_ns\":40,\"device\":0,\"kind\":"
	"\"kernel\",\"name\":\"g\\\"\\\\\\u000a\",\"correlation\":7}\n"
	"{\"event\":\"share\",\"time_ns\":40,\"pid\":1,\"tid\":1,\"category\":\"python\","
	"\"waited_ns\":4294967296}\n"
	"{\"event\":\"layer\",\"time_ns\":41,\"pid\":1,\"tid\":1,\"depth\":2,\"id\":4,\"begun\":"
	"true,"
	"\"pass\":\"forward\"}\n"
	"{\"event\":\"memory_line\",\"time_ns\":50,\"pid\":1,\"source\":\"gpu\",\"device\":3,"
	"\"allocs\":0,\"alloc_bytes\":0,\"frees\":0,\"freed_bytes\":0,\"peak_bytes\":0,"
	"\"error_bytes\":5,\"method\":\"scaled\"}\n"
	"{\"event\":\"memory_line\",\"time_ns\":50,\"pid\":1,\"file\":\"/t.py\",\"line\":3,"
	"\"function\":\"f\",\"source\":\"tensor\",\"operation\":\"step\",\"phase\":\"train\","
	"\"allocs\":2,\"alloc_bytes\":8589934592,\"frees\":1,\"freed_bytes\":4294967296,"
	"\"peak_bytes\":8589934592,\"temporary_bytes\":4294967296,\"method\":\"counted\"}\n"
	"{\"event\":\"memory_ages\",\"time_ns\":50,\"pid\":1,\"source\":\"array\","
	"\"freed\":true,\"from_ns\":4,\"to_ns\":5,\"count\":1,\"bytes\":64}\n"
	"{\"event\":\"memory_use\",\"time_ns\":50,\"pid\":1,\"rss_bytes\":4294967296,"
	"\"used_bytes\":1,\"limit_bytes\":2}\n"
	"{\"event\":\"memory_use\",\"time_ns\":50,\"pid\":1,\"gpu\":true,\"device\":1,"
	"\"allocated_bytes\":3,\"reserved_bytes\":4,\"out_of_memory\":true}\n"
	"{\"event\":\"layer_name\",\"time_ns\":50,\"pid\":1,\"id\":4,\"parent\":3,\"path\":\"fc."
	"0\","
	"\"raw_path\":\"module.fc.0\",\"type\":\"Linear\"}\n"
	"{\"event\":\"loss\",\"time_ns\":50,\"buffer\":\"transitions\",\"dropped\":4}\n"
	"{\"event\":\"warning\",\"time_ns\":50,\"text\":\"naïve 模型\"}\n"
	"{\"event\":\"thread_end\",\"time_ns\":90,\"pid\":1,\"tid\":1}\n"
	"{\"event\":\"process_end\",\"time_ns\":90,\"pid\":1}\n" END_LINE;

static void every_kind_reads_back_as_itself(void **state)
{
	assert_reads_as(all_kinds, all_kinds, false);
}

static void order_of_lines_does_not_matter(void **state)
{
	char backwards[sizeof(all_kinds)] = "";
	char *copy = strdup(all_kinds);

	for (char *line; (line = strrchr(copy, '\n'));) {
		*line = '\0';
		line = strrchr(copy, '\n');
		strcat(strcat(backwards, line ? line + 1 : copy), "\n");
		if (line)
			line[1] = '\0';
		else
			break;
	}
	assert_int_equal(strlen(backwards), strlen(all_kinds));
	assert_reads_as(backwards, all_kinds, false);
	free(copy);
}

static void takes_what_others_may_write(void **state)
{
	assert_reads_as("\n  \r\n"
			" { \"tid\": 1, \"pid\": 1.0, \"event\": \"category\", \"time_ns\": 1e1,"
			" \"category\": \"python\", \"later\": {\"x\": [1]} }\r\n"
			"{\"event\":\"from_a_later_version\",\"time_ns\":-4}\n"
			"{\"event\":\"process\",\"time_ns\":0,\"pid\":1}\n"
			"{\"event\":\"process\",\"time_ns\":1,\"pid\":1,\"name\":null,\"cmdline\":["
			" \"a\" , \"\\u00e9\" ]}\n"
			"{\"event\":\"end\",\"time_ns\":100,\"complete\":true}", /* no line end */
			"{\"event\":\"process\",\"time_ns\":0,\"pid\":1,\"ppid\":0,\"name\":\"\"}\n"
			"{\"event\":\"process\",\"time_ns\":1,\"pid\":1,\"ppid\":0,\"name\":\"\","
			"\"cmdline\":[\"a\",\"é\"]}\n"
			"{\"event\":\"category\",\"time_ns\":10,\"pid\":1,\"tid\":1,\"category\":"
			"\"python\"}\n" END_LINE,
			false);
}

static void a_broken_line_is_named_and_left_out(void **state)
{
	static const char *const broken[][2] = {
		{"{\"event\":\"thread_end\"", "no JSON object"},
		{"[]", "no JSON object"},
		{"{\"time_ns\":1}", "\"event\""},
		{"{\"event\":7}", "\"event\""},
		{"{\"event\":\"thread_end\",\"pid\":1,\"tid\":1}", "\"time_ns\""},
		{"{\"event\":\"thread_end\",\"time_ns\":-1,\"pid\":1,\"tid\":1}", "\"time_ns\""},
		{"{\"event\":\"thread_end\",\"time_ns\":1.5,\"pid\":1,\"tid\":1}", "\"time_ns\""},
		{"{\"event\":\"thread_end\",\"time_ns\":9223372036854775808,\"pid\":1,\"tid\":1}",
		 "no JSON object"},
		{"{\"event\":\"thread_end\",\"time_ns\":1e300,\"pid\":1,\"tid\":1}", "\"time_ns\""},
		{"{\"event\":\"thread_end\",\"time_ns\":1,\"tid\":1}", "\"pid\""},
		{"{\"event\":\"thread_end\",\"time_ns\":1,\"pid\":4294967296,\"tid\":1}",
		 "\"pid\""},
		{"{\"event\":\"thread_end\",\"time_ns\":1,\"pid\":1}", "\"tid\""},
		{"{\"event\":\"category\",\"time_ns\":1,\"pid\":1,\"tid\":1}", "\"category\""},
		{"{\"event\":\"category\",\"time_ns\":1,\"pid\":1,\"tid\":1,\"category\":"
		 "\"coffee\"}",
		 "\"category\""},
		{"{\"event\":\"category\",\"time_ns\":1,\"pid\":1,\"tid\":1,\"category\":null}",
		 "\"category\""},
		{"{\"event\":\"operation\",\"time_ns\":1,\"pid\":1,\"tid\":1,\"stack\":[\"a\",3]}",
		 "\"stack\""},
		{"{\"event\":\"gpu\",\"pid\":1,\"kind\":\"kernel\",\"start_ns\":30,\"end_ns\":29}",
		 "\"end_ns\""},
		{"{\"event\":\"end\",\"time_ns\":1,\"complete\":1}", "\"complete\""},
	};
	char text[512];
	bool damaged;

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		snprintf(text, sizeof(text), END_LINE "\n%s\n", broken[i][0]);

		char *got = read_text(text, &damaged);

		assert_true(damaged);
		assert_non_null(strstr(got, END_LINE));
		assert_non_null(
			strstr(got, "{\"event\":\"warning\",\"time_ns\":100,\"text\":\"line 3 "));
		snprintf(text, sizeof(text), "%s", broken[i][1]);
		/* Quotes are escaped in the warning's own line. */
		if (text[0] == '"')
			text[strlen(text) - 1] = '\0';
		assert_non_null(strstr(got, text[0] == '"' ? text + 1 : text));
		free(got);
	}
}

static void many_broken_lines_are_summed_up(void **state)
{
	char text[1000] = END_LINE;
	unsigned int warnings = 0;
	bool damaged;

	for (int i = 0; i < 30; i++)
		strcat(text, "broken\n");

	char *got = read_text(text, &damaged);

	for (const char *at = got; (at = strstr(at, "\"warning\"")); at++)
		warnings++;
	assert_int_equal(warnings, 11);
	assert_non_null(strstr(got, "20 more lines"));
	free(got);
}

static void an_overlong_line_does_not_fill_memory(void **state)
{
	size_t bytes = (5u << 20) + sizeof(END_LINE);
	char *text = malloc(bytes);
	bool damaged;

	memset(text, ' ', bytes);
	text[0] = '{';
	text[(5u << 20) - 1] = '\n';
	memcpy(text + (5u << 20), END_LINE, sizeof(END_LINE));

	char *got = read_text(text, &damaged);

	assert_true(damaged);
	assert_non_null(strstr(got, "line 1 "));
	assert_non_null(strstr(got, END_LINE));
	free(got);
	free(text);
}

static void tells_a_missing_or_incomplete_end(void **state)
{
	static const char warning[] = "{\"event\":\"warning\",\"time_ns\":7,\"text\":\"%s\"}\n%s";
	static const char process_end[] = "{\"event\":\"process_end\",\"time_ns\":7,\"pid\":1}\n";
	static const char incomplete[] = "{\"event\":\"end\",\"time_ns\":7,\"complete\":false}\n";
	char expected[512];

	snprintf(expected, sizeof(expected), warning, RLS_DAMAGE_NO_END, process_end);
	assert_reads_as(process_end, expected, true);
	assert_reads_as(expected, expected, true); /* not written twice */
	snprintf(expected, sizeof(expected), warning, RLS_DAMAGE_INCOMPLETE, incomplete);
	assert_reads_as(incomplete, expected, true);
	assert_reads_as(expected, expected, true);
}

static void deep_stacks_keep_their_outer_names(void **state)
{
	char text[4096] =
		"{\"event\":\"operation\",\"time_ns\":1,\"pid\":1,\"tid\":1,\"stack\":[\"0\"";
	struct rls_event_source *source;
	struct rls_event event;
	char message[200];

	for (int i = 1; i < 100; i++)
		sprintf(text + strlen(text), ",\"%d\"", i);
	strcat(text, "]}\n" END_LINE);
	assert_int_equal(rls_text_reader_open(memory_file(text, strlen(text)), NULL, &source,
					      message, sizeof(message)),
			 0);
	assert_int_equal(source->next(source, &event), 1);
	assert_int_equal(event.operation.depth, RLS_OPERATION_DEPTH_MAX);
	assert_string_equal(rls_string_pool_get(source->strings, event.operation.stack[63]), "63");
	assert_false(source->damaged);
	source->free(source);
}

static void long_command_lines_stay_arrays(void **state)
{
	size_t bytes = 3 * RLS_STRING_BYTES_MAX;
	char *text = malloc(bytes);
	bool damaged;
	size_t at =
		sprintf(text, "{\"event\":\"process\",\"time_ns\":0,\"pid\":1,\"cmdline\":[\"a\"");

	while (at < bytes - 300)
		at += sprintf(text + at, ",\"argument %zu\"", at);
	sprintf(text + at, "]}\n" END_LINE);

	char *got = read_text(text, &damaged);

	assert_false(damaged);
	assert_non_null(strstr(got, "\"cmdline\":[\"a\",\"argument "));
	free(got);
	free(text);
}

/* A process line whose command line is the word and then so many ones. */
static char *with_ones(const char *word, size_t ones)
{
	char *text = malloc(200 + strlen(word) + 2 * ones);
	size_t at = sprintf(text,
			    "{\"event\":\"process\",\"time_ns\":0,\"pid\":1,\"ppid\":0,"
			    "\"name\":\"\",\"cmdline\":[%s",
			    word);

	while (ones--)
		at += sprintf(text + at, ",1");
	sprintf(text + at, "]}\n" END_LINE);
	return text;
}

static void a_command_line_keeps_all_items_that_fit(void **state)
{
	static const struct {
		const char *word;
		size_t ones, kept;
	} cases[] = {
		/* "[10" and "]" leave room for 2,046 times ",1": to the last byte. */
		{"10", 2045, 2045},
		{"10", 2046, 2046},
		{"10", 2047, 2046},
		{"10", 60000, 2046},
		{"9", 2046, 2046},
		{"9", 2047, 2046},
		/* Escapes, an array and characters of more than a byte count as they are written. */
		{"\"\\n\"", 2047, 2045},
		{"[1,[]]", 2046, 2044},
		{"\"\xc3\xa9\"", 2046, 2045},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = with_ones(cases[i].word, cases[i].ones);
		char *expected = with_ones(cases[i].word, cases[i].kept);

		assert_reads_as(text, expected, false);
		free(expected);
		free(text);
	}
}

static void an_item_that_is_too_long_takes_those_after_it_along(void **state)
{
	char word[RLS_STRING_BYTES_MAX + 1];

	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	word[0] = word[sizeof(word) - 2] = '"';

	char *text = with_ones(word, 3);

	assert_reads_as(text,
			"{\"event\":\"process\",\"time_ns\":0,\"pid\":1,\"ppid\":0,\"name\":\"\","
			"\"cmdline\":[]}\n" END_LINE,
			false);
	free(text);
}

static void refuses_what_holds_no_event(void **state)
{
	static const char *const texts[] = {"", "\n\n", "{\"version\": 1}\n", "{\n\"a\": [\n]}\n",
					    "{"};
	struct rls_event_source *source;
	char message[200];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(rls_text_reader_open(memory_file(texts[i], strlen(texts[i])), NULL,
						      &source, message, sizeof(message)),
				 -EINVAL);
		assert_non_null(strstr(message, "no trace"));
	}
}

/* Random events → trace → text → events: both forms read the same, and so does the text of
 * what was read from text. */
static void both_forms_are_equal(void **state)
{
	static struct rls_event events[1500];
	bool damaged;

	for (unsigned int round = 0; round < 30; round++) {
		struct event_maker maker = {.random = 900 + round,
					    .span_ns = 1ull << round,
					    .strings = rls_string_pool_new()};
		struct rls_event_source *source;
		size_t count = 50 * round;
		char message[200];

		for (size_t i = 0; i < count; i++)
			events[i] = event_maker_event(&maker);

		int fd = write_trace(events, count, maker.strings, 100);

		assert_int_equal(rls_trace_reader_open(fd, &source, message, sizeof(message)), 0);

		char *from_trace = render(source);
		char *from_text = read_text(from_trace, &damaged);

		assert_string_equal(from_text, from_trace);
		assert_null(strstr(from_text, "OUT OF ORDER"));
		assert_false(damaged);
		source->free(source);
		free(from_trace);
		free(from_text);
		rls_string_pool_free(maker.strings);
	}
}

struct watch {
	struct rls_event_source_watch watch;
	unsigned int reports;
	double share;
};

static void take_note(struct rls_event_source_watch *watch, double share, uint64_t events)
{
	struct watch *noted = (struct watch *)watch;

	assert_true(share > noted->share && share < 1);
	assert_int_equal(events, ++noted->reports * 16384);
	noted->share = share;
}

/* Lines may come in any order: all are read before the first event is given. */
static void tells_how_far_it_is(void **unused)
{
	static const char line[] =
		"{\"event\":\"phase\",\"time_ns\":1,\"pid\":1,\"phase\":\"a\"}\n";
	struct watch noted = {.watch.report = take_note};
	struct rls_event_source *source;
	char message[200], *text = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);

	assert_non_null(file);
	for (int i = 0; i < 40000; i++)
		fputs(line, file);
	fclose(file);
	assert_int_equal(rls_text_reader_open(memory_file(text, bytes), &noted.watch, &source,
					      message, sizeof(message)),
			 0);
	assert_int_equal(noted.reports, 2);
	source->free(source);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_how_far_it_is),
		cmocka_unit_test(every_kind_reads_back_as_itself),
		cmocka_unit_test(order_of_lines_does_not_matter),
		cmocka_unit_test(takes_what_others_may_write),
		cmocka_unit_test(a_broken_line_is_named_and_left_out),
		cmocka_unit_test(many_broken_lines_are_summed_up),
		cmocka_unit_test(an_overlong_line_does_not_fill_memory),
		cmocka_unit_test(tells_a_missing_or_incomplete_end),
		cmocka_unit_test(deep_stacks_keep_their_outer_names),
		cmocka_unit_test(long_command_lines_stay_arrays),
		cmocka_unit_test(a_command_line_keeps_all_items_that_fit),
		cmocka_unit_test(an_item_that_is_too_long_takes_those_after_it_along),
		cmocka_unit_test(refuses_what_holds_no_event),
		cmocka_unit_test(both_forms_are_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
