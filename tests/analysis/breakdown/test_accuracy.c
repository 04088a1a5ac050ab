/* What a report warns of by itself: a budget that was exceeded, and code that no probe saw. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/event/sample_kind.h"
#include "tests/analysis/breakdown/script.h"

#define SECOND_NS 1000000000ULL
#define TICK_NS 10000000ULL

static const char *warning(const struct rls_report *report, const char *word)
{
	for (size_t i = 0; i < report->warning_count; i++) {
		if (strstr(report->warnings[i], word))
			return report->warnings[i];
	}
	return NULL;
}

/* --- the budget --------------------------------------------------------------------- */

/* Of so many threads the first pays all there is to pay. */
static struct rls_report *record_cost(uint64_t seconds, uint32_t threads, uint64_t hits,
				      double percent)
{
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_process(&script, 0, 1, "job");
	script_add(&script, RLS_EVENT_BUDGET, 0, 0, 0)->budget.percent = 2;
	for (uint32_t t = 1; t <= threads; t++) {
		add_thread(&script, 0, 1, t);
		add_category(&script, 1, 1, t, RLS_CATEGORY_PYTHON);
	}
	for (uint64_t s = 1; s < 10 * seconds; s++)
		add_hits(&script, s * SECOND_NS / 10, 1, 1, hits,
			 (uint64_t)(percent / 100 * SECOND_NS / 10));
	add_end(&script, seconds * SECOND_NS);
	report = script_report(&script);
	script_end(&script);
	return report;
}

/* text: what it must have in it; NULL: nothing may be said. */
static void assert_said(const char *said, const char *text)
{
	if (!text) {
		assert_null(said);
		return;
	}
	assert_non_null(said);
	assert_non_null(strstr(said, text));
}

static void expect_cost(uint64_t seconds, uint32_t threads, uint64_t hits, double percent,
			const char *text)
{
	struct rls_report *report = record_cost(seconds, threads, hits, percent);
	const char *said = warning(report, "--overhead-budget");

	assert_said(said, text);
	rls_report_free(report);
}

static void a_budget_that_was_exceeded_is_said(void **state)
{
	expect_cost(20, 1, 10, 1.9, NULL);
	expect_cost(20, 1, 10, 6.8, "the probes took about 6.8 % of a thread's time");
	/* The budget is a thread's: nine that pay nothing are no excuse. */
	expect_cost(20, 10, 10, 6.8, "the probes took about 6.8 %");
	/* Samples alone may spend what is there for ten seconds in two. */
	expect_cost(2, 1, 0, 4.3, NULL);
	expect_cost(2, 1, 10, 4.3, "this recording is shorter");
	expect_cost(20, 1, 0, 4.3, "samples took about 4.3 %");
}

static void a_budget_that_never_ran_short_is_no_budget(void **state)
{
	struct rls_report *report = record_cost(20, 1, 10, 1);

	assert_true(report->overhead.budget.percent <= 0);
	rls_report_free(report);
}

/* --- what no probe saw -------------------------------------------------------------- */

struct mix {
	enum rls_category traced;
	enum rls_sample_kind kind;
	enum rls_category code;
	unsigned int samples;
};

static struct rls_report *record_samples(const struct mix *mixes, size_t count)
{
	struct rls_report *report;
	struct script script;
	uint64_t at_ns = 10;

	script_begin(&script);
	add_process(&script, 0, 1, "job");
	add_thread(&script, 0, 1, 1);
	for (size_t i = 0; i < count; i++) {
		add_category(&script, at_ns, 1, 1, mixes[i].traced);
		for (unsigned int k = 0; k < mixes[i].samples; k++) {
			struct rls_event *event;

			at_ns += TICK_NS;
			event = script_add(&script, RLS_EVENT_SAMPLE, at_ns, 1, 1);
			event->sample.kind = mixes[i].kind;
			event->sample.code = mixes[i].code;
			event->sample.ns = TICK_NS;
		}
		at_ns++;
	}
	add_end(&script, at_ns + 1);
	report = script_report(&script);
	script_end(&script);
	return report;
}

static void expect_unseen(const struct mix *mixes, size_t count, uint64_t unseen, const char *text)
{
	struct rls_report *report = record_samples(mixes, count);
	const char *said = warning(report, "unseen");
	uint64_t ns = 0;

	for (size_t i = 0; i < report->check_count; i++)
		ns += report->checks[i].unseen_ns;
	assert_int_equal(ns, unseen * TICK_NS);
	assert_said(said, text);
	rls_report_free(report);
}

#define PYTHON RLS_CATEGORY_PYTHON, RLS_SAMPLE_PYTHON, RLS_CATEGORY_PYTHON
#define MISSED RLS_CATEGORY_PYTHON, RLS_SAMPLE_NATIVE, RLS_CATEGORY_BACKEND
#define IN_UNKNOWN RLS_CATEGORY_UNKNOWN, RLS_SAMPLE_NATIVE, RLS_CATEGORY_BACKEND
#define PYTHON_IN_UNKNOWN RLS_CATEGORY_UNKNOWN, RLS_SAMPLE_PYTHON, RLS_CATEGORY_PYTHON

static void code_that_no_probe_saw_is_said(void **state)
{
	const struct mix much[] = {{PYTHON, 730}, {MISSED, 270}};
	const struct mix little[] = {{PYTHON, 990}, {MISSED, 10}};
	const struct mix few[] = {{PYTHON, 5}, {MISSED, 1}}; /* by chance */

	expect_unseen(much, 2, 270, "27 % of the samples");
	expect_unseen(little, 2, 10, NULL);
	expect_unseen(few, 2, 1, NULL);
}

/* Of such a thread the trace says nothing, which is no reason to leave it out. */
static void code_of_threads_that_met_no_probe_counts(void **state)
{
	const struct mix backend[] = {{PYTHON, 360}, {IN_UNKNOWN, 640}};
	const struct mix python[] = {{PYTHON, 360}, {PYTHON_IN_UNKNOWN, 640}};

	expect_unseen(backend, 2, 640, "64 % of the samples");
	expect_unseen(python, 2, 640, NULL); /* a plain script, without any library */
}

/* --- errors of sums ----------------------------------------------------------------- */

static void errors_that_cancel_are_in_no_sum(void **state)
{
	const struct rls_row_error python = {
		.shared_ns = 100, .moved_ns = 50, .split_ns2 = 80 * 80, .divided_ns = 7};
	const struct rls_row_error backend = {
		.shared_ns = 10, .moved_ns = -50, .split_ns2 = 80 * 80};
	struct rls_row_error sum = python;

	assert_int_equal(rls_row_error_ns(&python, RLS_ERROR_OF_ROWS, 1000), 170 + 7);
	assert_int_equal(rls_row_error_ns(&backend, RLS_ERROR_OF_ROWS, 1000), 81);
	rls_row_error_add(&sum, &backend);
	assert_int_equal(rls_row_error_ns(&sum, RLS_ERROR_OF_CATEGORIES, 2000), 110 + 7);
	assert_int_equal(rls_row_error_ns(&sum, RLS_ERROR_OF_ALL, 2000), 110);
	assert_int_equal(rls_row_error_ns(&sum, RLS_ERROR_OF_ALL, 60), 60);
	/* One category of two threads: drawn independently. */
	assert_int_equal(rls_row_error_ns(&sum, RLS_ERROR_OF_ROWS, 2000), 158 + 7);
}

/* What is subtracted is known to a tenth; where it belongs is known less well. */
static void a_total_has_an_error_of_its_own(void **state)
{
	struct rls_report *report;
	struct script script;
	uint64_t rows_ns = 0;

	script_begin(&script);
	add_process(&script, 0, 1, "job");
	add_thread(&script, 0, 1, 1);
	script_add(&script, RLS_EVENT_CALIBRATION, 0, 0, 0)->calibration.name =
		script_string(&script, "hit");
	script.events[script.count - 1].calibration.value_ns = 1000;
	script.events[script.count - 1].calibration.error_ns = 100;
	add_category(&script, 0, 1, 1, RLS_CATEGORY_PYTHON);
	add_category(&script, 50000, 1, 1, RLS_CATEGORY_BACKEND);
	add_category(&script, 100000, 1, 1, RLS_CATEGORY_PYTHON);
	add_hits(&script, 100000, 1, 1, 10, 10000);
	add_end(&script, 150000);
	report = script_report(&script);
	assert_int_equal(report->threads[0].corrected_ns, 140000);
	assert_int_equal(report->threads[0].error_ns, 1000);
	for (size_t i = 0; i < report->breakdown_count; i++)
		rows_ns += report->breakdown[i].error_ns;
	assert_true(rows_ns > 3 * report->threads[0].error_ns);
	rls_report_free(report);
	script_end(&script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_budget_that_was_exceeded_is_said),
		cmocka_unit_test(a_budget_that_never_ran_short_is_no_budget),
		cmocka_unit_test(code_that_no_probe_saw_is_said),
		cmocka_unit_test(errors_that_cancel_are_in_no_sum),
		cmocka_unit_test(a_total_has_an_error_of_its_own),
		cmocka_unit_test(code_of_threads_that_met_no_probe_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
