/* How long devices were busy, from intervals that come in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "userspace/monitor/gpu_use.h"

#define SECOND_NS 1000000000ULL
#define MS 1000000ULL
#define LATER (1000 * SECOND_NS)

static struct rls_gpu_use use;

static int begin(void **state)
{
	use = (struct rls_gpu_use){.since_ns = SECOND_NS};
	return 0;
}

static int clear(void **state)
{
	rls_gpu_use_clear(&use);
	return 0;
}

static void add(uint32_t device, enum rls_gpu_kind kind, uint64_t start_ms, uint64_t end_ms)
{
	struct rls_event event = {.kind = RLS_EVENT_GPU, .time_ns = SECOND_NS + start_ms * MS};

	event.gpu.end_ns = SECOND_NS + end_ms * MS;
	event.gpu.device = device;
	event.gpu.kind = kind;
	assert_int_equal(rls_gpu_use_add(&use, &event), 0);
}

static void overlapping_work_counts_once(void **state)
{
	add(0, RLS_GPU_KERNEL, 20, 30);
	add(0, RLS_GPU_MEMCPY, 5, 8);
	add(0, RLS_GPU_KERNEL, 0, 10);
	add(0, RLS_GPU_SYNC, 0, 100);
	add(3, RLS_GPU_KERNEL, 0, 7);
	rls_gpu_use_advance(&use, LATER);
	assert_int_equal(rls_gpu_use_show(&use), 0);
	assert_int_equal(use.count, 2);
	assert_int_equal(use.shown[0].busy_ns, 20 * MS);
	assert_int_equal(use.shown[0].kernels, 2);
	assert_int_equal(use.shown[0].smi_style_ns, SECOND_NS / 6);
	assert_int_equal(use.shown[1].device, 3);
	assert_int_equal(use.shown[1].busy_ns, 7 * MS);
}

static void work_waits_for_what_comes_later_but_began_before(void **state)
{
	add(0, RLS_GPU_KERNEL, 50, 60);
	rls_gpu_use_advance(&use, SECOND_NS + 100 * MS);
	assert_int_equal(rls_gpu_use_show(&use), 0);
	assert_int_equal(use.shown[0].busy_ns, 0);
	add(0, RLS_GPU_KERNEL, 0, 55);
	rls_gpu_use_advance(&use, LATER);
	assert_int_equal(rls_gpu_use_show(&use), 0);
	assert_int_equal(use.shown[0].busy_ns, 60 * MS);
	/* Later than that: the part of it that can still be reported. */
	add(0, RLS_GPU_KERNEL, 0, 70);
	rls_gpu_use_advance(&use, LATER);
	assert_int_equal(rls_gpu_use_show(&use), 0);
	assert_int_equal(use.shown[0].busy_ns, 70 * MS);
	assert_int_equal(use.shown[0].kernels, 3);
}

static void what_waits_is_bounded(void **state)
{
	for (uint64_t i = 0; i < 3 * RLS_GPU_USE_WAITING; i++)
		add(0, RLS_GPU_KERNEL, 2 * i, 2 * i + 1);
	assert_true(use.devices[0].count <= RLS_GPU_USE_WAITING);
	rls_gpu_use_advance(&use, UINT64_MAX);
	assert_int_equal(rls_gpu_use_show(&use), 0);
	assert_int_equal(use.shown[0].busy_ns, 3 * RLS_GPU_USE_WAITING * MS);
}

static void devices_are_bounded(void **state)
{
	for (uint32_t i = 0; i < 1000; i++)
		add(i, RLS_GPU_KERNEL, i, i + 1);
	assert_int_equal(use.count, RLS_GPU_USE_DEVICES);
}

static void busy_time_never_goes_back(void **state)
{
	uint64_t before_ns = 0;

	srand(3);
	for (uint64_t round = 0; round < 500; round++) {
		uint64_t start_ms = (uint64_t)(rand() % 20000);

		add(0, RLS_GPU_KERNEL, start_ms, start_ms + (uint64_t)(rand() % 50));
		rls_gpu_use_advance(&use, SECOND_NS + round * 50 * MS);
		assert_int_equal(rls_gpu_use_show(&use), 0);
		assert_true(use.shown[0].busy_ns >= before_ns);
		before_ns = use.shown[0].busy_ns;
	}
	assert_true(before_ns > 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(overlapping_work_counts_once),
		TEST(work_waits_for_what_comes_later_but_began_before),
		TEST(what_waits_is_bounded),
		TEST(devices_are_bounded),
		TEST(busy_time_never_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
