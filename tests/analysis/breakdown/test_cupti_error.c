/* What rows of jobs that CUPTI records state for what it may cost them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analysis/base/string_pool.h"
#include "analysis/correct/cupti_error.h"
#include "script.h"

#define US 1000
#define CALLS 10

static void add_call(struct script *script, uint64_t time_ns, uint32_t tid)
{
	struct rls_event *event = script_add(script, RLS_EVENT_CUDA_CALL, time_ns, 1, tid);

	event->cuda_call.name = script_string(script, "cudaLaunchKernel");
	event->cuda_call.duration_ns = 10 * US;
	event->cuda_call.launches = true;
}

/* From begin_ns on: so many calls of 10 us, each in 20 us of the backend's, in the operation. */
static uint64_t add_calls(struct script *script, uint64_t begin_ns, uint32_t tid,
			  const char *operation)
{
	uint64_t at_ns = begin_ns;

	add_operation(script, at_ns, 1, tid, operation);
	for (int i = 0; i < CALLS; i++, at_ns += 20 * US) {
		add_category(script, at_ns, 1, tid, RLS_CATEGORY_BACKEND);
		add_category(script, at_ns + 5 * US, 1, tid, RLS_CATEGORY_CUDA_API);
		add_category(script, at_ns + 15 * US, 1, tid, RLS_CATEGORY_BACKEND);
		add_call(script, at_ns + 15 * US, tid);
	}
	return at_ns;
}

/* Thread 1 launches in "forward" and waits in "backward", in which thread 2 launches; "rest" has neither. */
static struct rls_report *record(bool by_cupti, bool is_charged)
{
	struct rls_report *report;
	struct script script;
	uint64_t at_ns;

	script_begin(&script);
	add_process(&script, US, 1, "train");
	add_thread(&script, US, 1, 1);
	add_thread(&script, US, 1, 2);
	if (is_charged) {
		struct rls_event *figure = script_add(&script, RLS_EVENT_CALIBRATION, US, 0, 0);

		figure->calibration.name = script_string(&script, "cupti.cudaLaunchKernel");
		figure->calibration.value_ns = 2 * US;
		figure->calibration.error_ns = US;
	}
	at_ns = add_calls(&script, US, 1, "forward");
	if (by_cupti)
		add_gpu(&script, at_ns, at_ns, 1, RLS_GPU_KERNEL, 0);
	add_operation(&script, at_ns, 1, 1, "backward");
	at_ns = add_calls(&script, at_ns, 2, "backward");
	add_off_cpu(&script, at_ns, 1, 1, 50 * US);
	add_operation(&script, at_ns, 1, 1, "rest");
	add_end(&script, at_ns + 100 * US);
	report = script_report_alone(&script);
	script_end(&script);
	return report;
}

static uint64_t error_of(const struct rls_report *report, uint32_t tid, const char *operation,
			 const char *category)
{
	return find_row(report, 1, tid, "", operation, category, RLS_RESOURCE_CPU)->error_ns;
}

static void states_nothing_without_cupti(void **state)
{
	struct rls_report *report = record(false, false);

	(void)state;
	for (size_t i = 0; i < report->breakdown_count; i++)
		assert_int_equal(report->breakdown[i].error_ns, 0);
	rls_report_free(report);
}

static void states_it_where_calls_are_made(void **state)
{
	struct rls_report *report = record(true, false);

	(void)state;
	assert_int_equal(error_of(report, 1, "forward", "cuda_api"), CALLS * 4 * US);
	assert_int_equal(error_of(report, 1, "forward", "backend"), CALLS * 4 * US);
	assert_int_equal(error_of(report, 2, "backward", "cuda_api"), CALLS * 4 * US);
	assert_int_equal(error_of(report, 1, "rest", "backend"), 0);
	rls_report_free(report);
}

/* Up to all of the wait. */
static void states_it_where_calls_are_waited_for(void **state)
{
	struct rls_report *report = record(true, false);

	(void)state;
	assert_int_equal(error_of(report, 1, "backward", "backend"), 50 * US);
	rls_report_free(report);
}

static void states_less_where_calls_are_charged(void **state)
{
	struct rls_report *report = record(true, true);

	(void)state;
	assert_int_equal(error_of(report, 1, "forward", "cuda_api"),
			 0); /* of nothing that was taken from it here */
	assert_int_equal(error_of(report, 1, "forward", "backend"), CALLS * 4 * US);
	assert_int_equal(error_of(report, 1, "backward", "backend"), CALLS * 4 * US);
	rls_report_free(report);
}

static void counts_are_those_of_all_calls(void **state)
{
	struct rls_call_total calls = {.tid = 7, .phase = 1, .operation = 2, .name = 3, .count = 5};
	struct rls_cupti_error cupti_error = {0};
	struct rls_cupti_error_sum own;

	(void)state;
	assert_int_equal(rls_cupti_error_add(&cupti_error, &calls, false), 0);
	calls.name = 4;
	assert_int_equal(rls_cupti_error_add(&cupti_error, &calls, true), 0);
	calls.tid = 8;
	assert_int_equal(rls_cupti_error_add(&cupti_error, &calls, false), 0);
	own = rls_cupti_error_own(&cupti_error, 7, 1, 2);
	assert_true(own.inside_ns == 5 * 4 * US && own.around_ns == 10 * 4 * US);
	assert_true(rls_cupti_error_others_ns(&cupti_error, 7, 1, 2) == 5 * 8 * US);
	assert_true(rls_cupti_error_own(&cupti_error, 7, 2, 1).around_ns == 0);
	rls_cupti_error_free(&cupti_error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_nothing_without_cupti),
		cmocka_unit_test(states_it_where_calls_are_made),
		cmocka_unit_test(states_it_where_calls_are_waited_for),
		cmocka_unit_test(states_less_where_calls_are_charged),
		cmocka_unit_test(counts_are_those_of_all_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
