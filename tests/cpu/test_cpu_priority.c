/* What the profiler makes way for, and when it does not: on its own thread's policy and nice, as the kernel has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "userspace/base/clock.h"
#include "userspace/cpu/cpu_priority.h"

#define SECOND_NS 1000000000ULL

static void sleep_ms(long ms)
{
	const struct timespec time = {.tv_nsec = ms * 1000000};

	nanosleep(&time, NULL);
}

#define LONG_NS (60 * SECOND_NS)

/* False, and says why: nothing can be seen of it here. */
static bool is_able(void)
{
	if (rls_cpu_priority.able)
		return true;
	rls_priority_end();
	printf("one CPU, or no right to raise priorities\n");
	return false;
}

static bool begin_recording(void)
{
	rls_priority_record(-1);
	return is_able();
}

static bool begin_preparing(uint64_t patience_ns)
{
	rls_priority_prepare(patience_ns);
	return is_able();
}

static int now_nice(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

/* ---- recording ---- */

static void end_hold(uint64_t ago_ns)
{
	__atomic_store_n(&rls_cpu_priority.until_ns, rls_monotonic_ns() - ago_ns, __ATOMIC_RELEASE);
}

/* Whether a beat has it take what others leave over. On a busy machine it may have no CPU at once, so that it is late
 * and ahead for a while: then again. */
static bool beat_leaves_cpus(void)
{
	for (int i = 0; i < 1000; i++) {
		rls_priority_beat(rls_monotonic_ns());
		if (sched_getscheduler(0) == SCHED_IDLE)
			return true;
		end_hold(SECOND_NS / 2);
	}
	return false;
}

static void takes_what_is_left_over(void **state)
{
	const int nice = getpriority(PRIO_PROCESS, 0);

	(void)state;
	if (!begin_recording())
		skip();
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER); /* until it has come around */
	assert_true(beat_leaves_cpus());
	rls_priority_end();
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
}

static void is_ahead_while_targets_wait(void **state)
{
	(void)state;
	if (!begin_recording())
		skip();
	rls_priority_beat(rls_monotonic_ns());
	for (int i = 0; i < 2; i++) {
		rls_priority_hurry();
		assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
		assert_int_equal(getpriority(PRIO_PROCESS, 0), -20);
	}
	assert_true(beat_leaves_cpus());
	rls_priority_end();
}

/* The loop does not come around: for all that is known, as others take all CPUs. */
static void is_ahead_for_a_while_once_it_was_late(void **state)
{

	(void)state;
	if (!begin_recording())
		skip();
	rls_priority_beat(rls_monotonic_ns());
	sleep_ms(200);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_true(rls_cpu_priority.until_ns > rls_monotonic_ns() + SECOND_NS / 2);
	rls_priority_beat(rls_monotonic_ns());
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	end_hold(SECOND_NS / 2); /* it is over */
	assert_true(beat_leaves_cpus());
	sleep_ms(200); /* late again, soon after */
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_true(rls_cpu_priority.until_ns > rls_monotonic_ns() + 3 * SECOND_NS / 2);
	end_hold(1); /* it came around too late to see it */
	assert_true(beat_leaves_cpus());
	rls_priority_end();
}

static void does_nothing_before_it_begins(void **state)
{

	(void)state;
	rls_priority_hurry();
	rls_priority_beat(rls_monotonic_ns());
	rls_priority_end();
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

/* ---- preparing ---- */

static void set_polite(void)
{
	_priority_ = rls_priority_set(RLS_PRIORITY_POLITE);

	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(now_nice(), 10);
}

static void each_level_is_set_and_taken_back(void **state)
{
	int nice = now_nice();

	(void)state;
	if (!begin_preparing(LONG_NS))
		skip();
	{
		_priority_ = rls_priority_set(RLS_PRIORITY_SPARE);

		assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
		set_polite();
		assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	}
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(now_nice(), nice);
	rls_priority_set(RLS_PRIORITY_SPARE);
	rls_priority_end();
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(now_nice(), nice);
}

static void patience_ends(void **state)
{
	int nice = now_nice();

	(void)state;
	if (!begin_preparing(20000000))
		skip();
	assert_int_equal(rls_priority_set(RLS_PRIORITY_POLITE), RLS_PRIORITY_USUAL);
	while (now_nice() != nice)
		sleep_ms(1);
	sleep_ms(100); /* the watch has seen it too */
	rls_priority_set(RLS_PRIORITY_SPARE);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	rls_priority_end();
	assert_int_equal(now_nice(), nice);
}

static void *set_spare(void *scheduler)
{
	rls_priority_set(RLS_PRIORITY_SPARE);
	*(int *)scheduler = sched_getscheduler(0);
	return NULL;
}

static void others_stay_as_they_are(void **state)
{
	int scheduler = -1, nice = now_nice();
	pthread_t thread;

	(void)state;
	rls_priority_set(RLS_PRIORITY_SPARE); /* nothing has begun */
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	if (!begin_preparing(LONG_NS))
		skip();
	assert_int_equal(pthread_create(&thread, NULL, set_spare, &scheduler), 0);
	pthread_join(thread, NULL);
	assert_int_equal(scheduler, SCHED_OTHER);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	rls_priority_end();
	assert_int_equal(now_nice(), nice);
}

/* ---- for a moment ---- */

static void a_moment_ahead_is_taken_back(void **state)
{
	int nice = now_nice(), before = rls_priority_raise();

	(void)state;
	assert_true(now_nice() <= nice);
	rls_priority_lower(before);
	assert_int_equal(now_nice(), nice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_is_left_over),
		cmocka_unit_test(is_ahead_while_targets_wait),
		cmocka_unit_test(is_ahead_for_a_while_once_it_was_late),
		cmocka_unit_test(does_nothing_before_it_begins),
		cmocka_unit_test(each_level_is_set_and_taken_back),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test(others_stay_as_they_are),
		cmocka_unit_test(a_moment_ahead_is_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
