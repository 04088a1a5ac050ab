/* Samples added up: lines, kinds and stacks all hold the same time, functions hold what is under
 * them, and the stated errors are those of independent samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/event/sample_kind.h"
#include "tests/analysis/breakdown/script.h"

#define SAMPLES 400
#define FRAMES 40
#define TICK_NS 5000000ull

struct sums {
	uint64_t ns, root_ns, count;
	double variance_ns2;
};

static void add_frames(struct script *script)
{
	char name[16];

	for (uint32_t id = 1; id <= FRAMES; id++) {
		struct rls_event *frame = script_add(script, RLS_EVENT_FRAME, 0, 0, 0);

		/* One root; the same function recurs in many places. */
		snprintf(name, sizeof(name), "f%d", id == 1 ? 0 : 1 + rand() % 9);
		frame->frame.id = id;
		frame->frame.parent = id == 1 ? 0 : 1 + (uint32_t)rand() % (id - 1);
		frame->frame.line = id == 1 ? 1 : (uint32_t)rand() % 5;
		frame->frame.function = script_string(script, name);
		frame->frame.file = script_string(script, "/a.py");
		frame->frame.native = id > 1 && rand() % 4 == 0;
	}
}

static void add_samples(struct script *script, struct sums *sums)
{
	for (int i = 0; i < SAMPLES; i++) {
		struct rls_event *event =
			script_add(script, RLS_EVENT_SAMPLE, 10 + (uint64_t)i, 1, 1);
		double ns, of;

		event->sample.frame = (uint32_t)rand() % (FRAMES + 1);
		event->sample.kind = rand() % RLS_SAMPLE_KIND_MAX;
		event->sample.code = rand() % RLS_CATEGORY_MAX;
		event->sample.ns = 1 + (uint64_t)rand() % TICK_NS;
		if (rls_sample_kind_waits(event->sample.kind))
			event->sample.every = rand() % 3 ? 0 : 2 + (uint32_t)rand() % 9;
		ns = (double)event->sample.ns;
		of = event->sample.every ? 1 - 1.0 / event->sample.every : 0;
		sums->ns += event->sample.ns;
		sums->root_ns += event->sample.frame ? event->sample.ns : 0;
		sums->count++;
		sums->variance_ns2 +=
			ns * ns * (rls_sample_kind_waits(event->sample.kind) ? of : 1);
		if (i % 50 == 25)
			add_operation(script, 10 + (uint64_t)i, 1, 1, i % 100 == 25 ? "step" : "");
		if (i % 30 == 3)
			add_category(script, 10 + (uint64_t)i, 1, 1, rand() % RLS_CATEGORY_MAX);
	}
}

static uint64_t total_of(const struct rls_sampled_times *times)
{
	return times->python_ns + times->native_ns + times->system_ns + times->waiting_ns;
}

static void check_lines(const struct rls_report *report, const struct sums *sums)
{
	uint64_t ns = 0, count = 0;
	double squares = 0;

	for (size_t i = 0; i < report->line_count; i++) {
		const struct rls_sampled_times *times = &report->lines[i].times;

		assert_int_equal(times->waiting_ns,
				 times->lock_ns + times->io_ns + times->sleep_ns + times->child_ns +
					 times->gpu_ns + times->run_queue_ns + times->other_ns);
		assert_true(times->runtime_ns <= times->python_ns);
		ns += total_of(times);
		count += times->samples;
		squares += (double)times->error_ns * (double)times->error_ns;
	}
	assert_int_equal(ns, sums->ns);
	assert_int_equal(count, sums->count);
	assert_true(fabs(sqrt(squares) / (1.96 * sqrt(sums->variance_ns2)) - 1) < 1e-4);
}

static void check_kinds(const struct rls_report *report, const struct sums *sums)
{
	uint64_t ns = 0, running_ns = 0, checked_ns = 0, stacks_ns = 0;

	for (size_t i = 0; i < report->sample_count; i++) {
		ns += report->samples[i].ns;
		if (!rls_sample_kind_waits(report->samples[i].kind))
			running_ns += report->samples[i].ns;
	}
	for (size_t i = 0; i < report->check_count; i++) {
		const struct rls_check_row *row = &report->checks[i];

		assert_true(row->unseen_ns + row->probes_ns <= row->sampled_ns);
		checked_ns += row->sampled_ns;
	}
	for (size_t i = 0; i < report->sampled_stack_count; i++)
		stacks_ns += report->sampled_stacks[i].ns;
	assert_int_equal(ns, sums->ns);
	assert_int_equal(stacks_ns, sums->ns);
	assert_int_equal(checked_ns, running_ns);
}

static void check_functions(const struct rls_report *report, const struct sums *sums)
{
	uint64_t own_ns = 0, root_ns = 0;

	for (size_t i = 0; i < report->function_count; i++) {
		const struct rls_function_row *row = &report->functions[i];

		assert_true(total_of(&row->times) <= row->total_ns);
		assert_true(row->total_ns <= sums->ns);
		own_ns += row->native ? 0 : total_of(&row->times);
		root_ns += strcmp(row->function, "f0") ? 0 : row->total_ns;
	}
	assert_int_equal(own_ns, sums->ns); /* as lines have it */
	assert_int_equal(root_ns, sums->root_ns);
}

static void test_sums_and_errors(void **unused)
{
	for (unsigned int seed = 1; seed <= 100; seed++) {
		struct rls_report *report;
		struct sums sums = {0};
		struct script script;

		srand(seed);
		script_begin(&script);
		add_process(&script, 0, 1, "python3");
		add_thread(&script, 0, 1, 1);
		add_frames(&script);
		add_samples(&script, &sums);
		add_end(&script, 1000);
		report = script_report_alone(&script);
		check_lines(report, &sums);
		check_kinds(report, &sums);
		check_functions(report, &sums);
		rls_report_free(report);
		script_end(&script);
	}
}

static void add_helper_sample(struct script *script, uint64_t time_ns)
{
	struct rls_event *event = script_add(script, RLS_EVENT_SAMPLE, time_ns, 1, 2);

	event->sample.kind = RLS_SAMPLE_NATIVE;
	event->sample.ns = TICK_NS;
}

/* A thread that never met a probe: held against the trace where there is one. */
static void test_helpers_are_checked_where_tracing_is_on(void **unused)
{
	struct rls_report *report;
	struct script script;
	uint64_t checked_ns = 0;

	script_begin(&script);
	add_process(&script, 0, 1, "python3");
	add_thread(&script, 0, 1, 1);
	add_category(&script, 0, 1, 1, RLS_CATEGORY_PYTHON);
	add_helper_sample(&script, 100);
	script_add(&script, RLS_EVENT_WINDOW, 200, 0, 0)->window.open = false;
	add_helper_sample(&script, 300);
	script_add(&script, RLS_EVENT_WINDOW, 400, 0, 0)->window.open = true;
	add_helper_sample(&script, 500);
	add_end(&script, 1000);
	report = script_report_alone(&script);
	for (size_t i = 0; i < report->check_count; i++)
		checked_ns += report->checks[i].sampled_ns;
	assert_int_equal(checked_ns, 2 * TICK_NS);
	assert_int_equal(report->sample_count, 1);
	assert_int_equal(report->samples[0].ns, 3 * TICK_NS);
	rls_report_free(report);
	script_end(&script);
}

/* One sample may be as long as a number gets, and its error is longer. */
static void test_errors_are_bounded(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_process(&script, 0, 1, "python3");
	add_thread(&script, 0, 1, 1);
	add_category(&script, 0, 1, 1, RLS_CATEGORY_PYTHON);
	script_add(&script, RLS_EVENT_SAMPLE, 100, 1, 1)->sample.ns = INT64_MAX;
	add_end(&script, 1000);
	report = script_report_alone(&script);
	assert_int_equal(report->line_count, 1);
	assert_int_equal(report->lines[0].times.error_ns, INT64_MAX);
	assert_int_equal(report->function_count, 1);
	assert_int_equal(report->functions[0].times.error_ns, INT64_MAX);
	assert_int_equal(report->sample_count, 1);
	assert_int_equal(report->samples[0].error_ns, INT64_MAX);
	assert_int_equal(report->check_count, 1);
	assert_int_equal(report->checks[0].error_ns, INT64_MAX);
	rls_report_free(report);
	script_end(&script);
}

static void add_place(struct script *script, uint32_t id, uint32_t line)
{
	struct rls_event *frame = script_add(script, RLS_EVENT_FRAME, 0, 0, 0);

	frame->frame.id = id;
	frame->frame.line = line;
	frame->frame.function = script_string(script, "f");
	frame->frame.file = script_string(script, "/a.py");
}

static void add_sample(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t frame,
		       enum rls_sample_kind kind, uint64_t ns)
{
	struct rls_event *event = script_add(script, RLS_EVENT_SAMPLE, time_ns, pid, pid);

	event->sample.frame = frame;
	event->sample.kind = kind;
	event->sample.ns = ns;
}

static uint64_t error_of(const struct rls_report *report, uint32_t pid, uint32_t line)
{
	for (size_t i = 0; i < report->line_count; i++) {
		if (report->lines[i].pid == pid && report->lines[i].line == line)
			return report->lines[i].times.error_ns;
	}
	fail();
	return 0;
}

/* A line that only waited may have run between two samples, but no longer than its process did. */
static void test_few_samples_hide_some(void **unused)
{
	const double sample_ns = 1.96 * (double)TICK_NS;
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	for (uint32_t pid = 1; pid <= 2; pid++) {
		add_process(&script, 0, pid, "python3");
		add_thread(&script, 0, pid, pid);
		add_category(&script, 0, pid, pid, RLS_CATEGORY_PYTHON);
	}
	add_place(&script, 1, 1);
	add_place(&script, 2, 2);
	for (uint64_t i = 1; i <= 7; i++)
		add_sample(&script, i * 100 * TICK_NS, 1, 1, RLS_SAMPLE_PYTHON, TICK_NS);
	add_sample(&script, 900 * TICK_NS, 1, 2, RLS_SAMPLE_WAIT_SLEEP, 50 * TICK_NS);
	script_add(&script, RLS_EVENT_OFF_CPU, 999 * TICK_NS, 2, 2)->off_cpu.ns = 999 * TICK_NS;
	add_sample(&script, 999 * TICK_NS, 2, 2, RLS_SAMPLE_WAIT_LOCK, 999 * TICK_NS);
	add_end(&script, 999 * TICK_NS + TICK_NS / 10);
	report = script_report_alone(&script);
	assert_true(fabs((double)error_of(report, 1, 1) / (sample_ns * sqrt(7 + 2)) - 1) < 1e-6);
	assert_true(fabs((double)error_of(report, 1, 2) / (sample_ns * sqrt(2)) - 1) < 1e-6);
	assert_in_range(error_of(report, 2, 2), TICK_NS / 10, TICK_NS / 10 + 2);
	rls_report_free(report);
	script_end(&script);
}

/* Of all that a count may be by chance, 95 % have the mean in their interval, where few are expected too. */
static void test_intervals_of_small_counts_hold(void **unused)
{
	for (double mean = 0.25; mean < 40; mean += 0.25) {
		double chance = exp(-mean), held = 0;

		for (int count = 0; count < 200; count++) {
			double ns = (double)count * (double)TICK_NS;
			double error_ns = (double)rls_interval_95_ns(ns * (double)TICK_NS,
								     sqrt(2) * (double)TICK_NS);

			if (fabs(ns - mean * (double)TICK_NS) <= error_ns)
				held += chance;
			chance *= mean / (count + 1);
		}
		assert_true(held >= 0.93);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_and_errors),
		cmocka_unit_test(test_helpers_are_checked_where_tracing_is_on),
		cmocka_unit_test(test_errors_are_bounded),
		cmocka_unit_test(test_few_samples_hide_some),
		cmocka_unit_test(test_intervals_of_small_counts_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
