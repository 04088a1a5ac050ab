#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/event/event_source.h"
#include "userspace/base/log.h"
#include "userspace/record/events/event_output.h"

static char folder[64], trace_path[96];

static int make_folder(void **state)
{
	strcpy(folder, "/tmp/rls-trace-output-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(trace_path, sizeof(trace_path), "%s/x.trace", folder);
	return 0;
}

static int remove_folder(void **state)
{
	unlink(trace_path);
	return rmdir(folder);
}

static struct rls_event category_at(uint64_t time_ns)
{
	struct rls_event event = {
		.kind = RLS_EVENT_CATEGORY, .pid = 7, .tid = 8, .time_ns = time_ns};

	event.category.category = 1 + time_ns % 2;
	return event;
}

static int add_category(struct rls_event_output *output, uint64_t time_ns)
{
	const struct rls_event event = category_at(time_ns);

	return rls_event_output_add(output, &event);
}

static int add_end(struct rls_event_output *output, uint64_t time_ns)
{
	struct rls_event event = {.kind = RLS_EVENT_END, .time_ns = time_ns};

	event.end.complete = true;
	return rls_event_output_add(output, &event);
}

static struct rls_event_source *open_trace(void)
{
	struct rls_event_source *source;
	char message[200] = "";

	assert_int_equal(rls_event_source_open(trace_path, &source, message, sizeof(message)), 0);
	return source;
}

static void events_wait_until_the_file_is_there(void **state)
{
	struct rls_event_output output;
	struct rls_event_source *source;
	struct rls_event event;

	assert_int_equal(rls_event_output_init(&output), 0);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(add_category(&output, 1000 + i), 0);
	assert_int_equal(rls_event_output_warn(&output, 1100, "beware"), 0);
	assert_int_equal(rls_event_output_tick(&output, 5000000000ULL), 0);
	assert_int_equal(access(trace_path, F_OK), -1);

	assert_int_equal(rls_event_output_open(&output, trace_path), 0);
	assert_int_equal(rls_event_output_loss(&output, 1101, "transitions", 12), 0);
	assert_int_equal(add_end(&output, 1200), 0);
	assert_int_equal(rls_event_output_close(&output), 0);

	source = open_trace();
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(source->next(source, &event), 1);
		assert_int_equal(event.kind, RLS_EVENT_CATEGORY);
		assert_int_equal(event.time_ns, 1000 + i);
		assert_int_equal(event.category.category, 1 + i % 2);
	}
	assert_int_equal(source->next(source, &event), 1);
	assert_int_equal(event.kind, RLS_EVENT_WARNING);
	assert_string_equal(rls_string_pool_get(source->strings, event.warning.text), "beware");
	assert_int_equal(source->next(source, &event), 1);
	assert_int_equal(event.kind, RLS_EVENT_LOSS);
	assert_string_equal(rls_string_pool_get(source->strings, event.loss.buffer), "transitions");
	assert_int_equal(event.loss.dropped, 12);
	assert_int_equal(source->next(source, &event), 1);
	assert_int_equal(event.kind, RLS_EVENT_END);
	assert_int_equal(source->next(source, &event), 0);
	source->free(source);
}

static void a_warning_is_written_once(void **state)
{
	struct rls_event_output output;

	assert_int_equal(rls_event_output_init(&output), 0);
	assert_int_equal(rls_event_output_warn(&output, 1, "beware of dogs"), 0);
	assert_int_equal(rls_event_output_warn(&output, 2, "beware of dogs"), 0);
	assert_int_equal(rls_event_output_warn(&output, 3, "beware of cats"), 0);
	assert_int_equal(output.waiting_count, 2);
	assert_int_equal(rls_event_output_close(&output), 0);
}

/* A target can make warnings up. Runs last: the process has said so much then. */
static void what_is_said_is_bounded(void **state)
{
	struct rls_event_output output;

	assert_int_equal(rls_event_output_init(&output), 0);
	for (int i = 0; i < RLS_WARNINGS_KEPT + 10; i++)
		assert_int_equal(rls_event_output_warn(&output, 1, "warning number %d", i), 0);
	assert_in_range(output.waiting_count, RLS_WARNINGS_KEPT / 2, RLS_WARNINGS_KEPT);
	assert_non_null(
		strstr(rls_string_pool_get(output.strings,
					   output.waiting[output.waiting_count - 1].warning.text),
		       "said more than is kept"));
	assert_int_equal(rls_event_output_close(&output), 0);
}

/* Before there is a file, too: while options are read, and probes are put on. */
static void what_was_said_on_stderr_is_in_the_trace(void **state)
{
	struct rls_event_output output;

	assert_int_equal(rls_event_output_init(&output), 0);
	while (rls_log_take_warning())
		;
	rls_info("recording");
	rls_warning("%d of %d probes refused", 1, 2);
	rls_warning("%d of %d probes refused", 1, 2);
	rls_error("cannot attach to %s", "it");
	assert_true(rls_log_has_warned("1 of 2 probes refused"));
	assert_false(rls_log_has_warned("recording"));
	assert_int_equal(rls_event_output_said(&output, 7), 0);
	assert_int_equal(rls_event_output_said(&output, 8), 0);
	assert_int_equal(output.waiting_count, 2);
	assert_int_equal(output.waiting[1].kind, RLS_EVENT_WARNING);
	assert_int_equal(output.waiting[1].time_ns, 7);
	assert_string_equal(rls_string_pool_get(output.strings, output.waiting[1].warning.text),
			    "cannot attach to it");
	assert_int_equal(rls_event_output_close(&output), 0);
}

static void closing_unopened_leaves_nothing(void **state)
{
	struct rls_event_output output;

	assert_int_equal(rls_event_output_init(&output), 0);
	assert_int_equal(add_category(&output, 1), 0);
	assert_int_equal(rls_event_output_close(&output), 0);
	assert_int_equal(access(trace_path, F_OK), -1);
}

static void an_impossible_event_alone_is_left_out(void **state)
{
	struct rls_event event = category_at(10);
	struct rls_event_output output;
	struct rls_event_source *source;

	assert_int_equal(rls_event_output_init(&output), 0);
	assert_int_equal(rls_event_output_open(&output, trace_path), 0);
	event.category.category = 200;
	assert_int_equal(rls_event_output_add(&output, &event), 0);
	event = (struct rls_event){.kind = RLS_EVENT_PHASE, .pid = 7, .time_ns = 11};
	event.phase.phase = 12345; /* no such string */
	assert_int_equal(rls_event_output_add(&output, &event), 0);
	assert_int_equal(add_category(&output, 12), 0);
	assert_int_equal(add_end(&output, 13), 0);
	assert_int_equal(rls_event_output_close(&output), 0);

	source = open_trace();
	assert_int_equal(source->next(source, &event), 1);
	assert_int_equal(event.time_ns, 12);
	assert_int_equal(source->next(source, &event), 1);
	assert_int_equal(event.kind, RLS_EVENT_END);
	assert_int_equal(source->next(source, &event), 0);
	source->free(source);
}

static void is_flushed_once_a_second(void **state)
{
	struct rls_event_output output;
	struct stat before, after;

	assert_int_equal(rls_event_output_init(&output), 0);
	assert_int_equal(rls_event_output_open(&output, trace_path), 0);
	assert_int_equal(rls_event_output_tick(&output, 5000000000ULL), 0);
	assert_int_equal(add_category(&output, 1), 0);
	assert_int_equal(stat(trace_path, &before), 0);
	assert_int_equal(rls_event_output_tick(&output, 5999999999ULL), 0);
	assert_int_equal(stat(trace_path, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(rls_event_output_tick(&output, 6000000000ULL), 0);
	assert_int_equal(stat(trace_path, &after), 0);
	assert_true(after.st_size > before.st_size);
	assert_int_equal(rls_event_output_close(&output), 0);
}

static void a_path_that_cannot_be_is_an_error(void **state)
{
	struct rls_event_output output;

	assert_int_equal(rls_event_output_init(&output), 0);
	assert_int_equal(rls_event_output_open(&output, "/nonexistent/x.trace"), -ENOENT);
	assert_int_equal(add_category(&output, 1), 0); /* still waits */
	assert_int_equal(rls_event_output_close(&output), 0);
}

/* A file system of 64 KiB over folder, for this process only. */
static int mount_small(void)
{
	if (unshare(CLONE_NEWNS))
		return -errno;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	return mount("tmpfs", folder, "tmpfs", 0, "size=64k") ? -errno : 0;
}

static void a_full_disk_ends_the_trace_and_spoils_nothing(void **state)
{
	struct rls_event_output output;
	struct rls_event_source *source;
	struct rls_event event;
	uint64_t time_ns = 1, last_ns = 0;
	bool warned = false;
	int r = 0;

	if (geteuid()) {
		print_message("not root: no small file system to fill\n");
		skip();
	}
	r = mount_small();
	if (r == -EINVAL) { /* in a chroot: nothing mounted here would stay private */
		print_message("/ is no mount point: no small file system to fill\n");
		skip();
	}
	assert_int_equal(r, 0);
	assert_int_equal(rls_event_output_init(&output), 0);
	assert_int_equal(rls_event_output_open(&output, trace_path), 0);
	for (; !r && time_ns < 1000000; time_ns++) {
		r = add_category(&output, time_ns * 1000003);
		if (!r && time_ns % 1000 == 0)
			r = rls_event_output_tick(&output, time_ns * 1000000000ULL);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(add_category(&output, time_ns), -ENOSPC);
	assert_int_equal(rls_event_output_tick(&output, UINT64_MAX), -ENOSPC);
	assert_int_equal(rls_event_output_close(&output), -ENOSPC);

	source = open_trace();
	while (source->next(source, &event) > 0) {
		assert_false(warned); /* of the missing end, when all else has been read */
		warned = event.kind == RLS_EVENT_WARNING;
		if (warned)
			continue;
		assert_int_equal(event.kind, RLS_EVENT_CATEGORY);
		assert_int_equal(event.time_ns, last_ns + 1000003);
		last_ns = event.time_ns;
	}
	assert_true(warned);
	assert_true(last_ns >= 1000ULL * 1000003);
	source->free(source);
	assert_int_equal(unlink(trace_path), 0);
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
}

static void a_disk_that_was_full_before(void **state)
{
	char filler_path[96], block[4096] = "";
	struct rls_event_output output;
	int filler, opened, closed, r;

	if (geteuid()) {
		print_message("not root: no small file system to fill\n");
		skip();
	}
	r = mount_small();
	if (r == -EINVAL) { /* in a chroot: nothing mounted here would stay private */
		print_message("/ is no mount point: no small file system to fill\n");
		skip();
	}
	assert_int_equal(r, 0);
	snprintf(filler_path, sizeof(filler_path), "%s/filler", folder);
	filler = open(filler_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(filler >= 0);
	while (write(filler, block, sizeof(block)) > 0)
		;
	close(filler);
	assert_int_equal(rls_event_output_init(&output), 0);
	assert_int_equal(add_category(&output, 1), 0);
	opened = rls_event_output_open(&output, trace_path);
	closed = rls_event_output_close(&output);
	assert_int_equal(opened ? opened : closed, -ENOSPC);
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
}

static int count_event(void *context, const struct rls_event *event)
{
	++*(int *)context;
	return event->time_ns == 13 ? -ENOMEM : 0;
}

static void a_listener_gets_all_at_once_and_nothing_is_kept(void **state)
{
	struct rls_event_output output;
	rls_string_id id = 7;
	int received = 0;

	assert_int_equal(rls_event_output_init(&output), 0);
	rls_event_output_listen(&output, count_event, &received);
	assert_int_equal(add_category(&output, 1), 0);
	assert_int_equal(received, 1);
	assert_int_equal(rls_event_output_string(&output, "made up by a target", &id), 0);
	assert_int_equal(id, 0);
	assert_int_equal(rls_string_pool_count(output.strings), 1);
	assert_int_equal(rls_event_output_warn(&output, 2, "careful"), 0);
	assert_int_equal(add_category(&output, 13), -ENOMEM);
	assert_int_equal(received, 2);
	assert_int_equal(output.waiting_count, 0);
	assert_int_equal(rls_event_output_tick(&output, UINT64_MAX), 0);
	assert_int_equal(rls_event_output_close(&output), 0);
	assert_int_not_equal(access(trace_path, F_OK), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_wait_until_the_file_is_there),
		TEST(a_warning_is_written_once),
		TEST(what_was_said_on_stderr_is_in_the_trace),
		TEST(closing_unopened_leaves_nothing),
		TEST(an_impossible_event_alone_is_left_out),
		TEST(is_flushed_once_a_second),
		TEST(a_path_that_cannot_be_is_an_error),
		TEST(a_full_disk_ends_the_trace_and_spoils_nothing),
		TEST(a_disk_that_was_full_before),
		TEST(a_listener_gets_all_at_once_and_nothing_is_kept),
		TEST(what_is_said_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
