/* Reports of several traces as one: what the traces do not all have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/analysis/breakdown/script.h"

#define S 1000000000ull

/* Of a process that lives from from_ns on; percent 0: without a budget, all traced. */
static struct rls_report *record(uint32_t pid, uint64_t from_ns, uint64_t end_ns, double percent)
{
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_process(&script, from_ns, pid, "python");
	add_thread(&script, from_ns, pid, pid);
	add_category(&script, from_ns, pid, pid, RLS_CATEGORY_PYTHON);
	if (percent > 0) {
		script_add(&script, RLS_EVENT_BUDGET, from_ns, 0, 0)->budget.percent = percent;
		script_add(&script, RLS_EVENT_WINDOW, (from_ns + end_ns) / 2, 0, 0)->window.open =
			false;
	}
	add_end(&script, end_ns);
	report = script_report_alone(&script);
	script_end(&script);
	return report;
}

/* Nothing of it happened at any time. */
static struct rls_report *record_facts(void)
{
	struct rls_report *report;
	struct rls_event *event;
	struct script script;

	script_begin(&script);
	event = script_add(&script, RLS_EVENT_CALIBRATION, 100 * S, 0, 0);
	event->calibration.name = script_string(&script, "hit");
	event->calibration.value_ns = 700;
	report = script_report_alone(&script);
	script_end(&script);
	return report;
}

static struct rls_report *merge(struct rls_report *report, struct rls_report *other)
{
	uint32_t pid;

	assert_int_equal(rls_report_merge(report, other, &pid), 0);
	rls_report_free(other);
	return report;
}

static void test_facts_alone_have_no_extent(void **unused)
{
	for (int facts_at = 0; facts_at < 4; facts_at++) {
		struct rls_report *report =
			facts_at == 0 ? record_facts() : record(1, 100 * S, 110 * S, 0);

		report = merge(report,
			       facts_at == 0 ? record(1, 100 * S, 110 * S, 0) : record_facts());
		if (facts_at > 1)
			report = merge(report, facts_at == 2 ? record_facts()
							     : record(2, 105 * S, 120 * S, 0));
		assert_int_equal(report->start_ns, 100 * S);
		assert_int_equal(report->end_ns, (facts_at == 3 ? 120 : 110) * S);
		assert_int_equal(report->overhead.calibration_count, 1);
		assert_false(report->complete);
		rls_report_free(report);
	}
}

static void test_all_of_a_trace_without_a_budget_is_traced(void **unused)
{
	for (int budgeted = 0; budgeted < 3; budgeted++) {
		struct rls_report *report = record(1, 0, 10 * S, budgeted == 0 ? 2 : 0);

		report = merge(report, record(2, 0, 10 * S, budgeted == 1 ? 2 : 0));
		report = merge(report, record(3, 0, 10 * S, budgeted == 2 ? 2 : 0));
		assert_true(report->overhead.budget.percent > 0);
		assert_int_equal(report->overhead.budget.traced_ns, 25 * S);
		rls_report_free(report);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts_alone_have_no_extent),
		cmocka_unit_test(test_all_of_a_trace_without_a_budget_is_traced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
