/* Which edges of ranges are probed, by what has begun. The kernel is the tests'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/probes/range_probes.h"

#define SECOND 1000000000ULL
#define TICK (SECOND / 100)
#define START (5 * SECOND)

static struct {
	double own_a_second, own;
	uint64_t others;
	bool begins, ends;
	uint64_t heard_ns;      /* for how long begins were */
	unsigned int switches;
} job;

void __wrap_rls_kernel_ranges_begun(const struct rls_kernel *kernel, uint64_t *own, uint64_t *others);
void __wrap_rls_kernel_ranges_begun(const struct rls_kernel *kernel, uint64_t *own, uint64_t *others)
{
	(void)kernel;
	*own = (uint64_t)job.own;
	*others = job.others;
}

int __wrap_rls_kernel_hear_range_ends(struct rls_kernel *kernel, bool heard);
int __wrap_rls_kernel_hear_range_ends(struct rls_kernel *kernel, bool heard)
{
	(void)kernel;
	assert_true(job.ends != heard);
	job.ends = heard;
	return 0;
}

int __wrap_rls_kernel_hear_range_begins(struct rls_kernel *kernel, bool heard);
int __wrap_rls_kernel_hear_range_begins(struct rls_kernel *kernel, bool heard)
{
	(void)kernel;
	assert_true(job.begins != heard);
	job.begins = heard;
	job.switches++;
	return 0;
}

static void start(double own_a_second)
{
	job = (typeof(job)){ .own_a_second = own_a_second, .begins = true, .ends = true };
}

/* From one second after START to the other. What is not heard is not counted. */
static void run(struct rls_range_hearing *hearing, double from, double to, double percent)
{
	job.heard_ns = 0;
	for (uint64_t ns = (uint64_t)(from * SECOND); ns < (uint64_t)(to * SECOND); ns += TICK) {
		if (job.begins) {
			job.own += job.own_a_second * TICK / SECOND;
			job.heard_ns += TICK;
		}
		rls_range_hearing_tick(hearing, NULL, START + ns, percent);
	}
}

/* The first 20 seconds, after which it is listened now and then. */
static void run_until_dozing(struct rls_range_hearing *hearing)
{
	start(1000);
	run(hearing, 0, 20, 2);
}

static void hears_all_of_somebody(void **state)
{
	struct rls_range_hearing hearing = { 0 };

	(void)state;
	start(1000);
	job.others = 1;
	run(&hearing, 0, 30, 2);
	assert_true(job.begins && job.ends);
	assert_int_equal(job.switches, 0);
}

static void hears_few_begin(void **state)
{
	struct rls_range_hearing hearing = { 0 };

	(void)state;
	start(100);
	run(&hearing, 0, 60, 2);
	assert_true(job.begins && !job.ends);
	assert_int_equal(job.switches, 0);
	start(100);
	hearing = (struct rls_range_hearing){ 0 };
	run(&hearing, 0, 60, 1); /* are more of a smaller budget */
	assert_true(job.switches > 0);
}

static void listens_for_a_tenth_where_there_are_many(void **state)
{
	struct rls_range_hearing hearing = { 0 };

	(void)state;
	start(1000);
	run(&hearing, 0, 9.9, 2);
	assert_true(job.begins && !job.ends);
	assert_int_equal(job.switches, 0);
	run(&hearing, 9.9, 110, 2);
	assert_in_range(job.heard_ns, 7 * SECOND, 14 * SECOND);
	assert_in_range(job.switches, 50, 110);
}

static void hears_all_from_somebodys_first_on(void **state)
{
	struct rls_range_hearing hearing = { 0 };

	(void)state;
	run_until_dozing(&hearing);
	job.others = 1;
	run(&hearing, 20, 20.1, 2);
	assert_true(job.begins && job.ends);
	run(&hearing, 20.1, 60, 2);
	assert_true(job.begins && job.ends);
}

static void hears_more_again_when_they_become_few(void **state)
{
	struct rls_range_hearing hearing = { 0 };

	(void)state;
	run_until_dozing(&hearing);
	job.own_a_second = 10;
	run(&hearing, 20, 25, 2);
	run(&hearing, 25, 60, 2);
	assert_int_equal(job.heard_ns, 35 * SECOND);
}

static void listens_as_at_first_to_who_is_new(void **state)
{
	struct rls_range_hearing hearing = { 0 };

	(void)state;
	run_until_dozing(&hearing);
	rls_range_hearing_wake(&hearing, NULL, START + 20 * SECOND);
	run(&hearing, 20, 29.9, 2);
	assert_in_range(job.heard_ns, 98 * SECOND / 10, 10 * SECOND);
	run(&hearing, 29.9, 50, 2);
	assert_in_range(job.heard_ns, SECOND, 4 * SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hears_all_of_somebody),
		cmocka_unit_test(hears_few_begin),
		cmocka_unit_test(listens_for_a_tenth_where_there_are_many),
		cmocka_unit_test(hears_all_from_somebodys_first_on),
		cmocka_unit_test(hears_more_again_when_they_become_few),
		cmocka_unit_test(listens_as_at_first_to_who_is_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
