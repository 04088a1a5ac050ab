/* Priorities while getting ready, as the scheduler has them. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/base/modest.h"

#define LONG_NS 60000000000ULL

static int now_nice(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

static void skip_unless_able(void)
{
	if (sched_getscheduler(0) == SCHED_OTHER && now_nice() > -20 &&
	    !setpriority(PRIO_PROCESS, 0, now_nice() - 1)) {
		setpriority(PRIO_PROCESS, 0, now_nice() + 1);
		return;
	}
	print_message("may not raise priorities here: skipped\n");
	skip();
}

static void set_polite(void)
{
	_modest_ = rls_modest_set(RLS_MODEST_POLITE);

	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(now_nice(), 10);
}

static void each_level_is_set_and_taken_back(void **state)
{
	int nice = now_nice();

	skip_unless_able();
	rls_modest_begin(LONG_NS);
	{
		_modest_ = rls_modest_set(RLS_MODEST_SPARE);

		assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
		set_polite();
		assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	}
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(now_nice(), nice);
	rls_modest_set(RLS_MODEST_SPARE);
	rls_modest_end();
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(now_nice(), nice);
}

static void patience_ends(void **state)
{
	int nice = now_nice();

	skip_unless_able();
	rls_modest_begin(20000000);
	assert_int_equal(rls_modest_set(RLS_MODEST_POLITE), RLS_MODEST_NOT);
	while (now_nice() != nice)
		usleep(1000);
	rls_modest_set(RLS_MODEST_SPARE);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	rls_modest_end();
	assert_int_equal(now_nice(), nice);
}

static void *set_spare(void *scheduler)
{
	rls_modest_set(RLS_MODEST_SPARE);
	*(int *)scheduler = sched_getscheduler(0);
	return NULL;
}

static void others_stay_as_they_are(void **state)
{
	int scheduler = -1, nice = now_nice();
	pthread_t thread;

	rls_modest_set(RLS_MODEST_SPARE); /* nothing has begun */
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	rls_modest_begin(LONG_NS);
	assert_int_equal(pthread_create(&thread, NULL, set_spare, &scheduler), 0);
	pthread_join(thread, NULL);
	assert_int_equal(scheduler, SCHED_OTHER);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	rls_modest_end();
	assert_int_equal(now_nice(), nice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_level_is_set_and_taken_back),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test(others_stay_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
