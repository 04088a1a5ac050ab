/* Who keeps step with ticks, and who only seems to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/attach/tick_phases.h"

/* Beginnings at so many places between two ticks, equally far apart. */
static bool paced(int places, uint64_t each)
{
	uint64_t counts[RLS_TICK_PHASES] = {0};

	for (int i = 0; i < places; i++)
		counts[(i * RLS_TICK_PHASES / places + 3) % RLS_TICK_PHASES] += each;
	return rls_tick_phases_in_step(counts);
}

static void deadlines_keep_step(void **state)
{
	(void)state;
	assert_true(paced(1, 10)); /* 250, 50 or 25 times a second where ticks are 4 ms apart */
	assert_true(paced(2, 30)); /* 100 times */
	assert_true(paced(6, 600)); /* 60 times, seen for long enough */
	assert_false(paced(RLS_TICK_PHASES, 1000000));
}

static void few_prove_nothing(void **state)
{
	const uint64_t none[RLS_TICK_PHASES] = {0};

	(void)state;
	assert_false(rls_tick_phases_in_step(none));
	assert_false(paced(1, 3));
	assert_false(paced(2, 4));
}

static void chance_keeps_no_step(void **state)
{
	unsigned int wrong = 0;

	(void)state;
	srand(7);
	for (int trial = 0; trial < 2000; trial++) {
		uint64_t counts[RLS_TICK_PHASES] = {0};
		int beginnings = 1 << (trial % 16);

		for (int i = 0; i < beginnings; i++)
			counts[rand() % RLS_TICK_PHASES]++;
		wrong += rls_tick_phases_in_step(counts);
	}
	assert_true(wrong <= 2);
}

/* A third of them in step with the ticks. */
static void some_in_step_among_others_are_found(void **state)
{
	uint64_t counts[RLS_TICK_PHASES];

	(void)state;
	for (int i = 0; i < RLS_TICK_PHASES; i++)
		counts[i] = 100;
	assert_false(rls_tick_phases_in_step(counts));
	counts[RLS_TICK_PHASES - 1] += 50 * RLS_TICK_PHASES;
	assert_true(rls_tick_phases_in_step(counts));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadlines_keep_step),
		cmocka_unit_test(few_prove_nothing),
		cmocka_unit_test(chance_keeps_no_step),
		cmocka_unit_test(some_in_step_among_others_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
