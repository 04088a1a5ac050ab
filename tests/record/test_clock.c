#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/base/clock.h"

static int parse(const char *text, struct rls_clocks_ahead *out)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	int r;

	assert_non_null(file);
	r = rls_clocks_ahead_parse(file, out);
	fclose(file);
	return r;
}

static void offsets_are_read(void **state)
{
	struct rls_clocks_ahead ahead = {7, 7};

	assert_int_equal(
		parse("monotonic           0         0\nboottime            0         0\n", &ahead),
		0);
	assert_int_equal(ahead.monotonic_ns, 0);
	assert_int_equal(ahead.boottime_ns, 0);
	assert_int_equal(
		parse("monotonic        1000 500000000\nboottime         -2        5\n", &ahead),
		0);
	assert_int_equal(ahead.monotonic_ns, 1000500000000);
	assert_int_equal(ahead.boottime_ns, -1999999995);
	assert_int_equal(parse("1 -1 999999999\n7 3 0\n", &ahead), 0); /* Linux 5.6 to 5.10 */
	assert_int_equal(ahead.monotonic_ns, -1);
	assert_int_equal(ahead.boottime_ns, 3000000000);
}

static void what_is_none_is_refused(void **state)
{
	static const char *const none[] = {"monotonic 1 0\n", "boottime 1 0\n", "nothing\n",
					   "monotonic 9223372036854775807 0\nboottime 0 0\n",
					   "monotonic one 0\nboottime 0 0\n"};
	struct rls_clocks_ahead ahead = {7, 8};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(parse(none[i], &ahead), -EINVAL);
	assert_int_equal(ahead.monotonic_ns, 7);
	assert_int_equal(ahead.boottime_ns, 8);
}

static void times_are_the_host_s(void **state)
{
	uint64_t before_ns, now_ns;

	rls_clocks_ahead = (struct rls_clocks_ahead){.monotonic_ns = 5000000000};
	before_ns = rls_clock_ns(CLOCK_MONOTONIC);
	now_ns = rls_monotonic_ns();
	assert_true(now_ns >= before_ns - 5000000000 &&
		    now_ns <= rls_clock_ns(CLOCK_MONOTONIC) - 5000000000);
	rls_clocks_ahead = (struct rls_clocks_ahead){0};
}

static void our_own_is_found(void **state)
{
	assert_int_equal(rls_clock_join_host(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets_are_read),
		cmocka_unit_test(what_is_none_is_refused),
		cmocka_unit_test(times_are_the_host_s),
		cmocka_unit_test(our_own_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
