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

static void expect_cost(uint64_t seconds, uint32_t threads, uint64_t hits, double percent,
			const char *text)
{
	struct rls_report *report = record_cost(seconds, threads, hits, percent);
	const char *said = warning(report, "--overhead-budget");

	if (text)
		assert_non_null(said);
	else
		assert_null(said);
	if (text)
		assert_non_null(strstr(said, text));
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
	if (text)
		assert_non_null(said);
	else
		assert_null(said);
	if (text)
		assert_non_null(strstr(said, text));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_budget_that_was_exceeded_is_said),
		cmocka_unit_test(a_budget_that_never_ran_short_is_no_budget),
		cmocka_unit_test(code_that_no_probe_saw_is_said),
		cmocka_unit_test(code_of_threads_that_met_no_probe_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
