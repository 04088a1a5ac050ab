/* When the sites of ranges are probed, by what has begun. The kernel is the tests'. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/budget/range_duty.h"

#define SECOND 1000000000ULL
#define START (5 * SECOND)
#define HIT_NS 750
#define FEW 20 /* of PyTorch's own a second: 0.03 % of the time */
#define MANY 500

static struct {
	struct rls_range_duty duty;
	uint64_t now_ns, own, others;
	bool windowed;
	int result;
} job;

void __wrap_rls_kernel_ranges_begun(const struct rls_kernel *kernel, uint64_t *own,
				    uint64_t *others);
void __wrap_rls_kernel_ranges_begun(const struct rls_kernel *kernel, uint64_t *own,
				    uint64_t *others)
{
	(void)kernel;
	*own = job.own;
	*others = job.others;
}

int __wrap_rls_kernel_window_ranges(struct rls_kernel *kernel, bool windowed);
int __wrap_rls_kernel_window_ranges(struct rls_kernel *kernel, bool windowed)
{
	(void)kernel;
	assert_true(job.windowed != windowed);
	if (!job.result)
		job.windowed = windowed;
	return job.result;
}

static int set_up(void **state)
{
	(void)state;
	memset(&job, 0, sizeof(job));
	job.now_ns = job.duty.since_ns = START;
	return 0;
}

static int tick(double percent)
{
	return rls_range_duty_tick(&job.duty, NULL, HIT_NS, percent / 100, job.now_ns);
}

/* So many seconds with so many of PyTorch's own in each. */
static void run(unsigned int seconds, uint64_t own, double percent)
{
	for (unsigned int i = 0; i < seconds; i++) {
		job.now_ns += SECOND;
		job.own += own;
		assert_int_equal(tick(percent), 0);
	}
}

static void somebodys_keep_all_on(void **state)
{
	(void)state;
	job.others = 1;
	run(60, MANY, 1);
	assert_false(job.windowed);
}

static void few_stay_on(void **state)
{
	(void)state;
	run(60, FEW, 2);
	assert_false(job.windowed);
	run(60, FEW, 0.1); /* the same are many for a smaller budget */
	assert_true(job.windowed);
}

static void many_go_into_windows_after_a_while(void **state)
{
	(void)state;
	run(9, MANY, 2);
	assert_false(job.windowed);
	run(1, MANY, 2);
	assert_true(job.windowed);
	run(60, 0, 2); /* what windows tell is too little to take it back by */
	assert_true(job.windowed);
}

static void somebodys_first_puts_all_on_for_good(void **state)
{
	(void)state;
	run(20, MANY, 2);
	job.others = 1;
	assert_int_equal(tick(2), 0);
	assert_false(job.windowed);
	run(60, MANY, 2);
	assert_false(job.windowed);
}

static void a_new_process_is_watched_as_at_first(void **state)
{
	(void)state;
	run(20, MANY, 2);
	rls_range_duty_restart(&job.duty, NULL, job.now_ns);
	assert_false(job.windowed);
	run(9, MANY, 2);
	assert_false(job.windowed);
	run(1, MANY, 2);
	assert_true(job.windowed);
}

static void what_cannot_be_done_is_passed_on(void **state)
{
	(void)state;
	job.own = 100000;
	job.now_ns += 10 * SECOND;
	job.result = -ENOMEM;
	assert_int_equal(tick(2), -ENOMEM);
	job.result = 0;
	run(20, MANY, 2);
	assert_true(job.windowed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(somebodys_keep_all_on, set_up),
		cmocka_unit_test_setup(few_stay_on, set_up),
		cmocka_unit_test_setup(many_go_into_windows_after_a_while, set_up),
		cmocka_unit_test_setup(somebodys_first_puts_all_on_for_good, set_up),
		cmocka_unit_test_setup(a_new_process_is_watched_as_at_first, set_up),
		cmocka_unit_test_setup(what_cannot_be_done_is_passed_on, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
