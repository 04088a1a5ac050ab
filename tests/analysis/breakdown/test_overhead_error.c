/* How far off a row is by what hits cost: by the calibration, or without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/timeline/trace_metadata.h"
#include "tests/analysis/breakdown/script.h"

#define CPU RLS_RESOURCE_CPU

static void test_error_is_honest(void **unused)
{
	const struct rls_breakdown_row *row;
	struct rls_event *event;
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	add_category(&script, 1010, 1, 1, RLS_CATEGORY_BACKEND);
	add_hits(&script, 1010, 1, 1, 1, 100);
	add_end(&script, 2010);
	report = script_report(&script);
	row = find_row(report, 1, 1, "", "", "python", CPU);
	assert_int_equal(row->error_ns, 25); /* not calibrated: a quarter of what was taken */
	/* It may have borne the 50 that are its share by time. */
	assert_int_equal(find_row(report, 1, 1, "", "", "backend", CPU)->error_ns, 50);
	rls_report_free(report);

	event = script_add(&script, RLS_EVENT_CALIBRATION, 10, 0, 0);
	event->calibration.name = script_string(&script, "emulated.entry");
	event->calibration.value_ns = 700;
	event->calibration.error_ns = 70;
	event = script_add(&script, RLS_EVENT_LOSS, 2000, 0, 0);
	event->loss.buffer = script_string(&script, "transitions");
	event->loss.dropped = 2; /* as many as were emitted */
	report = script_report(&script);
	row = find_row(report, 1, 1, "", "", "python", CPU);
	assert_int_equal(row->error_ns, 10 + 500);
	assert_int_equal(report->loss_count, 1);
	assert_int_equal(report->warning_count, 1);
	rls_report_free(report);
	script_end(&script);
}

static void add_figure(struct script *script, const char *name, double value_ns, double error_ns)
{
	struct rls_event *event = script_add(script, RLS_EVENT_CALIBRATION, 10, 0, 0);

	event->calibration.name = script_string(script, name);
	event->calibration.value_ns = value_ns;
	event->calibration.error_ns = error_ns;
}

/* An operation whose hits have a figure of their own is as far off as that is. */
static void test_operations_have_their_own_error(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	add_figure(&script, "hit", 800, 400);
	add_figure(&script, "workload.hit", 1000, 300);
	add_figure(&script, "workload.hit.act", 1400, 140);
	add_figure(&script, "workload.hit.", 900, 180);
	add_category(&script, 1010, 1, 1, RLS_CATEGORY_BACKEND);
	add_hits(&script, 1010, 1, 1, 1, 100);
	add_operation(&script, 1010, 1, 1, "act");
	add_hits(&script, 2010, 1, 1, 1, 100);
	add_operation(&script, 2010, 1, 1, "learn");
	add_hits(&script, 3010, 1, 1, 1, 100);
	add_end(&script, 3010);
	report = script_report(&script);
	assert_int_equal(find_row(report, 1, 1, "", "", "python", CPU)->error_ns, 20);
	assert_int_equal(find_row(report, 1, 1, "", "act", "backend", CPU)->error_ns, 10);
	assert_int_equal(find_row(report, 1, 1, "", "learn", "backend", CPU)->error_ns, 30);
	rls_report_free(report);
	script_end(&script);
}

/* A name that is as long as names may be has no figure: that one's name would be longer. */
static void test_the_longest_name_has_no_figure(void **unused)
{
	enum { BEFORE = sizeof(RLS_FIGURE_OPERATION) - 1 };
	static char figure[BEFORE + RLS_STRING_BYTES_MAX + 1] = RLS_FIGURE_OPERATION;
	const char *operation = figure + BEFORE;
	struct rls_report *report;
	struct script script;

	memset(figure + BEFORE, 'x', RLS_STRING_BYTES_MAX);
	script_begin_python(&script);
	add_figure(&script, "workload.hit", 1000, 300);
	add_figure(&script, figure, 1000, 100); /* cut */
	add_operation(&script, 1010, 1, 1, operation);
	add_hits(&script, 2010, 1, 1, 1, 100);
	add_operation(&script, 2010, 1, 1, operation + BEFORE);
	add_hits(&script, 3010, 1, 1, 1, 100);
	add_end(&script, 3010);
	report = script_report(&script);
	assert_int_equal(find_row(report, 1, 1, "", operation, "python", CPU)->error_ns, 30);
	assert_int_equal(find_row(report, 1, 1, "", operation + BEFORE, "python", CPU)->error_ns,
			 10);
	rls_report_free(report);
	script_end(&script);
}

/* Hits of other threads may make an operation longer that has none itself. That cost has the error of its own figure. The
 * next report of hits still covers all since the last one. */
static void test_costs_without_hits(void **unused)
{
	const struct rls_breakdown_row *row;
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	add_figure(&script, "workload.hit.sim", 1000, 100);
	add_figure(&script, "workload.spill.sim", 200, 100);
	add_category(&script, 1010, 1, 1, RLS_CATEGORY_BACKEND);
	add_hits(&script, 1010, 1, 1, 1, 100);
	add_operation(&script, 2010, 1, 1, "sim");
	add_operation(&script, 3010, 1, 1, "");
	add_hits(&script, 3010, 1, 1, 0, 200);
	add_hits(&script, 3110, 1, 1, 5, 1500);
	add_end(&script, 3110);
	report = script_report(&script);
	row = find_row(report, 1, 1, "", "sim", "backend", CPU);
	assert_int_equal(row->wall_ns, 1000);
	assert_int_equal(row->corrected_ns, 0);
	assert_int_equal(row->error_ns, 500);
	assert_int_equal(find_row(report, 1, 1, "", "", "backend", CPU)->corrected_ns, 400);
	rls_report_free(report);
	script_end(&script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error_is_honest),
		cmocka_unit_test(test_operations_have_their_own_error),
		cmocka_unit_test(test_the_longest_name_has_no_figure),
		cmocka_unit_test(test_costs_without_hits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
