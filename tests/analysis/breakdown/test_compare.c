/* Comparing recordings: what is equal is said to be, what is slower is found and named. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/compare.h"
#include "analysis/memory_source.h"
#include "tests/analysis/breakdown/script.h"

#define STEPS 2000

static uint64_t state;

/* About 1, give or take a tenth. */
static double noise(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return 0.9 + 0.2 * (double)(state >> 11) / (double)(1ull << 53);
}

/* A training loop: simulation and backpropagation, each in Python and in a library. */
static struct rls_series *record(uint64_t seed, double simulator, int steps)
{
	struct rls_event_source *source;
	struct rls_series *series;
	struct script script;
	uint64_t at = 0;

	state = seed * 0x9e3779b97f4a7c15ULL + 1;
	script_begin(&script);
	add_process(&script, 0, 1, "python");
	add_thread(&script, 0, 1, 1);
	add_category(&script, 0, 1, 1, RLS_CATEGORY_PYTHON);
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
	assert_int_equal(rls_memory_source_new(script.events, script.count, script.strings,
					       &source),
			 0);
	assert_int_equal(rls_series_read(source, &series), 0);
	source->free(source);
	script_end(&script);
	return series;
}

static const struct rls_compare_options options = {.noise = 0.02};

static void test_windows_sum_to_the_report(void **unused)
{
	struct rls_series *series = record(1, 1, STEPS);
	const struct rls_report *report = series->report;
	double wall_ns = 0, entries = 0;
	uint64_t reported_ns = 0, reported_entries = 0;

	assert_in_range(series->window_count, RLS_SERIES_WINDOWS / 2, RLS_SERIES_WINDOWS);
	for (size_t w = 0; w < series->window_count; w++) {
		for (size_t i = 0; i < series->figure_count; i++) {
			assert_true(series->figures[i].wall_ns[w] >= 0);
			wall_ns += series->figures[i].wall_ns[w];
		}
		for (size_t i = 0; i < series->operation_count; i++)
			entries += series->operations[i].entries[w];
	}
	for (size_t i = 0; i < report->thread_count; i++)
		reported_ns += report->threads[i].wall_ns;
	for (size_t i = 0; i < report->operation_count; i++)
		reported_entries += report->operations[i].entries;
	assert_int_equal((uint64_t)wall_ns, reported_ns);
	assert_int_equal((uint64_t)entries, reported_entries);
	rls_series_free(series);
}

static void test_equal_runs_do_not_differ(void **unused)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct rls_series *a = record(seed, 1, STEPS), *b = record(100 + seed, 1, STEPS / 2);
		struct rls_comparison comparison;

		assert_int_equal(rls_compare(a, b, &options, &comparison), 0);
		assert_true(comparison.count >= 6);
		assert_int_equal(comparison.significant_count, 0);
		rls_comparison_free(&comparison);
		rls_series_free(a);
		rls_series_free(b);
	}
}

static void test_a_slower_simulator_is_named(void **unused)
{
	struct rls_series *a = record(1, 1, STEPS), *b = record(2, 1.1, STEPS);
	struct rls_comparison comparison;

	assert_int_equal(rls_compare(a, b, &options, &comparison), 0);
	assert_int_equal(comparison.significant_count, 2);
	for (int i = 0; i < 2; i++) {
		const struct rls_compare_row *row = &comparison.rows[i];
		double expected = row->category == RLS_COMPARE_TOTAL ? 50.0 / 702 : 0.1;

		assert_string_equal(row->operation, "simulation");
		assert_true(row->category == RLS_COMPARE_TOTAL ||
			    row->category == RLS_CATEGORY_SIMULATOR);
		assert_true(row->error > 0 && row->error < 0.02);
		assert_true(fabs(row->change - expected) <= row->error);
		assert_int_equal((int)row->a.calls, STEPS);
	}
	rls_comparison_free(&comparison);
	rls_series_free(a);
	rls_series_free(b);
}

/* Nothing is claimed of what was seen too rarely. */
static void test_too_little_to_tell(void **unused)
{
	struct rls_series *a = record(1, 1, 2), *b = record(2, 3, 2);
	struct rls_comparison comparison;

	assert_int_equal(rls_compare(a, b, &options, &comparison), 0);
	assert_int_equal(comparison.significant_count, 0);
	assert_true(isinf(comparison.rows[0].error));
	rls_comparison_free(&comparison);
	rls_series_free(a);
	rls_series_free(b);
}

static void test_rules(void **unused)
{
	static const char *const wrong[] = {"", "a.total", "total > 5%", "a.total > 5", "a.no > 5%",
					    "a.total > x%", "a.total > 5% more", "> 5%", "a.total >"};
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

	assert_int_equal(rls_compare(a, b, &options, &comparison), 0);
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		bool known;

		assert_int_equal(rls_compare_rule_parse(rules[i].text, &rule, message,
							sizeof(message)),
				 0);
		assert_int_equal(!!rls_compare_rule_check(&rule, &comparison, &known),
				 rules[i].broken);
		assert_int_equal(known, rules[i].known);
		rls_compare_rule_free(&rule);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(rls_compare_rule_parse(wrong[i], &rule, message, sizeof(message)),
				 -EINVAL);
	assert_int_equal(rls_compare_rule_parse("a > b.total > -5%", &rule, message,
						sizeof(message)),
			 0);
	assert_string_equal(rule.operation, "a > b");
	rls_compare_rule_free(&rule);
	rls_comparison_free(&comparison);
	rls_series_free(a);
	rls_series_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows_sum_to_the_report),
		cmocka_unit_test(test_equal_runs_do_not_differ),
		cmocka_unit_test(test_a_slower_simulator_is_named),
		cmocka_unit_test(test_too_little_to_tell),
		cmocka_unit_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
