/* What CUPTI adds to calls, found from made-up durations with and without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "userspace/record/gpu/cupti_overhead.h"

#define STRETCH_NS 1000000000ULL
#define LAUNCH 11
#define COPY 12
#define WAIT 13
#define RARE 14

struct job {
	double launch_ns, copy_ns; /* what CUPTI adds */
	unsigned int seed, stretches;
	double bursts; /* share of calls */
};

static double random_share(void)
{
	return (double)rand() / RAND_MAX;
}

static void call(struct rls_cupti_overhead *overhead, rls_string_id name, uint64_t at_ns, double ns)
{
	assert_int_equal(rls_cupti_overhead_add(overhead, name, at_ns, (uint64_t)ns), 0);
}

/* Launches of 5 µs or so, copies of 8, and waits that last as long as a GPU's work does. */
/* Others' bursts: for dozens of calls at a time the machine is slower. */
static double burst(const struct job *job, int i)
{
	static double slower;

	if (i % 40 == 0)
		slower = random_share() < job->bursts ? 1.3 + 1.7 * random_share() : 1;
	return slower;
}

static void stretch(struct rls_cupti_overhead *overhead, const struct job *job, uint64_t from_ns,
		    bool armed)
{
	double machine = 1 + 0.1 * random_share();

	rls_cupti_overhead_begin(overhead, from_ns, armed);
	call(overhead, LAUNCH, from_ns - 1, 1e9); /* began before CUPTI was at rest */
	for (int i = 0; i < 400; i++) {
		uint64_t at_ns = from_ns + (uint64_t)i * 1000;
		double slow = machine * burst(job, i);

		call(overhead, LAUNCH, at_ns,
		     slow * (4000 + 2000 * random_share() + armed * job->launch_ns));
		call(overhead, WAIT, at_ns, 1e6 * random_share() * random_share());
		if (i % 4 == 0)
			call(overhead, COPY, at_ns,
			     slow * (7000 + 2000 * random_share() + armed * job->copy_ns));
	}
	call(overhead, RARE, from_ns, armed ? 9000 : 1000);
	rls_cupti_overhead_end(overhead);
	call(overhead, LAUNCH, from_ns + STRETCH_NS, 1e9); /* after it */
}

static size_t run(const struct job *job, struct rls_cupti_cost *out, size_t max)
{
	struct rls_cupti_overhead overhead = {0};
	size_t count;

	srand(job->seed);
	for (unsigned int i = 0; i < job->stretches; i++)
		stretch(&overhead, job, (i + 1) * STRETCH_NS, i & 1);
	count = rls_cupti_overhead_conclude(&overhead, out, max);
	rls_cupti_overhead_clear(&overhead);
	return count;
}

static void finds_what_each_call_costs_more(void **state)
{
	unsigned int held = 0;

	(void)state;
	for (unsigned int seed = 1; seed <= 40; seed++) {
		const struct job job = {3000, 1000, seed, 20, 0};
		struct rls_cupti_cost costs[8];
		size_t count = run(&job, costs, 8);
		double truth = 1.05 * job.launch_ns;

		assert_true(count >= 1);
		assert_int_equal(costs[0].name, LAUNCH);
		assert_true(fabs(costs[0].ns - truth) < 0.2 * truth);
		assert_true(fabs(costs[0].plain_ns - 1.05 * 4500) < 500); /* the quicker half */
		assert_int_equal(costs[0].calls, 20 * 400);
		held += fabs(costs[0].ns - truth) <= costs[0].error_ns;
		if (count == 2) {
			assert_int_equal(costs[1].name, COPY);
			assert_true(fabs(costs[1].ns - 1.05 * job.copy_ns) < 500);
		}
	}
	assert_true(held >= 35); /* a 95 % interval, 40 samples */
}

/* In ten stretches, some eight seconds, of a busy machine. */
static void bursts_hide_little(void **state)
{
	unsigned int reported = 0;

	(void)state;
	for (unsigned int seed = 1; seed <= 40; seed++) {
		const struct job job = {3000, 1000, seed, 10, 0.15};
		struct rls_cupti_cost costs[8];
		size_t count = run(&job, costs, 8);

		if (!count || costs[0].name != LAUNCH)
			continue;
		reported++;
		assert_true(fabs(costs[0].ns - 1.05 * job.launch_ns) < 0.5 * job.launch_ns);
	}
	assert_true(reported >= 36);
}

/* Of more than are kept those that come late count like the first. */
static void of_many_calls_all_are_as_likely_to_count(void **state)
{
	struct rls_cupti_overhead overhead = {0};
	struct rls_cupti_cost cost;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		uint64_t from_ns = (i + 1) * STRETCH_NS;

		rls_cupti_overhead_begin(&overhead, from_ns, i & 1);
		for (uint64_t k = 0; k < 40000; k++)
			call(&overhead, LAUNCH, from_ns + k,
			     k < 10000 ? 9000 : 1000 + (i & 1) * 500);
		rls_cupti_overhead_end(&overhead);
	}
	assert_int_equal(rls_cupti_overhead_conclude(&overhead, &cost, 1), 1);
	assert_true(fabs(cost.ns - 500) < 1 && fabs(cost.plain_ns - 1000) < 1);
	assert_int_equal(cost.calls, 8 * 40000);
	rls_cupti_overhead_clear(&overhead);
}

/* Neither waits, whose own length hides it, nor a name that came once a stretch, nor nothing. */
static void says_nothing_of_what_is_unknown(void **state)
{
	const struct job free_of_charge = {0, 0, 5, 20, 0};
	struct rls_cupti_cost costs[8];
	size_t count = run(&(struct job){3000, 1000, 7, 20, 0}, costs, 8);

	(void)state;
	for (size_t i = 0; i < count; i++)
		assert_true(costs[i].name != WAIT && costs[i].name != RARE);
	count = run(&free_of_charge, costs, 8);
	for (size_t i = 0; i < count; i++)
		assert_true(costs[i].ns < 500);
}

static void wants_stretches_of_both_kinds(void **state)
{
	struct rls_cupti_cost costs[2];

	(void)state;
	assert_int_equal(run(&(struct job){3000, 3000, 3, 5, 0}, costs, 2), 0);
	assert_int_equal(run(&(struct job){3000, 3000, 3, 0, 0}, costs, 2), 0);
	assert_int_equal(run(&(struct job){3000, 3000, 3, 40, 0}, costs, 1), 1);
}

static void made_up_names_are_bounded(void **state)
{
	struct rls_cupti_overhead overhead = {0};

	(void)state;
	rls_cupti_overhead_begin(&overhead, 1, true);
	for (rls_string_id name = 1; name < 5000; name++)
		call(&overhead, name, 2, 1000);
	assert_true(overhead.count <= 512);
	rls_cupti_overhead_clear(&overhead);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_each_call_costs_more),
		cmocka_unit_test(bursts_hide_little),
		cmocka_unit_test(of_many_calls_all_are_as_likely_to_count),
		cmocka_unit_test(says_nothing_of_what_is_unknown),
		cmocka_unit_test(wants_stretches_of_both_kinds),
		cmocka_unit_test(made_up_names_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
