/* What samples stand for, on threads that wait where ticks may be missed: shares of places, and the sum. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bpf/wire/tick_weight.h"

#define PERIOD_NS 2000000
#define SAMPLES 40000

/* A thread that goes round: a wait, a first place, a second place. */
struct round {
	int64_t wait_ns, first_ns, second_ns;
};

struct seen {
	double first_ns, second_ns; /* by samples */
	double true_first_ns, true_second_ns;
};

static int64_t between(unsigned int *random, int64_t least, int64_t most)
{
	return least + (int64_t)((double)(most - least) * rand_r(random) / RAND_MAX);
}

/* Ticks begin at random, and come with a period that varies a little, each up to late_ns too late. */
static struct seen watch(const struct round *round, int64_t late_ns, unsigned int random)
{
	struct seen seen = {0};
	int64_t due_ns = between(&random, 0, PERIOD_NS), time_ns = 0, ran_ns = 0, ticked_ns = 0,
		owed_ns = 0;

	for (int taken = 0; taken < SAMPLES;) {
		int64_t part_ns[3] = {round->wait_ns, round->first_ns, round->second_ns};

		for (int part = 0; part < 3; part++) {
			int64_t length_ns =
				between(&random, part_ns[part] / 2, part_ns[part] * 3 / 2);

			for (; due_ns < time_ns + length_ns;
			     due_ns += between(&random, PERIOD_NS - 200000, PERIOD_NS + 200000) +
				       between(&random, 0, late_ns)) {
				int64_t now_ran_ns = ran_ns + due_ns - time_ns;
				double weight_ns;

				if (!part)
					continue; /* it meets nobody, or does not come */
				weight_ns = (double)rls_tick_weight(
					&owed_ns, (uint64_t)(now_ran_ns - ticked_ns), PERIOD_NS);
				ticked_ns = now_ran_ns;
				*(part == 1 ? &seen.first_ns : &seen.second_ns) += weight_ns;
				taken++;
			}
			time_ns += length_ns;
			ran_ns += part ? length_ns : 0;
			if (part)
				*(part == 1 ? &seen.true_first_ns : &seen.true_second_ns) +=
					(double)length_ns;
		}
	}
	return seen;
}

static void check(const struct round *round, int64_t late_ns, double sum_off)
{
	for (unsigned int seed = 1; seed <= 5; seed++) {
		struct seen seen = watch(round, late_ns, seed);
		double sum_ns = seen.first_ns + seen.second_ns,
		       true_ns = seen.true_first_ns + seen.true_second_ns;
		double share = seen.first_ns / sum_ns, true_share = seen.true_first_ns / true_ns;

		assert_true(fabs(sum_ns / true_ns - 1) < sum_off);
		/* Four deviations of so many draws, which is less than a point. */
		assert_true(fabs(share - true_share) <
			    4 * sqrt(true_share * (1 - true_share) / SAMPLES));
	}
}

/* What a thread asked for its lock does: it hands it over where its first place begins. Taking the time since its last
 * tick, or since the CPU's, gave such a place two to four points too much. */
static void waits_add_nothing_to_what_follows(void **state)
{
	static const struct round rounds[] = {{300000, 2000000, 13000000},
					      {1000000, 2000000, 13000000},
					      {300000, 300000, 2000000},
					      {100000, 1000000, 4000000},
					      {5000000, 500000, 3000000}};

	(void)state;
	for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++)
		check(&rounds[i], 0, 0.005);
}

/* Ticks that are held back for half a period are fewer than they should be: the others stand for more. */
static void late_ticks_are_made_up_for(void **state)
{
	static const struct round round = {300000, 2000000, 13000000};

	(void)state;
	check(&round, PERIOD_NS, 0.005);
}

/* A thread that ran for an hour before anybody looked: its first sample is a sample. */
static void what_was_not_observed_is_no_debt(void **state)
{
	int64_t owed_ns = 0;
	double sum_ns = 0;

	(void)state;
	sum_ns += (double)rls_tick_weight(&owed_ns, 3600000000000ULL, PERIOD_NS);
	assert_true(sum_ns <= 2.0 * PERIOD_NS);
	for (int i = 0; i < 1000; i++)
		sum_ns += (double)rls_tick_weight(&owed_ns, PERIOD_NS, PERIOD_NS);
	assert_true(sum_ns < (1001.0 + RLS_OWED_PERIODS_MAX) * PERIOD_NS);
	/* Nor is what it hardly ran between two ticks more than those stood for, without end. */
	for (int i = 0; i < 1000; i++)
		assert_true(rls_tick_weight(&owed_ns, 0, PERIOD_NS) >= PERIOD_NS / 4);
	assert_true(owed_ns >= -(int64_t)RLS_OWED_PERIODS_MAX * PERIOD_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_add_nothing_to_what_follows),
		cmocka_unit_test(late_ticks_are_made_up_for),
		cmocka_unit_test(what_was_not_observed_is_no_debt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
