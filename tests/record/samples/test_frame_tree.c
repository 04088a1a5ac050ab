/* Stacks as a tree, and why threads wait. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "userspace/record/samples/frame_tree.h"
#include "userspace/record/samples/wait_reason.h"

struct log {
	struct rls_event last;
	unsigned int count;
	int answer;
};

static int take(void *context, const struct rls_event *event)
{
	struct log *log = context;

	if (log->answer)
		return log->answer;
	log->last = *event;
	log->count++;
	return 0;
}

static uint32_t id_of(struct rls_frame_tree *tree, uint32_t parent, struct rls_frame frame)
{
	uint32_t id = 0;

	assert_int_equal(rls_frame_tree_id(tree, parent, &frame, 5, &id), 0);
	return id;
}

static void a_place_is_reported_once(void **state)
{
	struct log log = {0};
	const struct rls_event_sink sink = {.add = take, .context = &log};
	struct rls_frame_tree tree = {.sink = &sink};
	const struct rls_frame frame = {.function = 1, .file = 2, .line = 3};
	struct rls_frame other = frame;
	uint32_t first = id_of(&tree, 0, frame);

	(void)state;
	assert_int_equal(first, 1);
	assert_int_equal(log.last.kind, RLS_EVENT_FRAME);
	assert_int_equal(log.last.frame.id, 1);
	assert_int_equal(log.last.frame.function, 1);
	assert_int_equal(log.last.frame.file, 2);
	assert_int_equal(log.last.frame.line, 3);
	assert_int_equal(log.last.time_ns, 5);
	assert_int_equal(id_of(&tree, 0, frame), first);
	assert_int_equal(log.count, 1);
	/* Another caller, line, function, file, or native: each is another place. */
	assert_int_equal(id_of(&tree, first, frame), 2);
	assert_int_equal(log.last.frame.parent, first);
	other.line = 4;
	assert_int_equal(id_of(&tree, 0, other), 3);
	other = frame, other.function = 9;
	assert_int_equal(id_of(&tree, 0, other), 4);
	other = frame, other.file = 9;
	assert_int_equal(id_of(&tree, 0, other), 5);
	other = frame, other.native = true;
	assert_int_equal(id_of(&tree, 0, other), 6);
	assert_true(log.last.frame.native);
	assert_int_equal(log.count, 6);
	assert_int_equal(id_of(&tree, 0, frame), first);
	rls_frame_tree_free(&tree);
}

static void what_is_not_known_has_no_place(void **state)
{
	struct log log = {.answer = -EIO};
	const struct rls_event_sink sink = {.add = take, .context = &log};
	struct rls_frame_tree tree = {.sink = &sink};
	const struct rls_frame frame = {.function = 1};
	uint32_t id = 77;

	(void)state;
	assert_int_equal(rls_frame_tree_id(&tree, 0, &frame, 5, &id), -EIO);
	assert_int_equal(id, 77);
	rls_frame_tree_free(&tree);
}

static void a_full_tree_gives_the_caller(void **state)
{
	struct log log = {0};
	const struct rls_event_sink sink = {.add = take, .context = &log};
	struct rls_frame_tree tree = {.sink = &sink, .count = RLS_FRAME_TREE_MAX - 1};

	(void)state;
	assert_int_equal(id_of(&tree, 3, (struct rls_frame){.line = 1}), RLS_FRAME_TREE_MAX);
	assert_false(tree.full);
	assert_int_equal(id_of(&tree, 3, (struct rls_frame){.line = 2}), 3);
	assert_true(tree.full);
	assert_int_equal(id_of(&tree, 3, (struct rls_frame){.line = 1}), RLS_FRAME_TREE_MAX);
	assert_int_equal(log.count, 1);
	rls_frame_tree_free(&tree);
}

static void waits_have_reasons(void **state)
{
	(void)state;
	assert_int_equal(rls_wait_reason(SYS_futex, 0, true), RLS_SAMPLE_WAIT_CPU);
	assert_int_equal(rls_wait_reason(-1, 0, false), RLS_SAMPLE_WAIT_OTHER);
	assert_int_equal(rls_wait_reason(SYS_futex, 7, false), RLS_SAMPLE_WAIT_LOCK);
	assert_int_equal(rls_wait_reason(SYS_clock_nanosleep, 1, false), RLS_SAMPLE_WAIT_SLEEP);
	assert_int_equal(rls_wait_reason(SYS_wait4, 1, false), RLS_SAMPLE_WAIT_CHILD);
	assert_int_equal(rls_wait_reason(SYS_ioctl, 1, false), RLS_SAMPLE_WAIT_GPU);
	assert_int_equal(rls_wait_reason(SYS_read, 0, false), RLS_SAMPLE_WAIT_IO);
	assert_int_equal(rls_wait_reason(SYS_epoll_wait, 4, false), RLS_SAMPLE_WAIT_IO);
	/* select() of no file sleeps, of some it waits for them. */
	assert_int_equal(rls_wait_reason(SYS_select, 0, false), RLS_SAMPLE_WAIT_SLEEP);
	assert_int_equal(rls_wait_reason(SYS_select, 4, false), RLS_SAMPLE_WAIT_IO);
	/* One that no kernel has yet. */
	assert_int_equal(rls_wait_reason(100000, 0, false), RLS_SAMPLE_WAIT_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_is_reported_once),
		cmocka_unit_test(what_is_not_known_has_no_place),
		cmocka_unit_test(a_full_tree_gives_the_caller),
		cmocka_unit_test(waits_have_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
