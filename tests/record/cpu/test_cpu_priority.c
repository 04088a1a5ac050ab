/* Whom the recorder makes way for, and when it does not: on its own thread's policy, as the kernel tells it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "userspace/base/clock.h"
#include "userspace/record/cpu/cpu_priority.h"

#define SECOND_NS 1000000000ULL

static void sleep_ms(long ms)
{
	const struct timespec time = { .tv_nsec = ms * 1000000 };

	nanosleep(&time, NULL);
}

/* False, and says why: nothing can be seen of it here. */
static bool begin(struct rls_background *background)
{
	rls_background_begin(background, -1);
	if (background->able)
		return true;
	rls_background_end(background);
	printf("one CPU, or no right to raise priorities\n");
	return false;
}

static void takes_what_is_left_over(void **state)
{
	const int nice = getpriority(PRIO_PROCESS, 0);
	struct rls_background background;

	(void)state;
	if (!begin(&background))
		skip();
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER); /* until it has come around */
	rls_background_beat(&background, rls_monotonic_ns());
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	rls_background_end(&background);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
}

static void is_ahead_while_targets_wait(void **state)
{
	struct rls_background background;

	(void)state;
	if (!begin(&background))
		skip();
	rls_background_beat(&background, rls_monotonic_ns());
	for (int i = 0; i < 2; i++) {
		rls_background_hurry(&background);
		assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
		assert_int_equal(getpriority(PRIO_PROCESS, 0), -20);
	}
	rls_background_beat(&background, rls_monotonic_ns());
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	rls_background_end(&background);
}

/* The loop does not come around: for all that is known, as others take all CPUs. */
static void is_ahead_for_a_while_once_it_was_late(void **state)
{
	struct rls_background background;

	(void)state;
	if (!begin(&background))
		skip();
	rls_background_beat(&background, rls_monotonic_ns());
	sleep_ms(200);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_true(background.ahead_until_ns > rls_monotonic_ns() + SECOND_NS / 2);
	rls_background_beat(&background, rls_monotonic_ns());
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	__atomic_store_n(&background.ahead_until_ns, rls_monotonic_ns() - SECOND_NS / 2, __ATOMIC_RELEASE); /* it is over */
	rls_background_beat(&background, rls_monotonic_ns());
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	sleep_ms(200); /* late again, soon after */
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_true(background.ahead_until_ns > rls_monotonic_ns() + 3 * SECOND_NS / 2);
	__atomic_store_n(&background.ahead_until_ns, rls_monotonic_ns() - 1, __ATOMIC_RELEASE); /* it came around too late to see it */
	rls_background_beat(&background, rls_monotonic_ns());
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	rls_background_end(&background);
}

static void does_nothing_before_it_begins(void **state)
{
	struct rls_background background = { 0 };

	(void)state;
	rls_background_hurry(&background);
	rls_background_beat(&background, rls_monotonic_ns());
	rls_background_end(&background);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_is_left_over),
		cmocka_unit_test(is_ahead_while_targets_wait),
		cmocka_unit_test(is_ahead_for_a_while_once_it_was_late),
		cmocka_unit_test(does_nothing_before_it_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
