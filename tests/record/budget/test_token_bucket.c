/* The budget on a simulated clock: a job whose hits cost so much a time while windows are open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/budget/token_bucket.h"

#define TICK_NS 10000000ULL
#define SHARE 0.02
#define SWITCH_NS 1500000.0
#define LOAN_NS 300e6 /* a quarter of what a minute earns */

struct outcome {
	double spent_ns, first_spent_ns, open_ns;
	uint64_t first_close_ns;
	unsigned int windows, windows_by_half[2];
};

struct job {
	double loan_ns;
	double rate; /* what the loop's first half of each period costs; the second as much again */
	double closed_rate; /* what the first half costs while windows are closed; the second nothing */
};

static struct outcome run_job(const struct job *job, uint64_t length_ns, uint64_t period_ns,
			      uint64_t seed)
{
	struct rls_token_bucket budget;
	struct outcome out = {0};
	double cost_ns = 0;

	rls_token_bucket_start(&budget, SHARE, 0, seed);
	rls_token_bucket_lend(&budget, job->loan_ns);
	for (uint64_t now_ns = TICK_NS; now_ns <= length_ns; now_ns += TICK_NS) {
		unsigned int half = now_ns % period_ns >= period_ns / 2;
		enum rls_token_bucket_step step;

		cost_ns = (budget.open ? job->rate * (1 + half) : job->closed_rate * (1 - half)) *
			  (double)TICK_NS;
		out.spent_ns += cost_ns;
		out.open_ns += budget.open ? (double)TICK_NS : 0;
		step = rls_token_bucket_tick(&budget, now_ns, cost_ns);
		if (step == RLS_BUDGET_STAY)
			continue;
		assert_int_equal(step == RLS_BUDGET_OPEN, !budget.open);
		if (!out.first_close_ns) {
			out.first_close_ns = now_ns;
			out.first_spent_ns = out.spent_ns;
		}
		out.windows += step == RLS_BUDGET_OPEN;
		out.windows_by_half[half] += step == RLS_BUDGET_OPEN;
		out.spent_ns += SWITCH_NS;
		rls_token_bucket_switched(&budget, step == RLS_BUDGET_OPEN, now_ns, SWITCH_NS);
	}
	return out;
}

static struct outcome run_lent(double loan_ns, double rate, uint64_t length_ns, uint64_t period_ns,
			       uint64_t seed)
{
	return run_job(&(struct job){.loan_ns = loan_ns, .rate = rate}, length_ns, period_ns, seed);
}

static struct outcome run(double rate, uint64_t length_ns, uint64_t period_ns, uint64_t seed)
{
	return run_lent(0, rate, length_ns, period_ns, seed);
}

static void traces_all_of_what_is_cheap(void **state)
{
	struct outcome out = run(SHARE / 4, 60000000000ULL, 1000000000ULL, 1);

	assert_int_equal(out.first_close_ns, 0);
}

static void begins_with_everything_traced(void **state)
{
	struct outcome out = run(0.15, 10000000000ULL, 1000000000ULL, 2);

	assert_true(out.first_close_ns > 300000000);
	assert_true(out.first_spent_ns < SHARE * (double)RLS_BUDGET_SPAN_NS);
}

static void keeps_within_the_budget(void **state)
{
	static const double rates[] = {0.03, 0.15, 0.6};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		for (uint64_t seed = 1; seed <= 20; seed++) {
			double length_ns = 60e9;
			struct outcome out = run(rates[i], (uint64_t)length_ns, 700000000ULL, seed);

			assert_true(out.spent_ns <= 1.1 * SHARE * length_ns);
			assert_true(out.spent_ns >= 0.5 * SHARE * length_ns);
			assert_true(out.windows >= 5);
		}
	}
}

/* The first stretch is as long as without it; the minute as a whole costs no more. */
static void pays_back_what_putting_probes_on_has_cost(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		double length_ns = 60e9;
		struct outcome lent =
			run_lent(LOAN_NS, 0.15, (uint64_t)length_ns, 700000000ULL, seed);
		struct outcome not_lent = run(0.15, (uint64_t)length_ns, 700000000ULL, seed);
		double later_ns =
			run_lent(LOAN_NS, 0.15, 180000000000ULL, 700000000ULL, seed).spent_ns;

		assert_int_equal(lent.first_close_ns, not_lent.first_close_ns);
		assert_true(lent.spent_ns + LOAN_NS <= 1.1 * SHARE * length_ns);
		assert_true(not_lent.spent_ns > lent.spent_ns + 0.7 * LOAN_NS);
		/* Once: after that all is spent again. */
		assert_true(later_ns + LOAN_NS >= 0.85 * SHARE * 180e9);
		assert_true(lent.windows >= 5);
	}
}

/* However much it is, a quarter of what is earned goes into windows. */
static void goes_on_with_a_large_loan(void **state)
{
	struct outcome out = run_lent(1e12, 0.15, 120000000000ULL, 700000000ULL, 3);

	assert_true(out.spent_ns > 0.25 * SHARE * 120e9);
	assert_true(out.spent_ns < 0.45 * SHARE * 120e9);
}

/* Windows begin at random instants: each half of the loop has its part of them. */
static void keeps_out_of_step(void **state)
{
	unsigned int first = 0, second = 0;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct outcome out = run(0.15, 120000000000ULL, 4000000000ULL, seed * 7919);

		first += out.windows_by_half[0];
		second += out.windows_by_half[1];
	}
	assert_true(first + second > 1000);
	assert_in_range(100 * first / (first + second), 40, 60);
}

/* Nor where little is left for them, and the more so in one half. */
static void keeps_out_of_step_where_credit_is_short(void **state)
{
	static const struct job job = {.rate = 0.4, .closed_rate = 0.03};
	unsigned int first = 0, second = 0;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct outcome out = run_job(&job, 240000000000ULL, 3000000000ULL, seed * 7919);

		first += out.windows_by_half[0];
		second += out.windows_by_half[1];
	}
	assert_true(first + second > 500);
	assert_in_range(100 * first / (first + second), 40, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traces_all_of_what_is_cheap),
		cmocka_unit_test(begins_with_everything_traced),
		cmocka_unit_test(keeps_within_the_budget),
		cmocka_unit_test(pays_back_what_putting_probes_on_has_cost),
		cmocka_unit_test(goes_on_with_a_large_loan),
		cmocka_unit_test(keeps_out_of_step),
		cmocka_unit_test(keeps_out_of_step_where_credit_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
