/* Opening a trace by path: recognised by content, refused with a sentence. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/event/event_source.h"
#include "analysis/trace/trace_format.h"
#include "event_maker.h"

static const char text_trace[] = "{\"event\":\"end\",\"time_ns\":0,\"complete\":true}\n";

/* Opens the open file by its path under /proc. */
static int open_source(int fd, struct rls_event_source **out, char message[200])
{
	char path[64];
	int error;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	error = rls_event_source_open(path, out, message, 200);
	close(fd);
	return error;
}

static void tells_the_form_by_content(void **state)
{
	struct rls_string_pool *strings = rls_string_pool_new();
	char spaced[sizeof(text_trace) + 3] = "\r\n ";
	struct rls_event_source *source;
	char message[200];

	strcat(spaced, text_trace);

	int fds[] = {write_trace(NULL, 0, strings, 0), memory_file(text_trace, strlen(text_trace)),
		     memory_file(spaced, strlen(spaced))};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		assert_int_equal(open_source(fds[i], &source, message), 0);

		char *text = render(source);

		assert_string_equal(text, text_trace);
		assert_false(source->damaged);
		source->free(source);
		free(text);
	}
	rls_string_pool_free(strings);
}

static void reads_a_pipe(void **state)
{
	struct rls_event_source *source;
	char message[200];
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text_trace, strlen(text_trace)), strlen(text_trace));
	close(ends[1]);
	assert_int_equal(open_source(ends[0], &source, message), 0);

	char *text = render(source);

	assert_string_equal(text, text_trace);
	source->free(source);
	free(text);
}

static void refuses_with_a_sentence(void **state)
{
	static const struct {
		const char *bytes;
		size_t count;
		const char *sentence;
	} cases[] = {
		{"", 0, "it is empty"},
		{"\0\0\0", 3, "it is no trace"},
		{"  \n\n", 4, "it is no trace"},
		{"\x7f"
		 "ELF and so on",
		 14, "it is no trace"},
		{"{\"version\": 1}", 14, "none of its lines is an event"},
		{RLS_TRACE_MAGIC, 8, "first bytes are damaged"},
	};
	struct rls_event_source *source;
	char message[200];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = memory_file(cases[i].bytes, cases[i].count);

		assert_int_equal(open_source(fd, &source, message), -EINVAL);
		assert_non_null(strstr(message, cases[i].sentence));
		assert_non_null(strstr(message, "/proc/self/fd/"));
	}
	assert_int_equal(rls_event_source_open("/nonexistent/x", &source, message, 200), -ENOENT);
	assert_non_null(strstr(message, "/nonexistent/x"));
	assert_int_equal(rls_event_source_open("/", &source, message, 200), -EISDIR);
	assert_int_equal(rls_event_source_open("/", &source, message, 5), -EISDIR);
	assert_int_equal(strlen(message), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_the_form_by_content),
		cmocka_unit_test(reads_a_pipe),
		cmocka_unit_test(refuses_with_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
