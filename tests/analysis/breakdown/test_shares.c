/* Time that was not traced: divided by looks, corrected by what looks are known to mistake;
 * counts scaled by corrected time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/memory_source.h"
#include "tests/analysis/breakdown/script.h"

#define WINDOW_NS 100000
#define WINDOWS 20
#define CLOSED 4                /* of five stretches */

static void add_window(struct script *script, uint64_t time_ns, bool open)
{
	script_add(script, RLS_EVENT_WINDOW, time_ns, 0, 0)->window.open = open;
}

static void add_look(struct script *script, uint64_t time_ns, enum rls_category category)
{
	script_add(script, RLS_EVENT_SHARE, time_ns, 1, 1)->share.category = category;
}

static void begin(struct script *script, double hit_error)
{
	struct rls_event *event;

	script_begin(script);
	event = script_add(script, RLS_EVENT_CALIBRATION, 0, 0, 0);
	event->calibration.name = script_string(script, "hit");
	event->calibration.value_ns = 100;
	event->calibration.error_ns = 100 * hit_error;
	add_process(script, 0, 1, "p");
	add_thread(script, 0, 1, 1);
	add_operation(script, 0, 1, 1, "step");
}

/* The tracks of a trace show each look's category, and so are not what the rows say. */
static struct rls_report *report_of(const struct script *script)
{
	struct rls_event_source *source;
	struct rls_report *report;

	assert_int_equal(rls_memory_source_new(script->events, script->count, script->strings,
					       &source),
			 0);
	assert_int_equal(rls_report_build(source, &report), 0);
	source->free(source);
	return report;
}

/* Windows of ten calls each, half of the time in them; looks take half of it for Python. */
static struct rls_report *record(double hit_error, uint64_t cost_ns)
{
	struct rls_report *report;
	struct script script;
	uint64_t at_ns = 0;

	begin(&script, hit_error);
	for (int w = 0; w < WINDOWS; w++) {
		if (w)
			add_window(&script, at_ns, true);
		add_category(&script, at_ns, 1, 1, RLS_CATEGORY_PYTHON);
		for (int i = 0; i < 10; i++, at_ns += WINDOW_NS / 10) {
			add_category(&script, at_ns + WINDOW_NS / 20, 1, 1, RLS_CATEGORY_BACKEND);
			add_look(&script, at_ns + WINDOW_NS / 20 + 10,
				 i % 2 ? RLS_CATEGORY_PYTHON : RLS_CATEGORY_BACKEND);
			add_category(&script, at_ns + WINDOW_NS / 10 - 1, 1, 1, RLS_CATEGORY_PYTHON);
			add_hits(&script, at_ns + WINDOW_NS / 10 - 1, 1, 1, 2, cost_ns);
		}
		add_window(&script, at_ns, false);
		for (int i = 0; i < 10 * CLOSED; i++, at_ns += WINDOW_NS / 10)
			add_look(&script, at_ns + 10, i % 4 ? RLS_CATEGORY_PYTHON : RLS_CATEGORY_BACKEND);
	}
	add_end(&script, at_ns);
	report = report_of(&script);
	script_end(&script);
	return report;
}

static const struct rls_transition_row *calls_of(const struct rls_report *report)
{
	for (size_t i = 0; i < report->transition_count; i++) {
		if (report->transitions[i].from == RLS_CATEGORY_BACKEND)
			return &report->transitions[i];
	}
	return NULL;
}

/* A quarter of the looks says backend, which is never Python; three quarters say Python, which
 * was always backend where tracing told: but for the trust in a guess as such, all is backend. */
static void test_looks_are_corrected_by_what_is_known_of_them(void **unused)
{
	struct rls_report *report = record(0, 0);
	const struct rls_breakdown_row *row = find_row(report, 1, 1, "", "step", "backend",
						       RLS_RESOURCE_CPU);
	double traced_ns = WINDOWS * WINDOW_NS / 2.0, closed_ns = WINDOWS * WINDOW_NS * 1.0 * CLOSED;

	assert_int_equal(row->method, RLS_METHOD_SAMPLED);
	assert_true(fabs((double)row->wall_ns - traced_ns - closed_ns * (0.25 + 0.75 * 100 / 105)) <
		    0.01 * closed_ns);
	assert_true(row->error_ns > 0.01 * closed_ns && row->error_ns < 0.1 * closed_ns);
	rls_report_free(report);
}

static void test_counts_are_scaled_by_time(void **unused)
{
	struct rls_report *report = record(0, 0);
	const struct rls_transition_row *row = calls_of(report);

	assert_string_equal(row->method, "scaled");
	assert_in_range(row->count, 10 * WINDOWS * (1 + CLOSED) - 20, 10 * WINDOWS * (1 + CLOSED) + 20);
	assert_in_range(row->error, 1, row->count / 4);
	rls_report_free(report);
}

/* A fifth of the windows' time was the hits': without it there is room for more calls. */
static void test_windows_are_shorter_without_their_hits(void **unused)
{
	struct rls_report *report = record(0, WINDOW_NS / 50), *doubtful = record(0.5, WINDOW_NS / 50);
	const struct rls_transition_row *row = calls_of(report), *other = calls_of(doubtful);
	double expected = 10 * WINDOWS * (1 + CLOSED / 0.8);

	assert_true(fabs((double)row->count - expected) < 0.02 * expected);
	assert_int_equal(other->count, row->count);
	/* Were the cost nothing, there would be a sixth less; it is in doubt by half. */
	assert_true(fabs((double)(other->error - row->error) / (double)row->count - 0.5 / 6) < 0.01);
	rls_report_free(report);
	rls_report_free(doubtful);
}

/* One window says nothing of how windows differ. */
static void test_one_window_leaves_a_count_in_doubt(void **unused)
{
	const struct rls_transition_row *row;
	struct rls_report *report;
	struct script script;

	begin(&script, 0);
	add_category(&script, 0, 1, 1, RLS_CATEGORY_BACKEND);
	add_category(&script, 500, 1, 1, RLS_CATEGORY_PYTHON);
	add_window(&script, 1000, false);
	add_look(&script, 2000, RLS_CATEGORY_PYTHON);
	add_end(&script, 4000);
	report = report_of(&script);
	row = calls_of(report);
	assert_int_equal(row->count, 4);
	assert_int_equal(row->error, 3);
	rls_report_free(report);
	script_end(&script);
}

/* Never looked at, never traced: in doubt altogether, and still all there. */
static void test_what_nobody_looked_at_is_there(void **unused)
{
	struct rls_report *report;
	struct script script;
	uint64_t wall_ns = 0;

	begin(&script, 0);
	add_category(&script, 0, 1, 1, RLS_CATEGORY_BACKEND);
	add_window(&script, 1000, false);
	add_operation(&script, 2000, 1, 1, "other");
	add_end(&script, 5000);
	report = report_of(&script);
	for (size_t i = 0; i < report->breakdown_count; i++) {
		const struct rls_breakdown_row *row = &report->breakdown[i];

		wall_ns += row->wall_ns;
		if (!strcmp(row->operation, "other"))
			assert_int_equal(row->error_ns, row->wall_ns);
	}
	assert_int_equal(wall_ns, 5000);
	rls_report_free(report);
	script_end(&script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looks_are_corrected_by_what_is_known_of_them),
		cmocka_unit_test(test_counts_are_scaled_by_time),
		cmocka_unit_test(test_windows_are_shorter_without_their_hits),
		cmocka_unit_test(test_one_window_leaves_a_count_in_doubt),
		cmocka_unit_test(test_what_nobody_looked_at_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
