/* Comparing recordings: what is equal is said to be, what is slower is found and named. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/compare/compare.h"
#include "analysis/compare/rule.h"
#include "analysis/event/memory_source.h"
#include "analysis/writers/compare/compare_writers.h"
#include "tests/analysis/breakdown/script.h"

#define STEPS 2000

static const struct rls_compare_options options = {.noise = 0.02};

static uint64_t state;

/* About 1, give or take a tenth. */
static double noise(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return 0.9 + 0.2 * (double)(state >> 11) / (double)(1ull << 53);
}

static void finish(struct script *script, struct rls_series **series)
{
	struct rls_event_source *source;

	assert_int_equal(
		rls_memory_source_new(script->events, script->count, script->strings, &source), 0);
	assert_int_equal(rls_series_read(source, series), 0);
	source->free(source);
	script_end(script);
}

static void begin(struct script *script, uint64_t seed)
{
	state = seed * 0x9e3779b97f4a7c15ULL + 1;
	script_begin(script);
	add_process(script, 0, 1, "python");
	add_thread(script, 0, 1, 1);
	add_category(script, 0, 1, 1, RLS_CATEGORY_PYTHON);
}

/* A training loop: simulation and backpropagation, each in Python and in a library. */
static struct rls_series *record(uint64_t seed, double simulator, int steps)
{
	struct rls_series *series;
	struct script script;
	uint64_t at = 0;

	begin(&script, seed);
	for (int i = 0; i < steps; i++) {
		add_operation(&script, at += 1000, 1, 1, "simulation");
		add_category(&script, at += (uint64_t)(200000 * noise()), 1, 1,
			     RLS_CATEGORY_SIMULATOR);
		add_category(&script, at += (uint64_t)(500000 * simulator * noise()), 1, 1,
			     RLS_CATEGORY_PYTHON);
		add_operation(&script, at += 1000, 1, 1, "backpropagation");
		add_category(&script, at += (uint64_t)(300000 * noise()), 1, 1,
			     RLS_CATEGORY_BACKEND);
		add_category(&script, at += (uint64_t)(1000000 * noise()), 1, 1,
			     RLS_CATEGORY_PYTHON);
	}
	add_end(&script, at + 1000);
	finish(&script, &series);
	return series;
}

/* The same with more operations; everything takes `slow` times as long. */
static struct rls_series *record_many(uint64_t seed, double slow, double simulator)
{
	static const char *const operations[] = {"inference", "simulation", "replay",
						 "backpropagation"};
	struct rls_series *series;
	struct script script;
	uint64_t at = 0;

	begin(&script, seed);
	for (int i = 0; i < STEPS / 4; i++) {
		for (int o = 0; o < 4; o++) {
			bool simulates = o == 1;

			add_operation(&script, at += 10, 1, 1, operations[o]);
			add_category(&script, at += (uint64_t)(slow * 100000 * noise()), 1, 1,
				     simulates ? RLS_CATEGORY_SIMULATOR : RLS_CATEGORY_BACKEND);
			add_category(&script,
				     at += (uint64_t)(slow * (simulates ? simulator : 1) * 300000 *
						      noise()),
				     1, 1, RLS_CATEGORY_PYTHON);
		}
	}
	add_end(&script, at + 1000);
	finish(&script, &series);
	return series;
}

/* On a machine that is slow in stretches, and in the mean by `slow`; the simulator goes along with
 * that by half. */
static struct rls_series *record_uneven(uint64_t seed, double slow)
{
	static const char *const operations[] = {"inference", "simulation", "replay",
						 "backpropagation"};
	struct rls_series *series;
	struct script script;
	uint64_t at = 0;

	begin(&script, seed);
	for (int i = 0; i < STEPS; i++) {
		double pace = slow * (1 + 0.3 * sin(i / 40.0));

		for (int o = 0; o < 4; o++) {
			bool simulates = o == 1;

			add_operation(&script, at += 10, 1, 1, operations[o]);
			add_category(&script, at += (uint64_t)(pace * 100000 * noise()), 1, 1,
				     simulates ? RLS_CATEGORY_SIMULATOR : RLS_CATEGORY_BACKEND);
			add_category(&script,
				     at +=
				     (uint64_t)((simulates ? sqrt(pace) : pace) * 300000 * noise()),
				     1, 1, RLS_CATEGORY_PYTHON);
		}
	}
	add_end(&script, at + 1000);
	finish(&script, &series);
	return series;
}

static int compare_two(const struct rls_series *a, const struct rls_series *b,
		       struct rls_comparison *out)
{
	return rls_compare(&(struct rls_compare_run){"a", a}, 1, &(struct rls_compare_run){"b", b},
			   1, &options, out);
}

static double sum_of(const struct rls_series_times *times)
{
	double sum = 0;

	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		sum += times->wall_ns[i];
	return sum;
}

static void test_strata_sum_to_the_report(void **unused)
{
	struct rls_series *series = record(1, 1, STEPS);
	const struct rls_report *report = series->report;
	uint64_t reported_ns = 0, reported_entries = 0;
	double wall_ns = 0, entries = 0;

	assert_false(series->cut);
	for (size_t i = 0; i < series->count; i++) {
		wall_ns += sum_of(&series->strata[i].times);
		entries += series->strata[i].units[RLS_SERIES_CALL];
	}
	for (size_t i = 0; i < report->thread_count; i++)
		reported_ns += report->threads[i].wall_ns;
	for (size_t i = 0; i < report->operation_count; i++)
		reported_entries += report->operations[i].entries;
	assert_int_equal((uint64_t)wall_ns, reported_ns);
	assert_int_equal((uint64_t)entries, reported_entries);
	rls_series_free(series);
}

/* All calls but the last, which nothing ends, are in blocks; what the blocks leave out is it. */
static void test_blocks_sum_to_their_stratum(void **unused)
{
	struct rls_series *series = record(1, 1, STEPS);
	int seen = 0;

	for (size_t i = 0; i < series->count; i++) {
		const struct rls_series_stratum *stratum = &series->strata[i];
		const struct rls_series_blocks *blocks = &stratum->blocks[RLS_SERIES_CALL];
		double units = 0, wall_ns = 0;

		if (stratum->units[RLS_SERIES_CALL] < 2)
			continue;
		assert_in_range(blocks->count, RLS_SERIES_BLOCKS / 2, RLS_SERIES_BLOCKS);
		for (size_t b = 0; b < blocks->count; b++) {
			assert_true(b + 1 == blocks->count ||
				    blocks->blocks[b].units == blocks->units_each);
			units += blocks->blocks[b].units;
			wall_ns += sum_of(&blocks->blocks[b].times);
		}
		assert_int_equal((int)units, STEPS - 1);
		assert_true(wall_ns < sum_of(&stratum->times));
		assert_true(wall_ns > sum_of(&stratum->times) - 2e6);
		seen++;
	}
	assert_int_equal(seen, 2);
	rls_series_free(series);
}

static void test_equal_runs_do_not_differ(void **unused)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct rls_series *a = record(seed, 1, STEPS),
				  *b = record(100 + seed, 1, STEPS / 2);
		struct rls_comparison comparison;

		assert_int_equal(compare_two(a, b, &comparison), 0);
		assert_true(comparison.count >= 6);
		assert_int_equal(comparison.significant_count, 0);
		rls_comparison_free(&comparison);
		rls_series_free(a);
		rls_series_free(b);
	}
}

static void test_a_slower_simulator_is_named(void **unused)
{
	int outside = 0;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct rls_series *a = record(seed, 1, STEPS), *b = record(100 + seed, 1.1, STEPS);
		struct rls_comparison comparison;

		assert_int_equal(compare_two(a, b, &comparison), 0);
		assert_false(comparison.normalised);
		assert_int_equal(comparison.significant_count, 2);
		for (int i = 0; i < 2; i++) {
			const struct rls_compare_row *row = &comparison.rows[i];
			double expected = row->category == RLS_COMPARE_TOTAL ? 50.0 / 702 : 0.1;

			assert_string_equal(row->operation, "simulation");
			assert_true(row->category == RLS_COMPARE_TOTAL ||
				    row->category == RLS_CATEGORY_SIMULATOR);
			assert_true(row->error > 0 && row->error < 0.02);
			assert_true(fabs(row->change - expected) < 2 * row->error);
			outside += fabs(row->change - expected) > row->error;
			assert_int_equal((int)row->a.calls, STEPS);
		}
		rls_comparison_free(&comparison);
		rls_series_free(a);
		rls_series_free(b);
	}
	/* At 95 % two of forty are. */
	assert_true(outside <= 6);
}

/* A machine's speed changes everything; one run each says so and blames nothing for it. */
static void test_what_is_common_is_distinguished(void **unused)
{
	struct rls_series *a = record_many(1, 1, 1), *b = record_many(2, 1.15, 1),
			  *c = record_many(3, 1.15, 1.1);
	struct rls_comparison comparison;

	assert_int_equal(compare_two(a, b, &comparison), 0);
	assert_true(comparison.speed_known && comparison.normalised);
	assert_true(fabs(comparison.speed - 1.15) < 0.01);
	assert_int_equal(comparison.significant_count, 0);
	rls_comparison_free(&comparison);

	assert_int_equal(compare_two(a, c, &comparison), 0);
	assert_true(fabs(comparison.speed - 1.15) < 0.01);
	assert_true(comparison.significant_count > 0);
	for (size_t i = 0; i < comparison.significant_count; i++) {
		assert_string_equal(comparison.rows[i].operation, "simulation");
		assert_true(comparison.rows[i].category != RLS_CATEGORY_PYTHON);
	}
	rls_comparison_free(&comparison);
	rls_series_free(a);
	rls_series_free(b);
	rls_series_free(c);
}

/* What a row makes of the machine's pace is seen within the runs, and taken out between them. */
static void test_a_row_goes_along_by_half(void **unused)
{
	struct rls_series *a = record_uneven(1, 1), *b = record_uneven(2, 1.2);
	struct rls_comparison comparison;
	bool seen = false;

	assert_int_equal(compare_two(a, b, &comparison), 0);
	assert_true(comparison.normalised);
	assert_int_equal(comparison.significant_count, 0);
	for (size_t i = 0; i < comparison.count; i++) {
		const struct rls_compare_row *row = &comparison.rows[i];

		if (row->category != RLS_CATEGORY_SIMULATOR)
			continue;
		seen = true;
		assert_true(fabs(row->change - (sqrt(1.2) - 1)) < 0.02);
		assert_true(fabs(row->relative) < 0.02);
	}
	assert_true(seen);
	rls_comparison_free(&comparison);
	rls_series_free(a);
	rls_series_free(b);
}

/* Runs that scatter hide a change that each of them alone would show. */
static void test_scatter_between_runs_counts(void **unused)
{
	static const double even[] = {1, 1.1, 1.1}, uneven[] = {0.9, 1.2, 1.1};
	struct rls_compare_run a[3], b[3], c[3];
	struct rls_comparison comparison;

	for (uint64_t i = 0; i < 3; i++) {
		a[i] = (struct rls_compare_run){"a", record_many(10 + i, 1, 1)};
		b[i] = (struct rls_compare_run){"b", record_many(20 + i, 1, 1.1)};
		c[i] = (struct rls_compare_run){"c", record_many(30 + i, uneven[i], even[i])};
	}
	assert_int_equal(rls_compare(a, 3, b, 3, &options, &comparison), 0);
	assert_false(comparison.normalised);
	assert_true(comparison.significant_count >= 1);
	assert_string_equal(comparison.rows[0].operation, "simulation");
	rls_comparison_free(&comparison);
	assert_int_equal(rls_compare(a, 3, c, 3, &options, &comparison), 0);
	assert_int_equal(comparison.significant_count, 0);
	rls_comparison_free(&comparison);
	for (int i = 0; i < 3; i++) {
		rls_series_free((struct rls_series *)a[i].series);
		rls_series_free((struct rls_series *)b[i].series);
		rls_series_free((struct rls_series *)c[i].series);
	}
}

/* Nothing is claimed of what was seen too rarely. */
static void test_too_little_to_decide(void **unused)
{
	struct rls_series *a = record(1, 1, 2), *b = record(2, 3, 2);
	struct rls_comparison comparison;

	assert_int_equal(compare_two(a, b, &comparison), 0);
	assert_int_equal(comparison.significant_count, 0);
	assert_true(isinf(comparison.rows[0].error));
	rls_comparison_free(&comparison);
	rls_series_free(a);
	rls_series_free(b);
}

/* The shell gives any bytes. */
static void test_names_of_files_may_be_no_utf8(void **unused)
{
	struct rls_series *series = record(1, 1, 1);
	const struct rls_compare_run run = {"w\xff\xc3\xa9\xe6\xa8\"\n.trace", series};
	const struct rls_compare_side side = {.runs = &run, .run_count = 1};
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	rls_compare_write_json(out, &side, 1, &options);
	fclose(out);
	assert_non_null(strstr(text, "{\"trace\": \"w\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"
				     "\\\"\\u000a.trace\""));
	free(text);
	rls_series_free(series);
}

static void test_rules(void **unused)
{
	static const char *const wrong[] = {
		"",          "a.total",      "total > 5%",        "a.total > 5",
		"a.no > 5%", "a.total > x%", "a.total > 5% more", "> 5%",
		"a.total >"};
	struct rls_series *a = record(1, 1, STEPS), *b = record(2, 1.1, STEPS);
	const struct {
		const char *text;
		bool broken, known;
	} rules[] = {
		{"simulation.simulator > +5%", true, true},
		{" simulation.total>5 % ", true, true},
		{"simulation.simulator > +50%", false, true},
		{"simulation.simulator < -5%", false, true},
		{"backpropagation.total > 0%", false, true},
		{"*.simulator > +1%", true, true},
		{"no such.total > +5%", false, false},
	};
	struct rls_comparison comparison;
	struct rls_compare_rule rule;
	char message[200];

	assert_int_equal(compare_two(a, b, &comparison), 0);
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		bool known;

		assert_int_equal(
			rls_compare_rule_parse(rules[i].text, &rule, message, sizeof(message)), 0);
		assert_int_equal(!!rls_compare_rule_check(&rule, &comparison, &known),
				 rules[i].broken);
		assert_int_equal(known, rules[i].known);
		rls_compare_rule_free(&rule);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(rls_compare_rule_parse(wrong[i], &rule, message, sizeof(message)),
				 -EINVAL);
	assert_int_equal(
		rls_compare_rule_parse("a > b.total > -5%", &rule, message, sizeof(message)), 0);
	assert_string_equal(rule.operation, "a > b");
	rls_compare_rule_free(&rule);
	rls_comparison_free(&comparison);
	rls_series_free(a);
	rls_series_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strata_sum_to_the_report),
		cmocka_unit_test(test_blocks_sum_to_their_stratum),
		cmocka_unit_test(test_equal_runs_do_not_differ),
		cmocka_unit_test(test_a_slower_simulator_is_named),
		cmocka_unit_test(test_what_is_common_is_distinguished),
		cmocka_unit_test(test_a_row_goes_along_by_half),
		cmocka_unit_test(test_scatter_between_runs_counts),
		cmocka_unit_test(test_too_little_to_decide),
		cmocka_unit_test(test_names_of_files_may_be_no_utf8),
		cmocka_unit_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
