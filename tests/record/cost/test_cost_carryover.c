/* No charge is more than there was time for, and all are paid in the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "userspace/record/cost/cost_carryover.h"

static void charges_no_more_than_the_time(void **state)
{
	struct rls_cost_carryover carryover = {0};

	(void)state;
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_PYTHON, 1000, 700, false), 700);
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_BACKEND, 1500, 800, false), 500);
	/* The backend owes 300, Python nothing. */
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_PYTHON, 9000, 700, false), 700);
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_BACKEND, 10000, 800, false),
		1000);
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_PYTHON, 12000, 700, false), 700);
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_BACKEND, 15000, 800, false),
		900);
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_BACKEND, 15000, 0, false), 0);
}

static void pays_all(void **state)
{
	struct rls_cost_carryover carryover = {0};
	uint64_t now_ns = 1, said_ns = 0, charged_ns = 0, owed_ns = 0;

	(void)state;
	srand(6);
	for (int i = 0; i < 100000; i++) {
		uint64_t time_ns = (uint64_t)rand() % 3000, cost_ns = (uint64_t)rand() % 2000;
		uint64_t charged;

		now_ns += time_ns;
		charged = rls_cost_carryover_charge(&carryover,
						    (enum rls_category)(rand() % RLS_CATEGORY_MAX),
						    now_ns, cost_ns, rand() % 20 == 0);
		assert_true(!i || charged <= time_ns);
		said_ns += cost_ns;
		charged_ns += charged;
	}
	for (int category = 0; category < RLS_CATEGORY_MAX; category++)
		owed_ns += carryover.owed_ns[category];
	owed_ns += carryover.pollution_ns;
	assert_int_equal(said_ns, charged_ns + owed_ns);
	assert_true(owed_ns < said_ns / 1000);
}

/* Whatever the thread does next, a part of its time. */
static void all_pay_for_a_single_step(void **state)
{
	struct rls_cost_carryover carryover = {0};
	uint64_t now_ns = 1000, paid_ns = 0;

	(void)state;
	rls_cost_carryover_charge(&carryover, RLS_CATEGORY_PYTHON, now_ns, 500, false);
	assert_int_equal(rls_cost_carryover_charge(&carryover, RLS_CATEGORY_BACKEND,
						   now_ns += 20000, 47000, true),
			 20000);
	for (int i = 0; i < 100; i++) {
		enum rls_category category = i % 2 ? RLS_CATEGORY_BACKEND : RLS_CATEGORY_PYTHON;
		uint64_t own_ns = rls_cost_carryover_charge(&carryover, category, now_ns += 4900,
							    900, false) -
				  900;

		assert_true(own_ns <= 1000);
		paid_ns += own_ns;
		if (i < 20)
			assert_int_equal(own_ns, 1000);
	}
	assert_int_equal(paid_ns, 27000);
}

static void waiting_pays_nothing(void **state)
{
	struct rls_cost_carryover carryover = {0};

	(void)state;
	rls_cost_carryover_charge(&carryover, RLS_CATEGORY_BACKEND, 1000, 500, false);
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_BACKEND, 21000, 60000, true),
		20000);
	/* 40000 are owed by all, 4000 by the backend. */
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_BACKEND, 22000, 5000, false),
		1000);
	rls_cost_carryover_off_cpu(&carryover, 2000000);
	rls_cost_carryover_off_cpu(&carryover, 1000000);
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_BACKEND, 3026000, 0, false),
		4000);
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_PYTHON, 3030000, 0, false),
		1000);
	/* Longer than there was, as records of two CPUs may say. */
	rls_cost_carryover_off_cpu(&carryover, 9000);
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_PYTHON, 3034000, 700, false), 0);
	assert_int_equal(
		rls_cost_carryover_charge(&carryover, RLS_CATEGORY_PYTHON, 3038000, 0, false),
		700 + 825);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(charges_no_more_than_the_time),
		cmocka_unit_test(pays_all),
		cmocka_unit_test(all_pay_for_a_single_step),
		cmocka_unit_test(waiting_pays_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
