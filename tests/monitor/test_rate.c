/* How far a rate may be off that is known from a few stretches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "userspace/monitor/rate.h"

static void nothing_is_known_of_one_stretch(void **state)
{
	struct rls_rate rate = {0};

	assert_true(rls_rate_error(&rate) == 1);
	rls_rate_add(&rate, 1000, 1e6);
	assert_true(rls_rate_error(&rate) == 1);
}

static void what_is_always_the_same_is_known_well(void **state)
{
	struct rls_rate rate = {0};

	for (int i = 1; i <= 20; i++)
		rls_rate_add(&rate, 10000 * i, 1e6 * i);
	assert_true(rls_rate_error(&rate) < 0.01);
	assert_true(rls_rate_error(&rate) > 0); /* what is counted varies by its root */
}

static double of_two_phases(int stretches)
{
	struct rls_rate rate = {0};

	for (int i = 0; i < stretches; i++)
		rls_rate_add(&rate, i % 2 ? 1900 : 100, 1e6);
	return rls_rate_error(&rate);
}

/* Half of the stretches saw a tenth as many as the others: 0.9 of the mean each way. */
static void what_differs_is_known_the_better_the_more_there_are(void **state)
{
	assert_true(of_two_phases(10) > 0.6 && of_two_phases(10) < 0.75);
	assert_true(of_two_phases(40) > 0.27 && of_two_phases(40) < 0.31);
	assert_true(of_two_phases(2) == 1);
}

static void what_is_old_counts_for_less(void **state)
{
	struct rls_rate rate = {0};

	for (int i = 0; i < 20; i++)
		rls_rate_add(&rate, i % 2 ? 1900 : 100, 1e6);
	for (int i = 0; i < 200; i++) {
		rls_rate_age(&rate, 0.9);
		rls_rate_add(&rate, 1000, 1e6);
	}
	assert_true(rate.stretches > 9.9 && rate.stretches < 10.1);
	assert_true(rls_rate_error(&rate) < 0.05);
}

/* Of 1,000 draws of 30 windows the truth is within what is said in about 95 %. */
static void the_error_holds_the_truth(void **state)
{
	unsigned int seed = 1, held = 0;

	for (int draw = 0; draw < 1000; draw++) {
		struct rls_rate rate = {0};
		double off;

		for (int i = 0; i < 30; i++) {
			double time_ns = 1e6 * (1 + rand_r(&seed) % 3);
			double often = rand_r(&seed) % 5 < 2 ? 0.2e-3 : 1.5e-3;

			rls_rate_add(&rate, often * time_ns, time_ns);
		}
		off = rate.counts / rate.time_ns / (0.4 * 0.2e-3 + 0.6 * 1.5e-3) - 1;
		held += (off < 0 ? -off : off) <= rls_rate_error(&rate);
	}
	assert_in_range(held, 920, 980);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_of_one_stretch),
		cmocka_unit_test(what_is_always_the_same_is_known_well),
		cmocka_unit_test(what_differs_is_known_the_better_the_more_there_are),
		cmocka_unit_test(what_is_old_counts_for_less),
		cmocka_unit_test(the_error_holds_the_truth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
