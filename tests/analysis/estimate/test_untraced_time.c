/* Time that was not traced: divided by samples of the category, corrected by what these are known to mistake;
 * counts scaled by corrected time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/writers/write.h"
#include "tests/analysis/breakdown/script.h"

#define WINDOW_NS 100000
#define WINDOWS 20
#define CLOSED 4 /* of five stretches */

/* Windows of ten calls each, half of the time in them; samples take half of it for Python. */
static struct rls_report *record_beside(double hit_error, uint64_t cost_ns, uint64_t gpu_ns)
{
	struct rls_report *report;
	struct script script;
	uint64_t at_ns = 0;

	script_begin_step(&script, hit_error);
	if (gpu_ns)
		add_gpu(&script, 0, gpu_ns, 1, RLS_GPU_KERNEL, 0);
	for (int w = 0; w < WINDOWS; w++) {
		if (w)
			add_window(&script, at_ns, true);
		add_category(&script, at_ns, 1, 1, RLS_CATEGORY_PYTHON);
		for (int i = 0; i < 10; i++, at_ns += WINDOW_NS / 10) {
			add_category(&script, at_ns + WINDOW_NS / 20, 1, 1, RLS_CATEGORY_BACKEND);
			add_sample_of_category(&script, at_ns + WINDOW_NS / 20 + 10,
					       i % 2 ? RLS_CATEGORY_PYTHON : RLS_CATEGORY_BACKEND);
			add_category(&script, at_ns + WINDOW_NS / 10 - 1, 1, 1,
				     RLS_CATEGORY_PYTHON);
			add_hits(&script, at_ns + WINDOW_NS / 10 - 1, 1, 1, 2, cost_ns);
		}
		add_window(&script, at_ns, false);
		for (int i = 0; i < 10 * CLOSED; i++, at_ns += WINDOW_NS / 10)
			add_sample_of_category(&script, at_ns + 10,
					       i % 4 ? RLS_CATEGORY_PYTHON : RLS_CATEGORY_BACKEND);
	}
	add_end(&script, at_ns);
	report = script_report_alone(&script);
	script_end(&script);
	return report;
}

static struct rls_report *record(double hit_error, uint64_t cost_ns)
{
	return record_beside(hit_error, cost_ns, 0);
}

static const struct rls_transition_row *calls_of(const struct rls_report *report)
{
	for (size_t i = 0; i < report->transition_count; i++) {
		if (report->transitions[i].from == RLS_CATEGORY_BACKEND)
			return &report->transitions[i];
	}
	return NULL;
}

/* A quarter of the samples says backend, which is never Python; three quarters say Python, which
 * was always backend where it was traced. All is backend, but for the prior weight of an inferred category. */
static void test_samples_are_corrected_by_what_is_known_of_them(void **unused)
{
	struct rls_report *report = record(0, 0);
	const struct rls_breakdown_row *row =
		find_row(report, 1, 1, "", "step", "backend", RLS_RESOURCE_CPU);
	double traced_ns = WINDOWS * WINDOW_NS / 2.0,
	       closed_ns = WINDOWS * WINDOW_NS * 1.0 * CLOSED;

	assert_int_equal(row->method, RLS_METHOD_SAMPLED);
	assert_true(fabs((double)row->wall_ns - traced_ns - closed_ns * (0.25 + 0.75 * 100 / 110)) <
		    0.01 * closed_ns);
	assert_true(row->error_ns > 0.01 * closed_ns && row->error_ns < 0.1 * closed_ns);
	rls_report_free(report);
}

static void test_counts_are_scaled_by_time(void **unused)
{
	struct rls_report *report = record(0, 0);
	const struct rls_transition_row *row = calls_of(report);

	assert_string_equal(rls_method_name(row->method), "scaled");
	assert_in_range(row->count, 10 * WINDOWS * (1 + CLOSED) - 20,
			10 * WINDOWS * (1 + CLOSED) + 20);
	assert_in_range(row->count_error, 1, row->count / 4);
	rls_report_free(report);
}

static void add_cuda_call(struct script *script, uint64_t time_ns, uint32_t tid,
			  uint64_t duration_ns)
{
	struct rls_event *event = script_add(script, RLS_EVENT_CUDA_CALL, time_ns, 1, tid);

	event->cuda_call.name = script_string(script, "cudaLaunchKernel");
	event->cuda_call.duration_ns = duration_ns;
	event->cuda_call.launches = true;
}

/* Half of the windows' time is in calls, and a quarter of the rest by samples that are never wrong. Another thread
 * makes one call in the same operation and is gone before a window ends. */
static struct rls_report *record_cuda_calls(void)
{
	struct rls_report *report;
	struct script script;
	uint64_t at_ns = 0;

	script_begin_step(&script, 0);
	add_thread(&script, 0, 1, 2);
	add_operation(&script, 0, 1, 2, "step");
	add_cuda_call(&script, 20, 2, 10);
	script_add(&script, RLS_EVENT_THREAD_END, 30, 1, 2);
	for (int w = 0; w < WINDOWS; w++) {
		if (w)
			add_window(&script, at_ns, true);
		add_category(&script, at_ns, 1, 1, RLS_CATEGORY_PYTHON);
		for (int i = 0; i < 10; i++, at_ns += WINDOW_NS / 10) {
			add_sample_of_category(&script, at_ns + 10, RLS_CATEGORY_PYTHON);
			add_category(&script, at_ns + WINDOW_NS / 20, 1, 1, RLS_CATEGORY_CUDA_API);
			add_sample_of_category(&script, at_ns + WINDOW_NS / 20 + 10,
					       RLS_CATEGORY_CUDA_API);
			add_category(&script, at_ns + WINDOW_NS / 10 - 1, 1, 1,
				     RLS_CATEGORY_PYTHON);
			add_cuda_call(&script, at_ns + WINDOW_NS / 10 - 1, 1, WINDOW_NS / 20 - 1);
		}
		add_window(&script, at_ns, false);
		for (int i = 0; i < 10 * CLOSED; i++, at_ns += WINDOW_NS / 10)
			add_sample_of_category(&script, at_ns + 10,
					       i % 4 ? RLS_CATEGORY_PYTHON : RLS_CATEGORY_CUDA_API);
	}
	add_end(&script, at_ns);
	report = script_report_alone(&script);
	script_end(&script);
	return report;
}

static void test_cuda_calls_are_scaled_to_their_category(void **unused)
{
	struct rls_report *report = record_cuda_calls();
	const struct rls_breakdown_row *row =
		find_row(report, 1, 1, "", "step", "cuda_api", RLS_RESOURCE_CPU);
	double expected_ns = WINDOWS * WINDOW_NS * (0.5 + 0.25 * CLOSED);

	assert_true(fabs((double)row->wall_ns - expected_ns) < 0.02 * expected_ns);
	assert_int_equal(report->cuda_call_count, 2);
	assert_int_equal(report->cuda_operation_count, 1);
	assert_int_equal(report->cuda_calls[0].count, 10 * WINDOWS * (1 + CLOSED));
	assert_int_equal(report->cuda_calls[0].launches, report->cuda_calls[0].count);
	assert_true(fabs((double)report->cuda_calls[0].wall_ns - (double)row->wall_ns) <
		    1e-6 * expected_ns);
	assert_int_equal(report->cuda_calls[1].tid, 2);
	assert_int_equal(report->cuda_calls[1].count, 1);
	assert_int_equal(report->cuda_calls[1].wall_ns, 10);
	assert_int_equal(report->cuda_calls[0].method, RLS_METHOD_SCALED);
	assert_in_range(report->cuda_calls[0].count_error, 1, report->cuda_calls[0].count / 2);
	assert_in_range(report->cuda_calls[0].error_ns, 1, report->cuda_calls[0].wall_ns / 2);
	assert_int_equal(report->cuda_calls[1].method, RLS_METHOD_TRACED);
	assert_int_equal(report->cuda_calls[1].count_error, 0);
	assert_int_equal(report->cuda_calls[1].error_ns, 0);
	assert_int_equal(report->cuda_operations[0].method, RLS_METHOD_SCALED);
	assert_int_equal(report->cuda_operations[0].count_error, report->cuda_calls[0].count_error);
	assert_int_equal(report->cuda_operations[0].api_ns, report->cuda_calls[0].wall_ns + 10);
	rls_report_free(report);
}

/* A fifth of the windows' time was the hits': without it there is room for more calls. */
static void test_windows_are_shorter_without_their_hits(void **unused)
{
	struct rls_report *report = record(0, WINDOW_NS / 50),
			  *less_certain = record(0.5, WINDOW_NS / 50);
	const struct rls_transition_row *row = calls_of(report), *other = calls_of(less_certain);
	double expected = 10 * WINDOWS * (1 + CLOSED / 0.8);

	assert_true(fabs((double)row->count - expected) < 0.02 * expected);
	assert_int_equal(other->count, row->count);
	/* A quarter of what is left was cost, and that is uncertain by half. */
	assert_true(
		fabs(sqrt(pow((double)other->count_error, 2) - pow((double)row->count_error, 2)) /
			     (double)row->count -
		     0.5 / 4) < 0.01);
	rls_report_free(report);
	rls_report_free(less_certain);
}

/* Nothing is taken from time when the GPU is busy too, but the windows are as much shorter. */
static void test_hits_beside_the_gpu_make_windows_longer_too(void **unused)
{
	struct rls_report *report =
		record_beside(0, WINDOW_NS / 50, WINDOWS * WINDOW_NS * (1 + CLOSED));
	const struct rls_breakdown_row *row =
		find_row(report, 1, 1, "", "step", "python", RLS_RESOURCE_CPU_GPU);
	double expected = 10 * WINDOWS * (1 + CLOSED / 0.8);

	assert_true(fabs((double)calls_of(report)->count - expected) < 0.02 * expected);
	assert_int_equal(row->corrected_ns, row->wall_ns);
	rls_report_free(report);
}

/* The first stretch, which is at no random instant, says nothing of how windows differ. */
static void test_one_window_leaves_a_count_unknown(void **unused)
{
	const struct rls_transition_row *row;
	struct rls_report *report;
	struct script script;

	script_begin_step(&script, 0);
	add_category(&script, 0, 1, 1, RLS_CATEGORY_BACKEND);
	add_category(&script, 500, 1, 1, RLS_CATEGORY_PYTHON);
	add_window(&script, 1000, false);
	add_sample_of_category(&script, 2000, RLS_CATEGORY_PYTHON);
	add_end(&script, 4000);
	report = script_report_alone(&script);
	row = calls_of(report);
	assert_int_equal(row->count, RLS_COUNT_UNKNOWN);
	assert_int_equal(row->count_error, RLS_COUNT_UNKNOWN);
	rls_report_free(report);
	script_end(&script);
}

static uint64_t waited_in(const struct rls_report *report, const char *operation)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < report->breakdown_count; i++) {
		const struct rls_breakdown_row *row = &report->breakdown[i];

		if (!strcmp(row->operation, operation))
			ns += row->wall_ns - row->on_cpu_ns;
	}
	return ns;
}

/* 5 us in an operation of their own, of which a sample gives sampled_ns, then 3 us of work; what was waited in all is
 * only known at its end. */
static struct rls_report *record_wait(uint64_t sampled_ns, uint64_t waited_ns)
{
	struct rls_report *report;
	struct script script;

	script_begin_step(&script, 0);
	add_category(&script, 0, 1, 1, RLS_CATEGORY_PYTHON);
	add_window(&script, 100, false);
	add_operation(&script, 1000, 1, 1, "rest");
	if (sampled_ns) {
		add_sample_of_category(&script, 6000, RLS_CATEGORY_PYTHON);
		script.events[script.count - 1].share.waited_ns = sampled_ns;
	}
	add_operation(&script, 6000, 1, 1, "work");
	add_sample_of_category(&script, 9000, RLS_CATEGORY_PYTHON);
	add_off_cpu(&script, 9000, 1, 1, waited_ns);
	add_operation(&script, 9000, 1, 1, "step");
	add_sample_of_category(&script, 9500, RLS_CATEGORY_PYTHON);
	add_off_cpu(&script, 9500, 1, 1, 300);
	add_end(&script, 10000);
	report = script_report_alone(&script);
	script_end(&script);
	return report;
}

static void test_waits_lie_where_a_sample_saw_them_end(void **unused)
{
	static const struct {
		uint64_t sampled_ns, waited_ns, rest_ns, work_ns, step_ns;
	} rows[] = {
		{0, 4900, 1900, 3000, 300}, /* nobody sampled: the latest time first */
		{4900, 4900, 4900, 0, 300},     {4700, 4900, 4700, 200, 300}, /* and waited again */
		{9000, 4900, 4900, 0, 300}, /* most of which was reported before */
		{9000, 7000, 5000, 1000, 1300}, /* no more than there was */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rls_report *report = record_wait(rows[i].sampled_ns, rows[i].waited_ns);

		assert_int_equal(waited_in(report, "rest"), rows[i].rest_ns);
		assert_int_equal(waited_in(report, "work"), rows[i].work_ns);
		assert_int_equal(waited_in(report, "step"), rows[i].step_ns); /* counted once */
		rls_report_free(report);
	}
}

/* A helper waits while the operation of the thread that it works for changes: samples at the ends of its waits, in one
 * operation, count for the other too. They do not where it ran there. */
static void test_a_parked_thread_is_known_by_its_waits_elsewhere(void **unused)
{
	for (uint64_t ran_ns = 0; ran_ns <= 100; ran_ns += 100) {
		const struct rls_breakdown_row *row;
		struct rls_report *report;
		struct script script;

		script_begin_step(&script, 0);
		add_category(&script, 0, 1, 1, RLS_CATEGORY_BACKEND);
		add_window(&script, 1000, false);
		for (uint64_t from_ns = 1000; from_ns < 1000000; from_ns += 10000) {
			add_operation(&script, from_ns, 1, 1, "rest");
			add_operation(&script, from_ns + 7000, 1, 1, "work");
			add_sample_of_category(&script, from_ns + 8000, RLS_CATEGORY_BACKEND);
			script.events[script.count - 1].share.waited_ns = 1000;
			add_off_cpu(&script, from_ns + 8000, 1, 1, 8000 - ran_ns);
			add_sample_of_category(&script, from_ns + 9000, RLS_CATEGORY_BACKEND);
		}
		add_end(&script, 1001000);
		report = script_report_alone(&script);
		row = find_row(report, 1, 1, "", "rest", "backend", RLS_RESOURCE_CPU);
		assert_non_null(row);
		assert_int_equal(row->wall_ns - row->on_cpu_ns, 100 * (7000 - ran_ns));
		assert_true(ran_ns ? row->error_ns > row->wall_ns / 2
				   : row->error_ns < row->wall_ns / 8);
		rls_report_free(report);
		script_end(&script);
	}
}

/* Thread 1 waits for thread 2, whose hits cost 500, while nothing is traced: its waits were backend by what samples
 * say. With the GPU busy from gpu_ns on, only what lies before is taken from. */
static void test_others_cost_goes_with_closed_waits(void **unused)
{
	static const struct {
		uint64_t gpu_ns, taken_ns;
	} cases[] = {{0, 500}, {300, 200}, {100, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t wall_ns = 0, corrected_ns = 0, others_ns = 0;
		struct rls_report *report;
		struct script script;

		script_begin_step(&script, 0);
		add_thread(&script, 0, 1, 2);
		add_operation(&script, 0, 1, 2, "step");
		add_category(&script, 0, 1, 1, RLS_CATEGORY_BACKEND);
		add_category(&script, 0, 1, 2, RLS_CATEGORY_BACKEND);
		if (cases[i].gpu_ns)
			add_gpu(&script, cases[i].gpu_ns, 1000, 1, RLS_GPU_KERNEL, 0);
		add_window(&script, 100, false);
		add_sample_of_category(&script, 110, RLS_CATEGORY_PYTHON);
		add_sample_of_category(&script, 990, RLS_CATEGORY_BACKEND);
		script.events[script.count - 1].share.waited_ns = 800;
		add_hits(&script, 950, 1, 2, 10, 500);
		add_off_cpu(&script, 1000, 1, 1, 900);
		add_end(&script, 2000);
		report = script_report_alone(&script);
		for (size_t k = 0; k < report->breakdown_count; k++) {
			const struct rls_breakdown_row *row = &report->breakdown[k];

			if (row->tid != 1)
				continue;
			assert_true(row->induced_wait_ns <= row->wall_ns - row->on_cpu_ns);
			assert_true(row->error_ns >= row->induced_wait_ns);
			wall_ns += row->wall_ns;
			corrected_ns += row->corrected_ns;
			others_ns += row->induced_wait_ns;
		}
		assert_int_equal(wall_ns, 2000);
		assert_int_equal(others_ns, cases[i].taken_ns);
		assert_int_equal(corrected_ns, wall_ns - others_ns);
		rls_report_free(report);
		script_end(&script);
	}
}

/* A window of 10 ns, of which hits took 9, and a closed stretch as long as time gets. */
static void test_scaled_counts_are_bounded(void **unused)
{
	const struct rls_transition_row *row;
	struct rls_report *report;
	struct script script;

	script_begin_step(&script, 0.1);
	for (uint64_t at_ns = 0; at_ns < 10; at_ns++) {
		add_category(&script, at_ns, 1, 1,
			     at_ns % 2 ? RLS_CATEGORY_BACKEND : RLS_CATEGORY_PYTHON);
		add_hits(&script, at_ns, 1, 1, 1, 1);
	}
	add_window(&script, 10, false);
	add_end(&script, INT64_MAX);
	report = script_report_alone(&script);
	row = calls_of(report);
	assert_non_null(row);
	assert_int_equal(row->count, INT64_MAX);
	assert_int_equal(row->count_error, INT64_MAX);
	rls_report_free(report);
	script_end(&script);
}

/* All that was traced was the hits' own time: nothing says what went on besides. */
static struct rls_report *record_unknown(void)
{
	struct rls_report *report;
	struct script script;

	script_begin_step(&script, 0);
	for (uint64_t at_ns = 0; at_ns < 10; at_ns++) {
		add_category(&script, at_ns, 1, 1,
			     at_ns % 2 ? RLS_CATEGORY_BACKEND : RLS_CATEGORY_PYTHON);
		add_hits(&script, at_ns, 1, 1, 1, 5);
	}
	add_hits(&script, 10, 1, 1, 1, 5);
	add_cuda_call(&script, 10, 1, 1);
	add_window(&script, 10, false);
	add_end(&script, 20);
	report = script_report_alone(&script);
	script_end(&script);
	return report;
}

static void assert_written(const struct rls_report *report, const char *format,
			   enum rls_report_table table, const char *expected)
{
	const struct rls_write_options options = {.table = table};
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(rls_report_write(report, rls_report_writer_find(format), out, &options),
			 0);
	fclose(out);
	if (!strstr(text, expected))
		fail_msg("there is no '%s' in\n%s", expected, text);
	free(text);
}

static void test_counts_that_nothing_bounds_are_unknown(void **unused)
{
	struct rls_report *report = record_unknown();
	const struct rls_transition_row *row = calls_of(report);

	assert_int_equal(row->count, RLS_COUNT_UNKNOWN);
	assert_int_equal(row->method, RLS_METHOD_SCALED);
	assert_int_equal(report->cuda_calls[0].count, RLS_COUNT_UNKNOWN);
	assert_written(report, "json", 0, "\"count\": null, \"method\": \"scaled\"");
	assert_written(report, "json", 0, "\"calls\": null, \"api_ns\": null");
	assert_written(report, "jsonl", 0, "\"count\":null,\"method\":\"scaled\"");
	assert_written(report, "csv", RLS_TABLE_TRANSITIONS, "backend,python,,scaled,,\n");
	assert_written(report, "text", 0, "not known          -  scaled\n");
	/* A sum with something unknown in it is no sum. */
	rls_report_group(report, RLS_GROUP_PROCESS);
	assert_int_equal(calls_of(report)->count, RLS_COUNT_UNKNOWN);
	rls_report_free(report);
}

static void test_scaled_counts_are_shown_as_such(void **unused)
{
	struct rls_report *report = record(0, 0);

	assert_written(report, "text", 0, "  step               python → backend");
	assert_written(report, "text", 0, "~");
	assert_written(report, "text", 0, " ± ");
	assert_written(report, "text", 0, "  scaled\n");
	rls_report_free(report);
	report = record_cuda_calls();
	assert_written(report, "text", 0, " ~1,001 ± ");
	rls_report_free(report);
}

/* Events of another operation were lost, or of this one: nobody knows. */
static void test_lost_events_widen_the_error_of_counts(void **unused)
{
	struct rls_report *report;
	struct rls_event *event;
	struct script script;

	script_begin_step(&script, 0);
	for (uint64_t at_ns = 0; at_ns < 1000; at_ns++)
		add_category(&script, at_ns, 1, 1,
			     at_ns % 2 ? RLS_CATEGORY_BACKEND : RLS_CATEGORY_PYTHON);
	event = script_add(&script, RLS_EVENT_LOSS, 1000, 0, 0);
	event->loss.buffer = script_string(&script, "transitions");
	event->loss.dropped = 100;
	add_end(&script, 1000);
	report = script_report_alone(&script);
	script_end(&script);
	assert_int_equal(calls_of(report)->method, RLS_METHOD_TRACED);
	assert_in_range(calls_of(report)->count_error, 45, 55);
	assert_written(report, "text", 0, " 499 ± 50 ");
	rls_report_free(report);
}

/* Never sampled, never traced: not known at all, and still all there. */
static void test_what_has_no_sample_is_there(void **unused)
{
	struct rls_report *report;
	struct script script;
	uint64_t wall_ns = 0;

	script_begin_step(&script, 0);
	add_category(&script, 0, 1, 1, RLS_CATEGORY_BACKEND);
	add_window(&script, 1000, false);
	add_operation(&script, 2000, 1, 1, "other");
	add_end(&script, 5000);
	report = script_report_alone(&script);
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
		cmocka_unit_test(test_samples_are_corrected_by_what_is_known_of_them),
		cmocka_unit_test(test_counts_are_scaled_by_time),
		cmocka_unit_test(test_cuda_calls_are_scaled_to_their_category),
		cmocka_unit_test(test_windows_are_shorter_without_their_hits),
		cmocka_unit_test(test_hits_beside_the_gpu_make_windows_longer_too),
		cmocka_unit_test(test_one_window_leaves_a_count_unknown),
		cmocka_unit_test(test_waits_lie_where_a_sample_saw_them_end),
		cmocka_unit_test(test_a_parked_thread_is_known_by_its_waits_elsewhere),
		cmocka_unit_test(test_what_has_no_sample_is_there),
		cmocka_unit_test(test_others_cost_goes_with_closed_waits),
		cmocka_unit_test(test_scaled_counts_are_bounded),
		cmocka_unit_test(test_counts_that_nothing_bounds_are_unknown),
		cmocka_unit_test(test_scaled_counts_are_shown_as_such),
		cmocka_unit_test(test_lost_events_widen_the_error_of_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
