/* How often blocks are counted, in jobs whose cost is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/memory/memory_windows.h"

#define TICK_NS 10000000ULL
#define SHARE 0.01
#define TENSOR 0
#define ARRAY 1

struct job {
	double cost[2]; /* of each source, of the time, while it is counted */
	double spent_ns[2];
	uint64_t narrowed_ns[2]; /* 0: never */
	uint64_t open_ns, opened; /* for so long in all, so often */
	uint64_t slower; /* it runs one in so many ns; 0: always */
	struct rls_memory_windows windows;
};

static bool is_counted(const struct job *job, uint32_t source)
{
	return job->windows.open || !(job->windows.windowed >> source & 1);
}

static void run(struct job *job, double seconds)
{
	uint64_t start_ns = job->windows.at_ns;
	uint64_t slower = job->slower ? job->slower : 1;

	for (uint64_t ns = 0; ns < (uint64_t)(seconds * 1e9); ns += TICK_NS) {
		uint64_t source_ns[RLS_MEMORY_SOURCES] = {0};
		uint32_t source = 99;

		for (uint32_t i = 0; i < 2; i++) {
			if (is_counted(job, i))
				job->spent_ns[i] += job->cost[i] * (double)TICK_NS;
			source_ns[i] = (uint64_t)job->spent_ns[i];
		}
		job->open_ns += job->windows.open ? TICK_NS : 0;
		switch (rls_memory_windows_step(&job->windows, 7 + slower * (start_ns + ns),
						start_ns + ns, source_ns, &source)) {
		case RLS_MEMORY_STEP_NARROW:
			assert_true(source < 2);
			assert_int_equal(job->narrowed_ns[source], 0);
			job->narrowed_ns[source] = ns + 1;
			break;
		case RLS_MEMORY_STEP_OPEN:
			assert_true(job->windows.windowed);
			job->opened++;
			break;
		default:
			break;
		}
	}
}

static void what_costs_little_is_counted_whole(void **state)
{
	struct job job = {.cost = {0.004, 0.004}, .windows = {.share = SHARE}};

	run(&job, 600);
	assert_int_equal(job.windows.windowed, 0);
	assert_int_equal(job.opened, 0);
}

static void no_limit_is_none(void **state)
{
	struct job job = {.cost = {0.9, 0.9}, .windows = {.share = -1}};

	run(&job, 60);
	assert_int_equal(job.windows.windowed, 0);
}

/* A burst that costs what ten seconds are allowed is no reason. */
static void a_burst_is_allowed(void **state)
{
	struct job job = {.cost = {0.3, 0}, .windows = {.share = SHARE}};

	run(&job, 0.25);
	job.cost[0] = 0.001;
	run(&job, 60);
	assert_int_equal(job.windows.windowed, 0);
}

static void the_share_holds(void **state)
{
	const double costs[] = {0.02, 0.1, 0.5, 0.95};

	for (unsigned int i = 0; i < 4; i++) {
		struct job job = {.cost = {costs[i], 0}, .windows = {.share = SHARE}};
		double spent_ns;

		run(&job, 600);
		assert_int_equal(job.windows.windowed, 1 << TENSOR);
		/* What was allowed at first is used up, and the rest is as it should be: much of it is used, too. */
		spent_ns = 1.25 * job.spent_ns[0] + 400000.0 * (double)job.opened;
		assert_true(spent_ns < SHARE * 600e9 * 1.1 + 0.1e9);
		assert_true(spent_ns > SHARE * 600e9 * 0.5);
		assert_true(job.opened > 20);
	}
}

/* A target that others keep from running pays no more of what it runs. */
static void the_share_is_of_what_it_runs(void **state)
{
	struct job job = {.cost = {0.5, 0}, .slower = 5, .windows = {.share = SHARE}};

	run(&job, 300);
	assert_true(1.25 * job.spent_ns[0] < SHARE * 300e9 * 1.1 + 0.1e9);
	assert_true(job.opened > 10);
}

/* The one that costs much does not take the other with it. */
static void only_what_is_expensive_goes_into_windows(void **state)
{
	struct job job = {.cost = {0.002, 0.4}, .windows = {.share = SHARE}};

	run(&job, 300);
	assert_int_equal(job.windows.windowed, 1 << ARRAY);
	assert_int_equal(job.narrowed_ns[TENSOR], 0);
	assert_true(1.25 * (job.spent_ns[0] + job.spent_ns[1]) < SHARE * 300e9 * 1.1 + 0.1e9);
}

/* The time that targets have run is read now and then: much may have been spent by then. */
static void a_late_step_blames_nobody_else(void **state)
{
	struct rls_memory_windows windows = {.share = SHARE};
	uint64_t source_ns[RLS_MEMORY_SOURCES] = {0};
	uint32_t source = 99;

	rls_memory_windows_step(&windows, 1, 5, source_ns, &source);
	source_ns[TENSOR] = 900000000;
	source_ns[ARRAY] = 1000000;
	assert_int_equal(rls_memory_windows_step(&windows, 2, 1000000005, source_ns, &source),
			 RLS_MEMORY_STEP_NARROW);
	assert_int_equal(source, TENSOR);
	for (uint64_t i = 0; i < 50; i++) {
		source_ns[ARRAY] += 5000;
		assert_int_not_equal(
			rls_memory_windows_step(&windows, 3 + i, 1000000005, source_ns, &source),
			RLS_MEMORY_STEP_NARROW);
	}
}

static void both_may(void **state)
{
	struct job job = {.cost = {0.05, 0.4}, .windows = {.share = SHARE}};

	run(&job, 300);
	assert_int_equal(job.windows.windowed, 1 << ARRAY | 1 << TENSOR);
	assert_true(job.narrowed_ns[ARRAY] < job.narrowed_ns[TENSOR]);
	assert_true(1.25 * (job.spent_ns[0] + job.spent_ns[1]) < SHARE * 300e9 * 1.1 + 0.2e9);
}

/* A program that begins to allocate much later is found. */
static void it_may_begin_at_any_time(void **state)
{
	struct job job = {.cost = {0, 0}, .windows = {.share = SHARE}};

	run(&job, 100);
	job.cost[0] = 0.5;
	run(&job, 1);
	assert_int_equal(job.windows.windowed, 1 << TENSOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_costs_little_is_counted_whole),
		cmocka_unit_test(no_limit_is_none),
		cmocka_unit_test(a_burst_is_allowed),
		cmocka_unit_test(the_share_holds),
		cmocka_unit_test(the_share_is_of_what_it_runs),
		cmocka_unit_test(only_what_is_expensive_goes_into_windows),
		cmocka_unit_test(a_late_step_blames_nobody_else),
		cmocka_unit_test(both_may),
		cmocka_unit_test(it_may_begin_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
