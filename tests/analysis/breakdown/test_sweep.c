/* The cases that the definitions leave to be got wrong, one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/analysis/breakdown/script.h"

#define CPU RLS_RESOURCE_CPU
#define CPU_GPU RLS_RESOURCE_CPU_GPU

static uint64_t wall_of(const struct rls_report *report, uint32_t tid, const char *operation,
			const char *category, enum rls_resource resource)
{
	const struct rls_breakdown_row *row =
		find_row(report, 1, tid, "", operation, category, resource);

	return row ? row->wall_ns : 0;
}

static uint64_t subtracted_of(const struct rls_report *report, const char *operation,
			      const char *category)
{
	const struct rls_breakdown_row *row = find_row(report, 1, 1, "", operation, category, CPU);

	assert_non_null(row);
	return row->wall_ns - row->corrected_ns;
}

static void test_hits_belong_to_what_ends_with_them(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	add_category(&script, 50, 1, 1, RLS_CATEGORY_BACKEND);
	add_hits(&script, 50, 1, 1, 2, 15);
	add_category(&script, 60, 1, 1, RLS_CATEGORY_PYTHON);
	add_hits(&script, 60, 1, 1, 1, 25); /* 15 of it find no room in backend's 10 */
	add_end(&script, 100);
	report = script_report(&script);
	assert_int_equal(subtracted_of(report, "", "python"), 15);
	assert_int_equal(subtracted_of(report, "", "backend"), 10);
	assert_int_equal(report->overhead.hits, 3);
	assert_int_equal(report->overhead.estimated_ns, 40);
	assert_int_equal(report->overhead.events, 3);
	assert_true(report->overhead.percent > 44.4 && report->overhead.percent < 44.5);
	assert_int_equal(report->warning_count, 1); /* of 15 in 40 */
	rls_report_free(report);
	script_end(&script);
}

static void test_hits_reach_back_over_operations_latest_first(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	add_operation(&script, 20, 1, 1, "a");
	add_operation(&script, 30, 1, 1, "b");
	add_gpu(&script, 32, 36, 1, RLS_GPU_KERNEL, 0);
	add_hits(&script, 40, 1, 1, 1, 12); /* 6 of b's cpu part, 6 of a */
	add_end(&script, 40);
	report = script_report(&script);
	assert_int_equal(subtracted_of(report, "b", "python"), 6);
	assert_int_equal(subtracted_of(report, "a", "python"), 6);
	assert_int_equal(subtracted_of(report, "", "python"), 0);
	assert_int_equal(wall_of(report, 1, "b", "python", CPU_GPU), 4);
	rls_report_free(report);
	script_end(&script);
}

static bool warns(const struct rls_report *report, const char *words)
{
	for (size_t i = 0; i < report->warning_count; i++) {
		if (strstr(report->warnings[i], words))
			return true;
	}
	return false;
}

/* Cost that is left in by rule is another matter than cost for which there was no time at all. */
static void test_hits_under_a_busy_gpu_are_said_apart(void **unused)
{
	static const struct {
		uint64_t cost_ns;
		bool under_gpu, unplaced;
	} cases[] = {{10, false, false}, {12, false, false}, {30, true, false}, {60, true, true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rls_report *report;
		struct script script;

		script_begin_python(&script);
		add_gpu(&script, 20, 40, 1, RLS_GPU_KERNEL, 0);
		add_hits(&script, 40, 1, 1, 1, cases[i].cost_ns);
		add_end(&script, 40);
		report = script_report(&script);
		assert_int_equal(subtracted_of(report, "", "python"), 10); /* from 10 to 20 */
		assert_int_equal(warns(report, "cpu+gpu"), cases[i].under_gpu);
		assert_int_equal(warns(report, "calibrate again"), cases[i].unplaced);
		rls_report_free(report);
		script_end(&script);
	}
}

/* More spans than are kept between two reports: merged, and every cost still finds room. */
static void test_many_spans_between_reports(void **unused)
{
	const unsigned int count = 5000;
	uint64_t subtracted = 0;
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	for (unsigned int i = 0; i < count; i++)
		add_operation(&script, 20 + 10 * i, 1, 1, i % 2 ? "a" : "b");
	add_hits(&script, 20 + 10 * count, 1, 1, 1, 10 * count);
	add_end(&script, 20 + 10 * count);
	report = script_report(&script);
	subtracted = subtracted_of(report, "a", "python") + subtracted_of(report, "b", "python");
	assert_int_equal(subtracted, 10 * count);
	assert_int_equal(subtracted_of(report, "", "python"), 0);
	rls_report_free(report);
	script_end(&script);
}

/* Thread 2 works in an operation, with hits of 5 at 30 and of 7 at 45; thread 1 in "a" waits up to 50. */
static void test_who_waits_for_hits_of_others_waits_longer(void **unused)
{
	static const struct {
		const char *operation;
		uint64_t waited_ns, taken_ns;
	} cases[] = {{"a", 25, 12}, {"a", 20, 7}, {"a", 6, 6}, {"a", 5, 0}, {"b", 25, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rls_breakdown_row *row;
		struct rls_report *report;
		struct script script;

		script_begin_python(&script);
		add_operation(&script, 20, 1, 1, "a");
		add_thread(&script, 10, 1, 2);
		add_category(&script, 20, 1, 2, RLS_CATEGORY_BACKEND);
		add_operation(&script, 20, 1, 2, cases[i].operation);
		add_hits(&script, 30, 1, 2, 1, 5);
		add_hits(&script, 45, 1, 2, 1, 7);
		add_hits(&script, 50, 1, 1, 1, 2);
		add_off_cpu(&script, 50, 1, 1, cases[i].waited_ns);
		add_end(&script, 60);
		report = script_report(&script);
		row = find_row(report, 1, 1, "", "a", "python", CPU);
		assert_non_null(row);
		assert_int_equal(row->induced_wait_ns, cases[i].taken_ns);
		assert_int_equal(row->wall_ns - row->corrected_ns, 2 + row->induced_wait_ns);
		assert_true(row->error_ns >= row->induced_wait_ns);
		row = find_row(report, 1, 2, "", cases[i].operation, "backend", CPU);
		assert_non_null(row);
		assert_int_equal(row->wall_ns - row->corrected_ns, 12);
		assert_int_equal(report->overhead.estimated_ns, 14);
		rls_report_free(report);
		script_end(&script);
	}
}

static void test_off_cpu_is_shared_between_parts(void **unused)
{
	const struct rls_breakdown_row *row;
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	add_gpu(&script, 20, 35, 1, RLS_GPU_KERNEL, 0);
	add_off_cpu(&script, 30, 1, 1, 10); /* 10 cpu and 10 cpu+gpu so far */
	add_end(&script, 40);
	report = script_report(&script);
	row = find_row(report, 1, 1, "", "", "python", CPU);
	assert_int_equal(row->wall_ns, 15);
	assert_int_equal(row->on_cpu_ns, 10);
	row = find_row(report, 1, 1, "", "", "python", CPU_GPU);
	assert_int_equal(row->wall_ns, 15);
	assert_int_equal(row->on_cpu_ns, 10);
	assert_int_equal(report->threads[0].on_cpu_ns, 20);
	rls_report_free(report);
	script_end(&script);
}

static void test_a_wait_on_the_gpu_is_not_busy(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	add_gpu(&script, 15, 20, 1, RLS_GPU_SYNC, 0);
	add_gpu(&script, 20, 25, 1, RLS_GPU_MEMSET, 0);
	add_gpu(&script, 22, 30, 1, RLS_GPU_MEMCPY, 0);
	add_gpu(&script, 30, 33, 1, RLS_GPU_GRAPH, 0);
	add_end(&script, 40);
	report = script_report(&script);
	assert_int_equal(wall_of(report, 1, "", "python", CPU_GPU), 13);
	assert_int_equal(report->gpu_count, 1);
	assert_int_equal(report->gpu[0].busy_ns, 13);
	assert_int_equal(report->gpu[0].memcpy_ns, 8);
	assert_int_equal(report->gpu[0].kernel_ns, 0);
	assert_int_equal(report->gpu[0].kernels, 0);
	rls_report_free(report);
	script_end(&script);
}

static void test_work_is_filed_where_it_was_launched(void **unused)
{
	const struct rls_gpu_operation *operations;
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	add_operation(&script, 12, 1, 1, "a");
	add_launch(&script, 14, 1, 1, 7);
	add_operation(&script, 16, 1, 1, "b");
	add_launch(&script, 16, 1, 1, 8); /* at the edge: already b */
	add_gpu(&script, 18, 30, 1, RLS_GPU_KERNEL, 7);
	add_gpu(&script, 20, 25, 1, RLS_GPU_KERNEL, 7);
	add_gpu(&script, 26, 36, 1, RLS_GPU_KERNEL, 8);
	add_gpu(&script, 27, 28, 1, RLS_GPU_KERNEL, 99);
	add_end(&script, 40);
	report = script_report(&script);
	assert_int_equal(report->gpu[0].operation_count, 3);
	operations = report->gpu[0].operations;
	assert_string_equal(operations[0].operation, "");
	assert_int_equal(operations[0].busy_ns, 1);
	assert_string_equal(operations[1].operation, "a");
	assert_int_equal(operations[1].busy_ns, 12);
	assert_int_equal(operations[1].kernels, 2);
	assert_string_equal(operations[2].operation, "b");
	assert_int_equal(operations[2].busy_ns, 10);
	assert_int_equal(report->gpu[0].busy_ns, 18);
	assert_int_equal(report->gpu[0].kernel_ns, 28);
	rls_report_free(report);
	script_end(&script);
}

/* Each kernel is seen before its launch, and some of a hundred thousand never get one. */
static void test_late_launches(void **unused)
{
	const uint64_t count = 100000;
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	add_operation(&script, 11, 1, 1, "a");
	for (uint64_t i = 0; i < count; i++) {
		add_gpu(&script, 20 + 10 * i, 24 + 10 * i, 1, RLS_GPU_KERNEL, i + 1);
		if (i % 10)
			add_launch(&script, 25 + 10 * i, 1, 1, i + 1);
	}
	add_end(&script, 20 + 10 * count);
	report = script_report(&script);
	assert_int_equal(report->gpu[0].operation_count, 2);
	assert_int_equal(report->gpu[0].operations[0].kernels, count / 10);
	assert_int_equal(report->gpu[0].operations[1].kernels, count - count / 10);
	assert_int_equal(report->gpu[0].operations[1].busy_ns, 4 * (count - count / 10));
	rls_report_free(report);
	script_end(&script);
}

/* A life is [start, end). */
static void test_a_kernel_that_starts_at_the_lifes_end_is_not_in_it(void **unused)
{
	const uint64_t start = 1000, end = start + 100000000;
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_process(&script, start, 1, "p");
	add_gpu(&script, end, end + 100, 1, RLS_GPU_KERNEL, 0);
	add_gpu(&script, end, end + 200, 1, RLS_GPU_KERNEL, 0);
	script_add(&script, RLS_EVENT_PROCESS_END, end, 1, 0);
	add_end(&script, 2 * end);
	report = script_report(&script);
	assert_true(report->gpu[0].smi_style_percent == 0);
	assert_int_equal(report->gpu[0].kernels, 2);
	rls_report_free(report);
	script_end(&script);
}

static void test_smi_windows_are_exact_sixths(void **unused)
{
	const uint64_t start = 1000, second = 1000000000;
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_process(&script, start, 1, "p");
	/* Window 1 is [166666666.67, 333333333.33): this ends in 0, the next begins in 1. */
	add_gpu(&script, start + 10, start + 166666666, 1, RLS_GPU_KERNEL, 0);
	add_gpu(&script, start + 166666667, start + 166666668, 1, RLS_GPU_KERNEL, 0);
	add_gpu(&script, start + 400000000, start + 900000000, 1, RLS_GPU_MEMCPY, 0);
	/* Runs on past the end of the life, which has seven windows, the last one short. */
	add_gpu(&script, start + second, start + 5 * second, 1, RLS_GPU_KERNEL, 0);
	script_add(&script, RLS_EVENT_PROCESS_END, start + second + 1, 1, 0);
	add_gpu(&script, start + second + 2, start + 2 * second, 1, RLS_GPU_KERNEL, 0);
	add_end(&script, start + 2 * second);
	report = script_report(&script);
	assert_true(report->gpu[0].smi_style_percent > 100.0 * 3 / 7 - 1e-9);
	assert_true(report->gpu[0].smi_style_percent < 100.0 * 3 / 7 + 1e-9);
	rls_report_free(report);
	script_end(&script);
}

/* 0 is what the driver gives for a time it has not; an end before the start is refused by
 * the event store already. */
static void test_impossible_gpu_records_are_left_out(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	add_gpu(&script, 0, 30, 1, RLS_GPU_KERNEL, 0);
	add_gpu(&script, 0, 0, 1, RLS_GPU_KERNEL, 0);
	add_end(&script, 40);
	report = script_report(&script);
	assert_int_equal(report->gpu_count, 0);
	assert_int_equal(report->warning_count, 1);
	assert_string_equal(report->warnings[0],
			    "2 GPU records with impossible times were left out");
	assert_int_equal(report->start_ns, 10);
	rls_report_free(report);
	script_end(&script);
}

static void test_gpu_outlives_the_threads(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	script_add(&script, RLS_EVENT_THREAD_END, 20, 1, 1);
	add_gpu(&script, 15, 28, 1, RLS_GPU_KERNEL, 0);
	add_phase(&script, 25, 1, "late");
	add_end(&script, 40);
	add_gpu(&script, 39, 50, 1, RLS_GPU_KERNEL, 0);
	report = script_report(&script);
	assert_int_equal(wall_of(report, 1, "", "python", CPU_GPU), 5);
	assert_int_equal(find_row(report, 1, 0, "", "", "", RLS_RESOURCE_GPU)->wall_ns, 5);
	assert_int_equal(find_row(report, 1, 0, "late", "", "", RLS_RESOURCE_GPU)->wall_ns, 14);
	assert_int_equal(report->gpu[0].busy_ns, 24);
	assert_int_equal(report->end_ns - report->start_ns, 30);
	rls_report_free(report);
	script_end(&script);
}

static void test_transitions(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin_python(&script); /* unknown → python: none */
	add_operation(&script, 20, 1, 1, "a");
	add_category(&script, 20, 1, 1, RLS_CATEGORY_BACKEND); /* at a's edge: in a */
	add_category(&script, 30, 1, 1, RLS_CATEGORY_BACKEND); /* no change */
	add_category(&script, 40, 1, 1, RLS_CATEGORY_UNKNOWN); /* none */
	add_category(&script, 50, 1, 1, RLS_CATEGORY_PYTHON); /* none */
	add_category(&script, 60, 1, 1, RLS_CATEGORY_BACKEND);
	add_operation(&script, 70, 1, 1, "");
	add_category(&script, 70, 1, 1, RLS_CATEGORY_PYTHON); /* a has ended */
	add_end(&script, 80);
	report = script_report(&script);
	assert_int_equal(
		transition_count(report, 1, "a", RLS_CATEGORY_PYTHON, RLS_CATEGORY_BACKEND), 2);
	assert_int_equal(transition_count(report, 1, "", RLS_CATEGORY_BACKEND, RLS_CATEGORY_PYTHON),
			 1);
	assert_int_equal(report->transition_count, 2);
	rls_report_free(report);
	script_end(&script);
}

static void test_a_wait_is_the_last_instant(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	add_gpu(&script, 20, 70, 1, RLS_GPU_SYNC, 0);
	report = script_report(&script);
	assert_int_equal(report->end_ns, 70);
	assert_int_equal(wall_of(report, 1, "", "python", CPU), 60);
	rls_report_free(report);
	script_end(&script);
}

static void test_lives(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_process(&script, 10, 1, "first");
	add_category(&script, 20, 1, 2, RLS_CATEGORY_PYTHON); /* no thread event */
	script_add(&script, RLS_EVENT_THREAD_END, 30, 1, 2);
	add_thread(&script, 40, 1, 2); /* the tid again */
	add_process(&script, 44, 1, "python");
	script.events[script.count - 1].process.python = script_string(&script, "3.11.2");
	script.events[script.count - 1].process.cmdline = script_string(&script, "[\"python\"]");
	add_process(&script, 45, 1, "renamed");
	script.events[script.count - 1].process.cmdline = script_string(&script, "[\"ls\"]");
	script_add(&script, RLS_EVENT_PROCESS_END, 50, 1, 0);
	add_category(&script, 55, 1, 2, RLS_CATEGORY_BACKEND); /* a stray */
	add_process(&script, 60, 1, "second"); /* the pid again */
	add_thread(&script, 60, 1, 1);
	add_end(&script, 90);
	report = script_report(&script);
	assert_int_equal(report->process_count, 2);
	assert_string_equal(report->processes[0].name, "renamed");
	assert_string_equal(report->processes[0].python, ""); /* it is not that any more */
	assert_int_equal(report->processes[0].start_ns, 10);
	assert_int_equal(report->processes[0].end_ns, 50);
	assert_string_equal(report->processes[1].name, "second");
	assert_int_equal(report->processes[1].end_ns, 90);
	assert_int_equal(report->thread_count, 2);
	assert_int_equal(report->threads[0].wall_ns, 30);
	assert_int_equal(report->threads[1].wall_ns, 20);
	assert_int_equal(wall_of(report, 2, "", "python", CPU), 10);
	assert_int_equal(wall_of(report, 2, "", "unknown", CPU), 10);
	assert_int_equal(report->warning_count, 1);
	rls_report_free(report);
	script_end(&script);
}

/* A process that was only seen to die has no part in the recording. */
static void test_ends_of_the_unknown(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin_python(&script);
	script_add(&script, RLS_EVENT_THREAD_END, 20, 7, 7);
	script_add(&script, RLS_EVENT_PROCESS_END, 20, 7, 0);
	script_add(&script, RLS_EVENT_THREAD_END, 20, 1, 8);
	add_end(&script, 40);
	report = script_report(&script);
	assert_int_equal(report->process_count, 1);
	assert_int_equal(report->thread_count, 1);
	assert_int_equal(report->warning_count, 0);
	rls_report_free(report);
	script_end(&script);
}

/* Nothing but what belongs to the recording. */
static void test_a_trace_of_nothing(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_end(&script, 40);
	report = script_report(&script);
	assert_true(report->complete);
	assert_int_equal(report->process_count, 0);
	assert_int_equal(report->end_ns, report->start_ns);
	assert_int_equal(report->warning_count, 0);
	rls_report_free(report);
	script_end(&script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hits_belong_to_what_ends_with_them),
		cmocka_unit_test(test_hits_reach_back_over_operations_latest_first),
		cmocka_unit_test(test_hits_under_a_busy_gpu_are_said_apart),
		cmocka_unit_test(test_many_spans_between_reports),
		cmocka_unit_test(test_who_waits_for_hits_of_others_waits_longer),
		cmocka_unit_test(test_off_cpu_is_shared_between_parts),
		cmocka_unit_test(test_a_wait_on_the_gpu_is_not_busy),
		cmocka_unit_test(test_work_is_filed_where_it_was_launched),
		cmocka_unit_test(test_late_launches),
		cmocka_unit_test(test_a_kernel_that_starts_at_the_lifes_end_is_not_in_it),
		cmocka_unit_test(test_smi_windows_are_exact_sixths),
		cmocka_unit_test(test_impossible_gpu_records_are_left_out),
		cmocka_unit_test(test_gpu_outlives_the_threads),
		cmocka_unit_test(test_transitions),
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_a_wait_is_the_last_instant),
		cmocka_unit_test(test_ends_of_the_unknown),
		cmocka_unit_test(test_a_trace_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
