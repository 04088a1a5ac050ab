/* Hits close together cost what hot ones do, hits far apart what cold ones do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/cost/hit_cost_model.h"

#define HIT_NS 940
#define EXCESS_NS 420

/* The mean of what hits are charged that come with so much of the thread's own time in between, while they
 * truly cost that much. */
static double charged_ns(struct rls_hit_cost_model *model, double own_ns, double cost_ns, int hits)
{
	static uint64_t now_ns = 1;
	double sum_ns = 0;

	for (int i = 0; i < hits; i++) {
		const struct rls_wire_hit_totals hit_totals = {.hits = 1, .cost_ns = HIT_NS};

		now_ns += (uint64_t)(own_ns + cost_ns);
		sum_ns += rls_hit_cost_model_cost(model, EXCESS_NS, now_ns, &hit_totals);
	}
	return sum_ns / hits;
}

static double converged_ns(double own_ns, double cost_ns)
{
	struct rls_hit_cost_model model = {0};

	charged_ns(&model, own_ns, cost_ns, 1000);
	return charged_ns(&model, own_ns, cost_ns, 100);
}

static void grows_from_hot_to_cold(void **state)
{
	double before_ns = 0;

	assert_float_equal(converged_ns(0, HIT_NS - EXCESS_NS), HIT_NS - EXCESS_NS, 1);
	for (double own_ns = 0; own_ns < 30000; own_ns = 1.5 * own_ns + 50) {
		double range_ns = EXCESS_NS / 0.60;
		double cost_ns = HIT_NS - EXCESS_NS + range_ns * own_ns / (own_ns + 900);
		double found_ns = converged_ns(own_ns, cost_ns);

		/* What hits at that rate cost is found from what they take in all. */
		assert_float_equal(found_ns, cost_ns, 2);
		assert_true(found_ns >= before_ns);
		before_ns = found_ns;
	}
	/* What the calibration says is what a training loop's hits cost. */
	assert_float_equal(converged_ns(1350, HIT_NS), HIT_NS, 2);
}

/* Single steps, and hits that emit nothing, have costs of their own; the difference is that of any. */
static void keeps_what_hits_differ_by(void **state)
{
	struct rls_hit_cost_model model = {0};
	struct rls_wire_hit_totals hit_totals = {.hits = 1, .cost_ns = HIT_NS};
	uint64_t now_ns = 1;
	double plain_ns;

	for (int i = 0; i < 1000; i++)
		rls_hit_cost_model_cost(&model, EXCESS_NS, now_ns += 700, &hit_totals);
	plain_ns = rls_hit_cost_model_cost(&model, EXCESS_NS, now_ns += 700, &hit_totals);
	assert_true(plain_ns < HIT_NS - EXCESS_NS / 2.0);
	hit_totals.cost_ns += 45000;
	assert_float_equal(rls_hit_cost_model_cost(&model, EXCESS_NS, now_ns += 45700, &hit_totals),
			   plain_ns + 45000, EXCESS_NS);
	hit_totals = (struct rls_wire_hit_totals){.hits = 10, .cost_ns = 10 * HIT_NS};
	assert_true(rls_hit_cost_model_cost(&model, EXCESS_NS, now_ns += 7000, &hit_totals) <
		    10 * HIT_NS);
}

static void waiting_makes_no_hit_expensive(void **state)
{
	struct rls_hit_cost_model model = {0};
	struct rls_wire_hit_totals hit_totals = {.hits = 1, .cost_ns = HIT_NS};
	uint64_t now_ns = 1;
	double before_ns, after_ns;

	for (int i = 0; i < 1000; i++)
		before_ns = rls_hit_cost_model_cost(&model, EXCESS_NS, now_ns += 800, &hit_totals);
	hit_totals.off_cpu_ns = 5000000;
	after_ns = rls_hit_cost_model_cost(&model, EXCESS_NS, now_ns += 5000800, &hit_totals);
	assert_float_equal(after_ns, before_ns, 0.001);
	hit_totals.off_cpu_ns = 0;
	/* A pause, after which nothing is known of what came before; off-CPU for longer than there was. */
	assert_float_equal(
		rls_hit_cost_model_cost(&model, EXCESS_NS, now_ns += 1000000000, &hit_totals),
		before_ns, 0.001);
	hit_totals.off_cpu_ns = 1000000;
	assert_true(rls_hit_cost_model_cost(&model, EXCESS_NS, now_ns += 800, &hit_totals) >=
		    HIT_NS - EXCESS_NS);
}

static void says_what_the_calibration_says_where_it_knows_nothing(void **state)
{
	struct rls_hit_cost_model model = {0};
	struct rls_wire_hit_totals hit_totals = {.hits = 3, .cost_ns = 3 * HIT_NS};

	assert_float_equal(rls_hit_cost_model_cost(&model, EXCESS_NS, 1000, &hit_totals),
			   3 * HIT_NS, 0.001);

	hit_totals = (struct rls_wire_hit_totals){.hits = 0, .cost_ns = 80000};
	assert_float_equal(rls_hit_cost_model_cost(&model, EXCESS_NS, 2000, &hit_totals), 80000,
			   0.001);
	/* Time that goes back, as records of two CPUs may. */
	hit_totals = (struct rls_wire_hit_totals){.hits = 1, .cost_ns = HIT_NS};
	assert_true(rls_hit_cost_model_cost(&model, EXCESS_NS, 500, &hit_totals) > 0);
}

static void without_an_excess_nothing_changes(void **state)
{
	struct rls_hit_cost_model model = {0};
	struct rls_wire_hit_totals hit_totals = {.hits = 1, .cost_ns = HIT_NS};

	for (uint64_t now_ns = 1; now_ns < 100000; now_ns += 700)
		assert_float_equal(rls_hit_cost_model_cost(&model, 0, now_ns, &hit_totals), HIT_NS,
				   0.001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_from_hot_to_cold),
		cmocka_unit_test(keeps_what_hits_differ_by),
		cmocka_unit_test(waiting_makes_no_hit_expensive),
		cmocka_unit_test(says_what_the_calibration_says_where_it_knows_nothing),
		cmocka_unit_test(without_an_excess_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
