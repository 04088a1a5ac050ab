/* What parts' hits cost, from differences with noise: on made-up ones whose factors are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "userspace/record/calibrate/overhead_factor.h"

#define BLOCKS 12
#define WORLDS 200
#define PARTS 3

/* Milliseconds of a block. */
struct truth {
	double plain, cost, factor, noise; /* noise: of what is seen of the factor, a block */
};

static double random_normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += (double)rand() / RAND_MAX;
	return sum;
}

static void draw(const struct truth parts[PARTS], struct rls_delta_in_vivo *out)
{
	struct rls_overhead_factor differences[BLOCKS * PARTS];
	struct rls_part costs[PARTS];
	size_t count = 0;

	for (uint32_t i = 0; i < PARTS; i++) {
		costs[i] = (struct rls_part){.operation = i + 1,
					     .cost_ns = BLOCKS * 1e6 * parts[i].cost};
		for (uint32_t block = 0; block < BLOCKS; block++) {
			double seen = parts[i].factor + parts[i].noise * random_normal();

			differences[count++] = (struct rls_overhead_factor){
				.label = i,
				.block = block,
				.part = i,
				.count = 1,
				.plain_ns = 1e6 * parts[i].plain,
				.cost_ns = 1e6 * parts[i].cost,
				.delta_ns = 1e6 * parts[i].cost * seen,
				.hits = 1000 * parts[i].cost,
			};
		}
	}
	assert_int_equal(rls_overhead_factors_conclude(differences, count, costs, PARTS, out), 0);
	assert_int_equal(out->part_count, PARTS);
}

/* The root mean square of what each part's factor is off by; how often that is more than is stated. */
static void sample(const struct truth parts[PARTS], double off[PARTS], size_t missed[PARTS])
{
	srand(1);
	for (size_t i = 0; i < PARTS; i++)
		off[i] = 0, missed[i] = 0;
	for (size_t world = 0; world < WORLDS; world++) {
		struct rls_delta_in_vivo found;

		draw(parts, &found);
		for (size_t i = 0; i < PARTS; i++) {
			double by = found.parts[i].factor - parts[i].factor;

			off[i] += by * by / WORLDS;
			missed[i] += fabs(by) > found.parts[i].error;
		}
	}
	for (size_t i = 0; i < PARTS; i++)
		off[i] = sqrt(off[i]);
}

/* No part is off by more, and hardly any by more than it states. */
static void assert_found(const struct truth parts[PARTS], const double most[PARTS])
{
	double off[PARTS];
	size_t missed[PARTS];

	sample(parts, off, missed);
	for (size_t i = 0; i < PARTS; i++) {
		assert_true(off[i] < most[i]);
		assert_true(missed[i] <= WORLDS / 20);
	}
}

/* As in TD3: nearly all is hit in the update, and hits in simulations are amid colder code. */
static void small_parts_have_their_own(void **state)
{
	const struct truth parts[PARTS] = {
		{800, 100, 1.05, 0.3},
		{25, 3, 1.6, 0.4},
		{20, 5, 1.2, 0.2},
	};

	(void)state;
	assert_found(parts, (double[PARTS]){0.11, 0.25, 0.1});
}

/* What is little known and might as well be alike is taken to be alike: by itself each of the small ones
 * would be off by 0.4. */
static void noise_makes_no_parts_differ(void **state)
{
	const struct truth parts[PARTS] = {
		{800, 100, 1.1, 0.1},
		{25, 3, 1.1, 1.2},
		{20, 3, 1.1, 1.2},
	};

	(void)state;
	assert_found(parts, (double[PARTS]){0.05, 0.25, 0.25});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_parts_have_their_own),
		cmocka_unit_test(noise_makes_no_parts_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
