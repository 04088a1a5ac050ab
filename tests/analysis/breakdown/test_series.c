/* Series of recordings that were traced in windows: the time between is in the blocks too. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/compare/compare.h"
#include "analysis/event/memory_source.h"
#include "tests/analysis/breakdown/script.h"

#define STEPS 4000
#define CYCLE 50 /* steps */
#define TRACED 10 /* of a cycle */
#define SAMPLE_NS 701000 /* from sample to sample */

static uint64_t state, next_sample_ns;

/* About 1, give or take a tenth. */
static double noise(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return 0.9 + 0.2 * (double)(state >> 11) / (double)(1ull << 53);
}

/* The thread is in category for ns from at_ns on: traced, or looked at now and then. */
static uint64_t spend(struct script *script, uint64_t at_ns, bool traced,
		      enum rls_category category, double ns)
{
	uint64_t end_ns = at_ns + (uint64_t)(ns * noise());

	if (traced)
		add_category(script, at_ns, 1, 1, category);
	for (; next_sample_ns < end_ns; next_sample_ns += SAMPLE_NS)
		script_add(script, RLS_EVENT_SHARE, next_sample_ns, 1, 1)->share.category =
			category;
	return end_ns;
}

static struct rls_series *record(uint64_t seed, double simulator)
{
	struct rls_event_source *source;
	struct rls_series *series;
	struct script script;
	uint64_t at_ns = 0;

	state = seed * 0x9e3779b97f4a7c15ULL + 1;
	next_sample_ns = SAMPLE_NS;
	script_begin(&script);
	add_process(&script, 0, 1, "python");
	add_thread(&script, 0, 1, 1);
	for (int i = 0; i < STEPS; i++) {
		bool traced = i % CYCLE < TRACED;

		if (i % CYCLE == 0 || i % CYCLE == TRACED)
			script_add(&script, RLS_EVENT_WINDOW, at_ns, 0, 0)->window.open = traced;
		add_operation(&script, at_ns, 1, 1, "simulation");
		at_ns = spend(&script, at_ns, traced, RLS_CATEGORY_PYTHON, 300000);
		at_ns = spend(&script, at_ns, traced, RLS_CATEGORY_SIMULATOR, 300000 * simulator);
		add_operation(&script, at_ns, 1, 1, "backpropagation");
		at_ns = spend(&script, at_ns, traced, RLS_CATEGORY_PYTHON, 200000);
		at_ns = spend(&script, at_ns, traced, RLS_CATEGORY_BACKEND, 400000);
	}
	add_end(&script, at_ns);
	assert_int_equal(
		rls_memory_source_new(script.events, script.count, script.strings, &source), 0);
	assert_int_equal(rls_series_read(source, &series), 0);
	source->free(source);
	script_end(&script);
	return series;
}

/* Thread 1 waits for the GPU from gpu_ns to 2000 while hits of thread 2 cost 400. */
static struct rls_series *record_wait(uint64_t gpu_ns)
{
	struct rls_event_source *source;
	struct rls_series *series;
	struct script script;

	script_begin(&script);
	add_process(&script, 0, 1, "python");
	for (uint32_t tid = 1; tid <= 2; tid++) {
		add_thread(&script, 0, 1, tid);
		add_operation(&script, 0, 1, tid, "backpropagation");
		add_category(&script, 0, 1, tid, RLS_CATEGORY_BACKEND);
	}
	add_gpu(&script, gpu_ns, 2000, 1, RLS_GPU_KERNEL, 0);
	add_hits(&script, 1001, 1, 2, 10, 400);
	add_off_cpu(&script, 2000, 1, 1, 1000);
	add_end(&script, 2000);
	assert_int_equal(
		rls_memory_source_new(script.events, script.count, script.strings, &source), 0);
	assert_int_equal(rls_series_read(source, &series), 0);
	source->free(source);
	script_end(&script);
	return series;
}

/* What reports say is corrected is what is compared: of waits in cpu+gpu time nothing is taken. */
static void test_corrected_time_is_the_reports(void **unused)
{
	for (uint64_t gpu_ns = 500; gpu_ns < 2000; gpu_ns += 100) {
		struct rls_series *series = record_wait(gpu_ns);
		const struct rls_report *report = series->report;
		double ns = 0, reported_ns = 0;

		for (size_t s = 0; s < series->count; s++)
			ns += series->strata[s].times.corrected_ns[RLS_CATEGORY_BACKEND];
		for (size_t i = 0; i < report->breakdown_count; i++) {
			if (report->breakdown[i].category == RLS_CATEGORY_BACKEND)
				reported_ns += (double)report->breakdown[i].corrected_ns;
		}
		assert_true(reported_ns > 0);
		assert_true(ns == reported_ns);
		rls_series_free(series);
	}
}

static double sum_of(const double *times)
{
	double sum = 0;

	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		sum += times[i];
	return sum;
}

/* Each category's too, but for the last call, which nothing ends. */
static void test_blocks_sum_to_their_stratum(void **unused)
{
	struct rls_series *series = record(1, 1);
	int seen = 0;

	for (size_t s = 0; s < series->count; s++) {
		const struct rls_series_stratum *stratum = &series->strata[s];
		const struct rls_series_blocks *blocks = &stratum->blocks[RLS_SERIES_CALL];
		double ns[RLS_CATEGORY_MAX] = {0};

		if (stratum->units[RLS_SERIES_CALL] < 2)
			continue;
		seen++;
		for (size_t b = 0; b < blocks->count; b++) {
			const struct rls_series_times *times = &blocks->blocks[b].times;

			assert_true(times->wall_ns[RLS_SERIES_CLOSED] == 0);
			assert_true(fabs(sum_of(times->wall_ns) / blocks->blocks[b].units -
					 600000) < 30000);
			for (int i = 0; i < RLS_CATEGORY_MAX; i++)
				ns[i] += times->wall_ns[i];
		}
		for (int i = 0; i < RLS_CATEGORY_MAX; i++)
			assert_true(fabs(ns[i] - stratum->times.wall_ns[i]) < 700000);
		assert_true(fabs(sum_of(stratum->times.wall_ns) - 600000.0 * STEPS) <
			    0.01 * 600000 * STEPS);
	}
	assert_int_equal(seen, 2);
	rls_series_free(series);
}

static int compare_two(const struct rls_series *a, const struct rls_series *b,
		       struct rls_comparison *out)
{
	return rls_compare(&(struct rls_compare_run){"a", a}, 1, &(struct rls_compare_run){"b", b},
			   1, &(struct rls_compare_options){.noise = 0.02}, out);
}

/* The error of a category's time by samples is part of the error. */
static void test_looks_widen_the_error_of_a_category(void **unused)
{
	int outside = 0, rows = 0;

	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct rls_series *a = record(seed, 1), *b = record(100 + seed, 1);
		struct rls_comparison comparison;

		assert_int_equal(compare_two(a, b, &comparison), 0);
		assert_int_equal(comparison.significant_count, 0);
		for (size_t i = 0; i < comparison.count; i++) {
			const struct rls_compare_row *row = &comparison.rows[i];

			if (!row->judged || !*row->operation)
				continue;
			rows++;
			outside += fabs(row->change) > row->error;
			/* Some thousand samples cannot tell a category better than to some percent. */
			assert_true(row->category == RLS_COMPARE_TOTAL ? row->error < 0.02
								       : row->error > 0.02);
		}
		rls_comparison_free(&comparison);
		rls_series_free(a);
		rls_series_free(b);
	}
	assert_int_equal(rows, 60);
	assert_true(outside <= 6);
}

static void test_a_slower_simulator_is_named(void **unused)
{
	struct rls_series *a = record(1, 1), *b = record(2, 1.5);
	struct rls_comparison comparison;

	assert_int_equal(compare_two(a, b, &comparison), 0);
	assert_int_equal(comparison.significant_count, 2);
	for (int i = 0; i < 2; i++) {
		const struct rls_compare_row *row = &comparison.rows[i];
		double expected = row->category == RLS_COMPARE_TOTAL ? 0.25 : 0.5;

		assert_string_equal(row->operation, "simulation");
		assert_true(fabs(row->change - expected) < 1.5 * row->error);
	}
	rls_comparison_free(&comparison);
	rls_series_free(a);
	rls_series_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corrected_time_is_the_reports),
		cmocka_unit_test(test_blocks_sum_to_their_stratum),
		cmocka_unit_test(test_looks_widen_the_error_of_a_category),
		cmocka_unit_test(test_a_slower_simulator_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
