#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/record/early_records.h"

#define BEGIN_NS 1000

static struct rls_early_records early;
static pid_t ended, execed;

static int set_up(void **state)
{
	ended = execed = 0;
	return 0;
}

static int tear_down(void **state)
{
	rls_early_records_clear(&early);
	return 0;
}

static void forked(uint32_t parent, uint32_t child)
{
	struct rls_wire_fork record = {
		.header = {.kind = RLS_WIRE_FORK, .pid = parent, .tid = parent, .time_ns = 10},
		.child_pid = child,
	};

	assert_int_equal(
		rls_early_records_take(&early, &record.header, sizeof(record), &ended, &execed), 0);
}

static void begun(uint32_t pid)
{
	struct rls_wire_exec record = {
		.header = {.kind = RLS_WIRE_EXEC, .pid = pid, .tid = pid, .time_ns = 20}};

	assert_int_equal(
		rls_early_records_take(&early, &record.header, sizeof(record), &ended, &execed), 0);
}

static void left(uint32_t pid, uint32_t tid, bool over)
{
	struct rls_wire_exit record = {
		.header = {.kind = RLS_WIRE_THREAD_EXIT, .pid = pid, .tid = tid, .time_ns = 30},
		.process_over = over};

	assert_int_equal(
		rls_early_records_take(&early, &record.header, sizeof(record), &ended, &execed), 0);
}

static void only_lives_from_before_are_early(void **state)
{
	struct rls_wire_header record = {.kind = RLS_WIRE_FORK, .time_ns = BEGIN_NS - 1};

	assert_true(rls_early_records_has(&early, 0, &record));
	assert_true(rls_early_records_has(&early, BEGIN_NS, &record));
	record.time_ns = BEGIN_NS;
	assert_true(rls_early_records_has(&early, 0, &record)); /* it has not begun */
	assert_false(rls_early_records_has(&early, BEGIN_NS, &record));
	record = (struct rls_wire_header){.kind = RLS_WIRE_NAME, .time_ns = 1};
	assert_false(rls_early_records_has(&early, BEGIN_NS, &record));
	early.over = true;
	record.kind = RLS_WIRE_FORK;
	assert_false(rls_early_records_has(&early, BEGIN_NS, &record));
}

static void ends_of_threads_may_come_late(void **state)
{
	struct rls_wire_exit record = {
		.header = {.kind = RLS_WIRE_THREAD_EXIT, .time_ns = BEGIN_NS - 1}};

	assert_true(rls_early_records_is_late_end(BEGIN_NS, &record.header, sizeof(record)));
	assert_false(rls_early_records_is_late_end(0, &record.header, sizeof(record)));
	assert_false(
		rls_early_records_is_late_end(BEGIN_NS, &record.header, sizeof(record.header)));
	record.header.time_ns = BEGIN_NS;
	assert_false(rls_early_records_is_late_end(BEGIN_NS, &record.header, sizeof(record)));
	record.header.time_ns = BEGIN_NS - 1;
	record.process_over = 1;
	assert_false(rls_early_records_is_late_end(BEGIN_NS, &record.header, sizeof(record)));
}

static void who_is_left_is_kept(void **state)
{
	forked(1, 2);
	forked(1, 3);
	forked(3, 4);
	left(2, 2, true);
	assert_int_equal(ended, 2);
	left(3, 33, false); /* a thread's end is no process's */
	assert_int_equal(ended, 0);
	assert_int_equal(early.children.count, 2);
	assert_int_equal(early.children.items[0].pid, 3);
	assert_int_equal(early.children.items[1].pid, 4);
	assert_int_equal(early.children.items[1].parent, 3);
}

static void another_program_is_noted(void **state)
{
	forked(1, 2);
	begun(2);
	assert_int_equal(execed, 0);
	assert_true(early.children.items[0].execed);
	begun(9); /* found in /proc */
	assert_int_equal(execed, 9);
}

static void a_number_may_be_used_again(void **state)
{
	forked(1, 2);
	begun(2);
	forked(5, 2); /* the end of the first was lost */
	assert_int_equal(early.children.count, 1);
	assert_int_equal(early.children.items[0].parent, 5);
	assert_false(early.children.items[0].execed);
	left(2, 2, true);
	assert_int_equal(early.children.count, 0);
	left(2, 2, true);
	assert_int_equal(ended, 2);
}

static void cut_records_are_ignored(void **state)
{
	struct rls_wire_fork fork = {.header = {.kind = RLS_WIRE_FORK, .pid = 1}, .child_pid = 2};
	struct rls_wire_exit end = {.header = {.kind = RLS_WIRE_THREAD_EXIT, .pid = 1},
				    .process_over = true};

	assert_int_equal(
		rls_early_records_take(&early, &fork.header, sizeof(fork.header), &ended, &execed),
		0);
	assert_int_equal(
		rls_early_records_take(&early, &end.header, sizeof(end.header), &ended, &execed),
		0);
	assert_int_equal(early.children.count, 0);
	assert_int_equal(ended, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_lives_from_before_are_early),
		TEST(ends_of_threads_may_come_late),
		TEST(who_is_left_is_kept),
		TEST(another_program_is_noted),
		TEST(a_number_may_be_used_again),
		TEST(cut_records_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
