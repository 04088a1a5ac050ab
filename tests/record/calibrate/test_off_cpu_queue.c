/* Off-CPU periods are taken in order of time, up to an instant; the oldest make room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/calibrate/off_cpu_queue.h"

static void takes_what_is_over(void **state)
{
	struct rls_off_cpu_queue queue = {0};

	(void)state;
	assert_int_equal(rls_off_cpu_queue_sum(&queue, UINT64_MAX), 0);
	assert_int_equal(rls_off_cpu_queue_take(&queue, UINT64_MAX), 0);
	assert_int_equal(rls_off_cpu_queue_add(&queue, 100, 5), 0);
	assert_int_equal(rls_off_cpu_queue_add(&queue, 200, 7), 0);
	assert_int_equal(rls_off_cpu_queue_add(&queue, 300, 11), 0);
	assert_int_equal(rls_off_cpu_queue_sum(&queue, 99), 0);
	assert_int_equal(rls_off_cpu_queue_sum(&queue, 200), 12);
	assert_int_equal(rls_off_cpu_queue_take(&queue, 200), 12);
	assert_int_equal(rls_off_cpu_queue_take(&queue, 299), 0);
	assert_int_equal(rls_off_cpu_queue_take(&queue, 300), 11);
	assert_int_equal(rls_off_cpu_queue_take(&queue, UINT64_MAX), 0);
	rls_off_cpu_queue_clear(&queue);
}

static void oldest_make_room(void **state)
{
	struct rls_off_cpu_queue queue = {0};

	(void)state;
	for (uint64_t round = 0; round < 2; round++) {
		for (uint64_t i = 1; i <= RLS_OFF_CPU_QUEUED + 3; i++)
			assert_int_equal(rls_off_cpu_queue_add(&queue, i, i), 0);
		assert_int_equal(rls_off_cpu_queue_take(&queue, 3), 0);
		assert_int_equal(rls_off_cpu_queue_take(&queue, 5), 4 + 5);
		assert_int_equal(rls_off_cpu_queue_take(&queue, 6), 6);
		rls_off_cpu_queue_take(&queue, UINT64_MAX);
		assert_int_equal(queue.count, 0);
	}
	rls_off_cpu_queue_clear(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_is_over),
		cmocka_unit_test(oldest_make_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
