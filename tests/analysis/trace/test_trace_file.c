/* Trace files written and read back: nothing lost, nothing out of order, whatever order and
 * chunks they were written in, and whatever ended the writer.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/event/memory_source.h"
#include "analysis/trace/trace_damage.h"
#include "analysis/trace/trace_reader.h"
#include "analysis/trace/trace_writer.h"
#include "event_maker.h"

static char *render_trace(int fd, bool *damaged)
{
	struct rls_event_source *source;
	char message[200];

	assert_int_equal(rls_trace_reader_open(fd, &source, message, sizeof(message)), 0);

	char *text = render(source);

	*damaged = source->damaged;
	source->free(source);
	return text;
}

/* What a source of these events and a complete end mark gives. */
static char *render_expected(const struct rls_event *events, size_t count,
			     const struct rls_string_pool *strings)
{
	struct rls_event *all = calloc(count + 1, sizeof(*all));
	struct rls_event *end = &all[count];
	struct rls_event_source *source;

	if (count)
		memcpy(all, events, count * sizeof(*all));
	*end = (struct rls_event){.kind = RLS_EVENT_END, .end.complete = true};
	for (size_t i = 0; i < count; i++)
		if (events[i].time_ns > end->time_ns)
			end->time_ns = events[i].time_ns;
	assert_int_equal(rls_memory_source_new(all, count + 1, strings, &source), 0);

	char *text = render(source);

	source->free(source);
	free(all);
	return text;
}

static void gives_back_what_was_written(void **state)
{
	static struct rls_event events[2000];
	bool damaged;

	for (unsigned int round = 0; round < 60; round++) {
		struct event_maker maker = {.random = 1 + round,
					    .span_ns = round % 3 ? 1ull << round % 30 : 10,
					    .strings = rls_string_pool_new()};
		size_t count = round * 33;

		for (size_t i = 0; i < count; i++)
			events[i] = event_maker_event(&maker);

		int fd = write_trace(events, count, maker.strings, round % 7 * 11);
		char *got = render_trace(fd, &damaged);
		char *expected = render_expected(events, count, maker.strings);

		assert_string_equal(got, expected);
		assert_null(strstr(got, "OUT OF ORDER"));
		assert_false(damaged);
		free(got);
		free(expected);
		rls_string_pool_free(maker.strings);
	}
}

static void takes_thousands_of_threads(void **state)
{
	enum { THREADS = 5000 };
	struct rls_event *events = calloc(2 * THREADS, sizeof(*events));
	struct rls_string_pool *strings = rls_string_pool_new();
	bool damaged;

	for (uint32_t i = 0; i < 2 * THREADS; i++)
		events[i] = (struct rls_event){.kind = RLS_EVENT_HITS,
					       .time_ns = i,
					       .pid = 7,
					       .tid = i % THREADS * 977,
					       .hits = {.count = 2, .cost_ns = 1280}};

	char *got = render_trace(write_trace(events, 2 * THREADS, strings, 0), &damaged);
	char *expected = render_expected(events, 2 * THREADS, strings);

	assert_string_equal(got, expected);
	free(got);
	free(expected);
	free(events);
	rls_string_pool_free(strings);
}

/* Of two threads by turns now and then: the time since the other's event is no time of one's own, but is
 * stored as well. Costs that are all of it, in chunks' first records too, and the usual ones between them. */
static void costs_of_all_the_time_come_back(void **state)
{
	enum { PAIRS = 3000 };
	struct rls_event *events = calloc(2 * PAIRS, sizeof(*events));
	struct rls_string_pool *strings = rls_string_pool_new();
	struct event_maker maker = {.random = 5, .strings = strings};
	uint64_t now_ns = 1000;
	bool damaged;

	(void)state;
	for (size_t i = 0; i < PAIRS; i++) {
		uint64_t passed_ns = event_maker_draw(&maker, 900);
		uint32_t tid = 7 + (event_maker_draw(&maker, 20) == 0);
		uint64_t count = event_maker_draw(&maker, 3);

		now_ns += passed_ns;
		events[2 * i] = (struct rls_event){.kind = RLS_EVENT_CATEGORY,
						   .time_ns = now_ns,
						   .pid = 7,
						   .tid = tid,
						   .category.category = 1 + i % 2};
		events[2 * i + 1] = (struct rls_event){
			.kind = RLS_EVENT_HITS,
			.time_ns = now_ns,
			.pid = 7,
			.tid = tid,
			.hits = {.count = count,
				 .cost_ns = event_maker_draw(&maker, 2) ? passed_ns : count * 700}};
	}
	for (size_t flush_every = 0; flush_every < 60; flush_every += 30) {
		char *got = render_trace(write_trace(events, 2 * PAIRS, strings, flush_every),
					 &damaged);
		char *expected = render_expected(events, 2 * PAIRS, strings);

		assert_false(damaged);
		assert_string_equal(got, expected);
		free(got);
		free(expected);
	}
	free(events);
	rls_string_pool_free(strings);
}

/* Enough for several chunks without any flush, each event seconds late or early. */
static void merges_overlapping_chunks(void **state)
{
	enum { EVENTS = 100000 };
	struct rls_string_pool *strings = rls_string_pool_new();
	struct event_maker maker = {.random = 3, .strings = strings};
	struct rls_trace_writer *writer;
	struct rls_event_source *source;
	struct rls_event event = {.kind = RLS_EVENT_OFF_CPU, .pid = 1, .tid = 1};
	uint64_t sum = 0, sum_read = 0, before_ns = 0, count = 0;
	char message[200];
	int fd = memory_file("", 0);

	assert_int_equal(rls_trace_writer_open_fd(dup(fd), strings, &writer), 0);
	for (uint64_t i = 0; i < EVENTS; i++) {
		event.time_ns = i * 100 + event_maker_draw(&maker, 3000000);
		event.off_cpu.ns = i;
		sum += i ^ event.time_ns;
		assert_int_equal(rls_trace_writer_add(writer, &event), 0);
	}
	assert_int_equal(rls_trace_writer_close(writer), 0);
	assert_int_equal(rls_trace_reader_open(fd, &source, message, sizeof(message)), 0);
	for (; source->next(source, &event) > 0; count++) {
		if (event.kind == RLS_EVENT_WARNING)
			continue;
		assert_true(event.time_ns >= before_ns);
		before_ns = event.time_ns;
		sum_read += event.off_cpu.ns ^ event.time_ns;
	}
	assert_int_equal(count, EVENTS + 1); /* and a warning: nobody added an end event */
	assert_int_equal(sum_read, sum);
	assert_true(source->damaged);
	source->free(source);
	rls_string_pool_free(strings);
}

static void tells_how_the_recording_ended(void **state)
{
	struct rls_string_pool *strings = rls_string_pool_new();
	struct rls_event end = {.kind = RLS_EVENT_END, .time_ns = 9, .end.complete = false};
	struct rls_trace_writer *writer;
	bool damaged;
	int fd = memory_file("", 0);

	assert_int_equal(rls_trace_writer_open_fd(dup(fd), strings, &writer), 0);
	assert_int_equal(rls_trace_writer_add(writer, &end), 0);
	assert_int_equal(rls_trace_writer_close(writer), 0);

	char *text = render_trace(fd, &damaged);

	assert_true(damaged);
	assert_non_null(strstr(text, RLS_DAMAGE_INCOMPLETE));
	assert_non_null(strstr(text, "\"complete\":false"));
	free(text);
	rls_string_pool_free(strings);
}

static void refuses_bad_events_and_goes_on(void **state)
{
	struct rls_string_pool *strings = rls_string_pool_new();
	struct rls_event bad[] = {
		{.kind = RLS_EVENT_MAX},
		{.kind = RLS_EVENT_PHASE, .phase.phase = 1},
		{.kind = RLS_EVENT_OPERATION, .operation = {.depth = 2, .stack = {0, 1}}},
		{.kind = RLS_EVENT_OPERATION, .operation = {.depth = 999}},
	};
	struct rls_event good = {.kind = RLS_EVENT_END, .end.complete = true};
	struct rls_trace_writer *writer;
	bool damaged;
	int fd = memory_file("", 0);

	assert_int_equal(rls_trace_writer_open_fd(dup(fd), strings, &writer), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(rls_trace_writer_add(writer, &bad[i]), -EINVAL);
	assert_int_equal(rls_trace_writer_add(writer, &good), 0);
	assert_int_equal(rls_trace_writer_close(writer), 0);

	char *text = render_trace(fd, &damaged);

	assert_string_equal(text, "{\"event\":\"end\",\"time_ns\":0,\"complete\":true}\n");
	assert_false(damaged);
	free(text);
	rls_string_pool_free(strings);
}

static int count_lines(const char *text, const char *with)
{
	int count = 0;

	for (const char *at = text; (at = strstr(at, with)); at++)
		count++;
	return count;
}

static void add_changes(struct rls_trace_writer *writer, uint64_t from, uint64_t count)
{
	struct rls_event event = {.kind = RLS_EVENT_CATEGORY, .pid = 1, .tid = 1};

	for (uint64_t i = from; i < from + count; i++) {
		event.time_ns = i * 1000;
		event.category.category = i % RLS_CATEGORY_MAX;
		if (rls_trace_writer_add(writer, &event))
			abort();
	}
}

static void keeps_what_was_flushed_before_kill_9(void **state)
{
	struct rls_string_pool *strings = rls_string_pool_new();
	int fd = memory_file("", 0), status;
	bool damaged;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		struct rls_trace_writer *writer;

		if (rls_trace_writer_open_fd(fd, strings, &writer))
			_exit(1);
		add_changes(writer, 0, 300);
		if (rls_trace_writer_flush(writer))
			_exit(1);
		add_changes(writer, 300, 50);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

	char *text = render_trace(fd, &damaged);

	assert_int_equal(count_lines(text, "\"event\":\"category\""), 300);
	assert_non_null(strstr(text, RLS_DAMAGE_NO_END));
	assert_true(damaged);
	free(text);
	rls_string_pool_free(strings);
}

/* Writes until writing fails; how many events were in chunks that were written whole. */
static uint64_t write_until_full(const char *path, int expected_error)
{
	struct rls_string_pool *strings = rls_string_pool_new();
	struct rls_trace_writer *writer;
	struct rls_event event = {.kind = RLS_EVENT_OFF_CPU, .pid = 1, .tid = 1};
	struct event_maker maker = {.random = 11};
	uint64_t written = 0;
	int error = rls_trace_writer_open(path, strings, &writer);

	for (uint64_t i = 0; !error; i++) {
		event.time_ns = i * 1000;
		event.off_cpu.ns = event_maker_draw(&maker, 1 << 30);
		error = rls_trace_writer_add(writer, &event);
		if (!error && i % 1000 == 999) {
			error = rls_trace_writer_flush(writer);
			if (!error)
				written = i + 1;
		}
	}
	if (error != expected_error || rls_trace_writer_add(writer, &event) != error ||
	    rls_trace_writer_close(writer) != error)
		written = 0;
	rls_string_pool_free(strings);
	return written;
}

/* In a child of its own: a limit or a mount is for the rest of a process's life. */
static int fill_disk_in_child(const char *path, int expected_error, bool mount_small)
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct rlimit limit = {50000, 50000};
		uint64_t written;
		bool damaged;

		signal(SIGXFSZ, SIG_IGN);
		if (mount_small) {
			if (unshare(CLONE_NEWNS) ||
			    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
			    mount("tmpfs", "/mnt", "tmpfs", 0, "size=64k"))
				_exit(77);
		} else if (setrlimit(RLIMIT_FSIZE, &limit)) {
			_exit(77);
		}
		written = write_until_full(path, expected_error);
		if (!written)
			_exit(1);

		char *text = render_trace(open(path, O_RDONLY | O_CLOEXEC), &damaged);
		bool good = damaged && strstr(text, RLS_DAMAGE_NO_END) &&
			    count_lines(text, "\"event\":\"off_cpu\"") == (int)written;

		free(text);
		_exit(good ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void ends_at_a_chunk_when_writing_fails(void **state)
{
	char path[] = "/tmp/rlscope-test-XXXXXX";

	assert_non_null(mkdtemp(path));

	char file[64];

	snprintf(file, sizeof(file), "%s/t.trace", path);
	assert_int_equal(fill_disk_in_child(file, -EFBIG, false), 0);
	unlink(file);
	rmdir(path);
}

static void ends_at_a_chunk_when_the_disk_is_full(void **state)
{
	int status = fill_disk_in_child("/mnt/t.trace", -ENOSPC, true);

	if (status == 77) {
		print_message("skipped: cannot mount a small file system here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_back_what_was_written),
		cmocka_unit_test(takes_thousands_of_threads),
		cmocka_unit_test(costs_of_all_the_time_come_back),
		cmocka_unit_test(merges_overlapping_chunks),
		cmocka_unit_test(tells_how_the_recording_ended),
		cmocka_unit_test(refuses_bad_events_and_goes_on),
		cmocka_unit_test(keeps_what_was_flushed_before_kill_9),
		cmocka_unit_test(ends_at_a_chunk_when_writing_fails),
		cmocka_unit_test(ends_at_a_chunk_when_the_disk_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
