/* What windows say of all of the time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/base/jitter.h"
#include "userspace/record/memory/memory_estimate.h"

#define MS 1000000ULL
#define WINDOW_NS (50 * MS)

/* Blocks of 1,000 bytes: so many a ms at an instant. */
typedef double rate_at(double ms);

static double counted(rate_at *rate, uint64_t from_ns, uint64_t to_ns)
{
	double blocks = 0;

	for (uint64_t at = from_ns; at < to_ns; at += MS)
		blocks += rate((double)(at / MS));
	return blocks;
}

/* A recording of 60 s with a window every 0.5 to 1.5 s. */
static struct rls_memory_estimate record(rate_at *rate, uint64_t seed)
{
	struct rls_memory_estimate estimate = {.until_ns = 0};
	uint64_t end_ns = 60000 * MS, at_ns = 0;

	for (;;) {
		struct rls_memory_window window;
		double blocks;

		at_ns += rls_random_between(&seed, 500, 1500) * MS;
		window = (struct rls_memory_window){at_ns, at_ns + WINDOW_NS, 0};
		if (window.close_ns >= end_ns)
			break;
		blocks = counted(rate, window.open_ns, window.close_ns);
		rls_memory_estimate_window(&estimate, &window, (uint64_t)blocks,
					   (uint64_t)(1000 * blocks));
		at_ns = window.close_ns;
	}
	rls_memory_estimate_end(&estimate, end_ns);
	return estimate;
}

static double steady(double ms)
{
	return 40;
}

static double growing(double ms)
{
	return ms / 100;
}

/* Phases of 3 s, as of a job that collects and trains in turn. */
static double phases(double ms)
{
	return fmod(ms, 6000) < 3000 ? 80 : 2;
}

/* A burst of 200 ms every 5 s. */
static double bursts(double ms)
{
	return fmod(ms, 5000) < 200 ? 500 : 0;
}

static void what_is_steady_is_exact(void **state)
{
	struct rls_memory_estimate estimate = record(steady, 1);

	assert_true(fabs(estimate.allocs - 60000 * 40) < 1);
	assert_true(fabs(estimate.bytes - 60000 * 40000.0) < 1000);
	assert_true(rls_memory_estimate_error(&estimate) < 1);
}

static void errors_are_as_stated(void **state)
{
	rate_at *const rates[] = {growing, phases, bursts};

	for (size_t i = 0; i < 3; i++) {
		double truth = 1000 * counted(rates[i], 0, 60000 * MS), sum = 0, squares = 0;

		for (uint64_t seed = 1; seed <= 200; seed++) {
			struct rls_memory_estimate estimate = record(rates[i], seed * 77777);
			double stated = rls_memory_estimate_error(&estimate);
			double error = (estimate.bytes - truth) / stated;

			sum += estimate.bytes / truth;
			if (estimate.bytes > 0) /* else there is no row to be stated */
				squares += error * error;
		}
		/* Right on the average, and the errors are no larger than they say, nor much smaller. */
		assert_true(fabs(sum / 200 - 1) < 0.1);
		assert_true(sqrt(squares / 200) < (i < 2 ? 1.3 : 3));
		assert_true(sqrt(squares / 200) > 0.05);
	}
}

/* Of a recording that ended before any window opened, only what was is known. */
static void without_a_window_nothing_is_known(void **state)
{
	struct rls_memory_estimate estimate = {
		.until_ns = 5 * MS, .allocs_per_ns = 1e-6, .bytes_per_ns = 1e-3};

	rls_memory_estimate_end(&estimate, 105 * MS);
	assert_true(fabs(estimate.bytes - 100000) < 1);
	assert_true(fabs(estimate.allocs - 100) < 1);
	assert_true(rls_memory_estimate_error(&estimate) >= estimate.bytes);
}

/* Probes have taken half of the window. */
static void what_probes_take_is_corrected(void **state)
{
	struct rls_memory_estimate estimate = {0};
	const struct rls_memory_window window = {950 * MS, 1000 * MS, 25.0 * MS};

	rls_memory_estimate_window(&estimate, &window, 1000, 1000000);
	assert_true(fabs(estimate.allocs - 40000) < 1);
	assert_true(fabs(estimate.bytes - 4e7) < 1000);
	/* If they have taken a little more, there was next to nothing left for the program. */
	assert_true(rls_memory_estimate_error(&estimate) > 4e7);
}

static void nonsense_is_no_window(void **state)
{
	struct rls_memory_estimate estimate = {.until_ns = 100};
	const struct rls_memory_window windows[] = {{90, 200, 0}, {200, 200, 0}, {300, 200, 0}};

	for (size_t i = 0; i < 3; i++)
		rls_memory_estimate_window(&estimate, &windows[i], 1, 1);
	rls_memory_estimate_end(&estimate, 50);
	assert_int_equal(estimate.windows, 0);
	assert_true(estimate.bytes == 0 && rls_memory_estimate_error(&estimate) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_steady_is_exact),
		cmocka_unit_test(errors_are_as_stated),
		cmocka_unit_test(without_a_window_nothing_is_known),
		cmocka_unit_test(what_probes_take_is_corrected),
		cmocka_unit_test(nonsense_is_no_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
