/* What is known of costs, at the beginning of a recording and in its end. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/events/calibration_events.h"

/* A file that is never opened keeps its events waiting, to be looked at. */
static struct rls_trace_output output;
static struct rls_figures figures;

static int set_up(void **state)
{
	return rls_trace_output_init(&output);
}

static int tear_down(void **state)
{
	rls_figures_clear(&figures);
	return rls_trace_output_close(&output);
}

static void add(const char *name, double ns, double error_ns, double lasting_error_ns)
{
	assert_int_equal(rls_figures_add(&figures, &output, name, ns, error_ns, lasting_error_ns, 5), 0);
}

static void assert_told(size_t i, const char *name, double ns, double error_ns, uint64_t time_ns)
{
	const struct rls_event *event = &output.waiting[i];

	assert_true(i < output.waiting_count);
	assert_int_equal(event->kind, RLS_EVENT_CALIBRATION);
	assert_string_equal(rls_string_pool_get(output.strings, event->calibration.name), name);
	assert_true(event->calibration.value_ns == ns);
	assert_true(fabs(event->calibration.error_ns - error_ns) < 1e-9);
	assert_int_equal(event->time_ns, time_ns);
}

static void are_told_as_of_a_moment_and_then_as_it_was(void **state)
{
	add("a", 100, 50, 30);
	add("b", 200, 20, 20);
	assert_told(0, "a", 100, 50, 5);
	assert_told(1, "b", 200, 20, 5);
	assert_int_equal(rls_figures_settle(&figures, &output, 16, 99), 0);
	assert_int_equal(output.waiting_count, 4);
	assert_told(2, "a", 100, sqrt(30 * 30 + 40 * 40 / 16), 99);
	assert_told(3, "b", 200, 20, 99);
}

static void stay_as_they_are_in_a_short_one(void **state)
{
	add("a", 100, 50, 30);
	assert_int_equal(rls_figures_settle(&figures, &output, 1, 99), 0);
	assert_told(1, "a", 100, 50, 99);
}

static void never_last_worse(void **state)
{
	add("a", 100, 50, 60);
	assert_int_equal(rls_figures_settle(&figures, &output, 1e6, 99), 0);
	assert_told(1, "a", 100, 50, 99);
}

/* Of two processes with figures of the same name the later is gone by, in the beginning and in the end. */
static void the_latest_of_a_name_holds(void **state)
{
	add("a", 100, 50, 30);
	add("a", 110, 44, 0);
	assert_told(1, "a", 110, 44, 5);
	assert_int_equal(rls_figures_settle(&figures, &output, 4, 99), 0);
	assert_int_equal(output.waiting_count, 3);
	assert_told(2, "a", 110, 22, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(are_told_as_of_a_moment_and_then_as_it_was, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stay_as_they_are_in_a_short_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(never_last_worse, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_latest_of_a_name_holds, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
