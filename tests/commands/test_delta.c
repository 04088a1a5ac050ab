/* From runs with and without probes to what a hit costs. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "userspace/commands/delta.h"

static void is_exact_without_noise(void **state)
{
	const struct rls_delta_round rounds[] = { { 1000000000, 1500000000, 4e8, 1e6 },
						  { 1000000000, 1500000000, 4e8, 1e6 } };
	struct rls_delta delta;

	(void)state;
	assert_int_equal(rls_delta_conclude(rounds, 2, &delta), 0);
	assert_true(fabs(delta.factor - 1.25) < 1e-9 && delta.error < 1e-9);
	assert_true(delta.hits == 1e6);
}

static void interval_holds_the_truth(void **state)
{
	int held = 0;

	(void)state;
	srand(3);
	for (int trial = 0; trial < 2000; trial++) {
		struct rls_delta_round rounds[6];
		struct rls_delta delta;

		for (int i = 0; i < 6; i++) {
			/* The sum of twelve uniform numbers is nearly normal; deviation 10 ms. */
			double noise_ns = -6e7;

			for (int k = 0; k < 12; k++)
				noise_ns += 1e7 * rand() / RAND_MAX;
			rounds[i] = (struct rls_delta_round){
				1000000000, (uint64_t)(1000000000 + 1.3 * 5e8 + noise_ns), 5e8, 1e6
			};
		}
		assert_int_equal(rls_delta_conclude(rounds, 6, &delta), 0);
		held += fabs(delta.factor - 1.3) <= delta.error;
	}
	assert_true(held > 2000 * 0.92 && held < 2000 * 0.98);
}

static void nothing_comes_of_no_hits(void **state)
{
	const struct rls_delta_round rounds[3] = { { 5, 6, 0, 0 }, { 5, 6, 0, 0 }, { 5, 6, NAN, 0 } };
	struct rls_delta delta = { .factor = 7 };

	(void)state;
	assert_int_equal(rls_delta_conclude(rounds, 2, &delta), -ERANGE);
	assert_int_equal(rls_delta_conclude(rounds, 3, &delta), -ERANGE);
	assert_true(delta.factor == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_exact_without_noise),
		cmocka_unit_test(interval_holds_the_truth),
		cmocka_unit_test(nothing_comes_of_no_hits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
