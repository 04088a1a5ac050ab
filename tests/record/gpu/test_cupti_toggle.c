/* When bridges are armed and disarmed, and which calls are compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/gpu/cupti_toggle.h"

#define MS 1000000ULL
#define LAUNCH 11

struct bridges {
	bool there, armed;
	unsigned int switches;
};

static void arm(void *context, bool armed)
{
	struct bridges *bridges = context;

	assert_true(armed != bridges->armed);
	bridges->armed = armed;
	bridges->switches++;
}

static bool is_bridged(void *context)
{
	return ((struct bridges *)context)->there;
}

/* A second at a time, with a call of 5 us each millisecond, and 3 more where CUPTI is armed. */
static void run(struct rls_cupti_toggle *toggle, const struct bridges *bridges, uint64_t from_s,
		uint64_t to_s)
{
	for (uint64_t ns = from_s * 1000 * MS; ns < to_s * 1000 * MS; ns += MS) {
		rls_cupti_toggle_tick(toggle, ns);
		assert_int_equal(
			rls_cupti_toggle_call(toggle, LAUNCH, ns, bridges->armed ? 8000 : 5000), 0);
	}
}

static void waits_for_a_bridge(void **state)
{
	struct bridges bridges = {.armed = true};
	struct rls_cupti_toggle toggle = {.bridges = {&bridges, arm, is_bridged}};

	(void)state;
	run(&toggle, &bridges, 1, 5);
	assert_false(rls_cupti_toggle_begun(&toggle));
	assert_int_equal(bridges.switches, 0);
	bridges.there = true;
	run(&toggle, &bridges, 5, 9);
	assert_true(rls_cupti_toggle_begun(&toggle));
	assert_true(bridges.switches >= 2);
	rls_cupti_toggle_clear(&toggle);
}

static void compares_armed_with_disarmed(void **state)
{
	struct bridges bridges = {.there = true, .armed = true};
	struct rls_cupti_toggle toggle = {.bridges = {&bridges, arm, is_bridged}};
	struct rls_cupti_cost cost;

	(void)state;
	run(&toggle, &bridges, 1, 31);
	assert_true(bridges.switches >= 20 && bridges.switches <= 30);
	assert_int_equal(rls_cupti_overhead_conclude(&toggle.overhead, &cost, 1), 1);
	assert_int_equal(cost.name, LAUNCH);
	assert_true(cost.ns == 3000 && cost.plain_ns == 5000);
	rls_cupti_toggle_clear(&toggle);
}

/* Calls after a switch belong to neither, until CUPTI has followed. */
static void leaves_out_what_follows_a_switch(void **state)
{
	struct bridges bridges = {.there = true, .armed = true};
	struct rls_cupti_toggle toggle = {.bridges = {&bridges, arm, is_bridged}};
	struct rls_cupti_cost cost;
	uint64_t switched_ns = 0;
	unsigned int switches = 0;

	(void)state;
	for (uint64_t ns = 1000 * MS; ns < 31000 * MS; ns += MS) {
		bool fresh;

		rls_cupti_toggle_tick(&toggle, ns);
		if (switches != bridges.switches || !switched_ns)
			switched_ns = ns;
		switches = bridges.switches;
		fresh = ns < switched_ns + 400 * MS;
		assert_int_equal(rls_cupti_toggle_call(&toggle, LAUNCH, ns,
						       fresh           ? 1
						       : bridges.armed ? 8000
								       : 5000),
				 0);
	}
	assert_int_equal(rls_cupti_overhead_conclude(&toggle.overhead, &cost, 1), 1);
	assert_true(cost.ns == 3000 && cost.plain_ns == 5000);
	rls_cupti_toggle_clear(&toggle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_a_bridge),
		cmocka_unit_test(compares_armed_with_disarmed),
		cmocka_unit_test(leaves_out_what_follows_a_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
