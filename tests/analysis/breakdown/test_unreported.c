/* Time of which no probe tells: divided by samples where there are any, and unknown where there are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/writers/write.h"
#include "tests/analysis/breakdown/script.h"

#define MS 1000000ULL

#define THREAD 2 /* the process has this one alone, but where a test adds others */

static void begin(struct script *script)
{
	script_begin(script);
	add_process(script, 0, 1, "p");
	add_thread(script, 0, 1, THREAD);
}

static void add_category_sample(struct script *script, uint64_t time_ns, uint32_t tid,
				enum rls_category category, uint64_t waited_ns)
{
	struct rls_event *event = script_add(script, RLS_EVENT_SHARE, time_ns, 1, tid);

	event->share.category = category;
	event->share.waited_ns = waited_ns;
}

/* At every millisecond to the 40th; each fourth is of another category. */
static void add_forty_samples(struct script *script, enum rls_category category,
			      enum rls_category fourth)
{
	for (uint64_t at = 1; at <= 40; at++)
		add_category_sample(script, at * MS, THREAD, at % 4 ? category : fourth, 0);
}

static struct rls_report *end(struct script *script)
{
	struct rls_report *report;

	add_end(script, 100 * MS);
	report = script_report_alone(script);
	script_end(script);
	return report;
}

static uint64_t sum_of(const struct rls_report *report, uint32_t tid)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < report->breakdown_count; i++)
		ns += report->breakdown[i].tid == tid ? report->breakdown[i].wall_ns : 0;
	return ns;
}

static const struct rls_breakdown_row *row_of(const struct rls_report *report, uint32_t tid,
					      const char *category)
{
	return find_row(report, 1, tid, "", "", category, RLS_RESOURCE_CPU);
}

/* Three of four samples are native; it ran for 40 ms, and waited in Python. */
static void test_a_thread_without_hits_is_what_its_samples_are(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_forty_samples(&script, RLS_CATEGORY_NATIVE, RLS_CATEGORY_PYTHON);
	add_category_sample(&script, 99 * MS, THREAD, RLS_CATEGORY_PYTHON, 50 * MS);
	add_off_cpu(&script, 99 * MS, 1, THREAD, 60 * MS);
	report = end(&script);
	assert_int_equal(sum_of(report, THREAD), 100 * MS);
	assert_int_equal(row_of(report, THREAD, "native")->on_cpu_ns, 30 * MS);
	assert_int_equal(row_of(report, THREAD, "native")->wall_ns, 30 * MS);
	assert_int_equal(row_of(report, THREAD, "python")->on_cpu_ns, 10 * MS);
	assert_int_equal(row_of(report, THREAD, "python")->wall_ns, 70 * MS);
	assert_int_equal(row_of(report, THREAD, "native")->method, RLS_METHOD_SAMPLED);
	assert_in_range(row_of(report, THREAD, "native")->error_ns, 1 * MS, 20 * MS);
	assert_int_equal(report->transition_count, 0);
	rls_report_free(report);
}

/* Its first hit comes late; what was before it is no gap in what was traced, so counts stay exact. */
static void test_before_the_first_hit_samples_tell(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_category_sample(&script, 10 * MS, THREAD, RLS_CATEGORY_PYTHON, 0);
	add_category(&script, 50 * MS, 1, THREAD, RLS_CATEGORY_PYTHON);
	add_category(&script, 60 * MS, 1, THREAD, RLS_CATEGORY_BACKEND);
	add_category(&script, 70 * MS, 1, THREAD, RLS_CATEGORY_PYTHON);
	report = end(&script);
	assert_in_range(row_of(report, THREAD, "python")->wall_ns, 85 * MS, 90 * MS);
	assert_in_range(row_of(report, THREAD, "backend")->wall_ns, 10 * MS, 15 * MS);
	assert_int_equal(sum_of(report, THREAD), 100 * MS);
	assert_int_equal(report->transition_count, 2);
	for (size_t i = 0; i < report->transition_count; i++) {
		assert_int_equal(report->transitions[i].count, 1);
		assert_int_equal(report->transitions[i].method, RLS_METHOD_TRACED);
		assert_int_equal(report->transitions[i].count_error, 0);
	}
	rls_report_free(report);
}

static void test_without_samples_it_stays_unknown(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_category(&script, 50 * MS, 1, THREAD, RLS_CATEGORY_PYTHON);
	report = end(&script);
	assert_int_equal(row_of(report, THREAD, "unknown")->wall_ns, 50 * MS);
	assert_int_equal(row_of(report, THREAD, "unknown")->method, RLS_METHOD_TRACED);
	assert_int_equal(row_of(report, THREAD, "unknown")->error_ns, 0);
	rls_report_free(report);
}

/* A brief thread is as the others that meet no probe; of a thread that does, nothing follows for it. */
static void test_who_was_never_sampled_is_as_its_like(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_thread(&script, 0, 1, 3);
	add_thread(&script, 0, 1, 4);
	add_category(&script, 0, 1, THREAD, RLS_CATEGORY_BACKEND);
	add_category_sample(&script, 10 * MS, THREAD, RLS_CATEGORY_BACKEND, 0);
	add_category_sample(&script, 10 * MS, 3, RLS_CATEGORY_SIMULATOR, 0);
	script_add(&script, RLS_EVENT_THREAD_END, 5 * MS, 1, 4);
	report = end(&script);
	assert_int_equal(row_of(report, 4, "simulator")->wall_ns, 5 * MS);
	assert_int_equal(row_of(report, 4, "simulator")->method, RLS_METHOD_SAMPLED);
	assert_in_range(row_of(report, 4, "simulator")->error_ns, 2 * MS, 5 * MS);
	rls_report_free(report);
}

/* That nothing was found at a sample says nothing where others found something. */
static void test_samples_of_nothing_count_for_nothing(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_forty_samples(&script, RLS_CATEGORY_UNKNOWN, RLS_CATEGORY_PYTHON);
	report = end(&script);
	assert_int_equal(row_of(report, THREAD, "python")->wall_ns, 100 * MS);
	rls_report_free(report);
}

/* The trace says Python; a quarter of the samples, and of the waiting, is in code without a role. */
static void test_python_has_native_code_by_samples(void **unused)
{
	const struct rls_breakdown_row *python, *native;
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_category(&script, 0, 1, THREAD, RLS_CATEGORY_PYTHON);
	add_forty_samples(&script, RLS_CATEGORY_PYTHON, RLS_CATEGORY_NATIVE);
	add_category_sample(&script, 60 * MS, THREAD, RLS_CATEGORY_PYTHON, 15 * MS);
	add_category_sample(&script, 61 * MS, THREAD, RLS_CATEGORY_NATIVE, 5 * MS);
	add_off_cpu(&script, 90 * MS, 1, THREAD, 20 * MS);
	report = end(&script);
	python = row_of(report, THREAD, "python");
	native = row_of(report, THREAD, "native");
	assert_int_equal(sum_of(report, THREAD), 100 * MS);
	assert_int_equal(native->on_cpu_ns, 20 * MS);
	assert_int_equal(native->wall_ns, 25 * MS);
	assert_int_equal(python->on_cpu_ns, 60 * MS);
	assert_int_equal(native->method, RLS_METHOD_SAMPLED);
	assert_int_equal(python->method, RLS_METHOD_SAMPLED);
	assert_in_range(native->error_ns, 5 * MS, 40 * MS);
	assert_int_equal(report->transition_count, 0);
	rls_report_free(report);
}

/* Where no sample says otherwise, what was traced stays exact. */
static void test_python_alone_stays_traced(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_category(&script, 0, 1, THREAD, RLS_CATEGORY_PYTHON);
	add_forty_samples(&script, RLS_CATEGORY_PYTHON, RLS_CATEGORY_PYTHON);
	report = end(&script);
	assert_int_equal(row_of(report, THREAD, "python")->method, RLS_METHOD_TRACED);
	assert_int_equal(row_of(report, THREAD, "python")->error_ns, 0);
	rls_report_free(report);
}

/* Between windows too samples of native code are native time, although the traced part of the recording
 * is Python. */
static void test_between_windows_native_code_is_native_too(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_category(&script, 0, 1, THREAD, RLS_CATEGORY_PYTHON);
	for (uint64_t at = 1; at < 100; at++) {
		if (at == 50)
			script_add(&script, RLS_EVENT_WINDOW, at * MS, 0, 0)->window.open = false;
		add_category_sample(&script, at * MS, THREAD,
				    at % 2 ? RLS_CATEGORY_PYTHON : RLS_CATEGORY_NATIVE, 0);
	}
	report = end(&script);
	assert_int_equal(sum_of(report, THREAD), 100 * MS);
	assert_in_range(row_of(report, THREAD, "native")->wall_ns, 45 * MS, 55 * MS);
	rls_report_free(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thread_without_hits_is_what_its_samples_are),
		cmocka_unit_test(test_before_the_first_hit_samples_tell),
		cmocka_unit_test(test_without_samples_it_stays_unknown),
		cmocka_unit_test(test_who_was_never_sampled_is_as_its_like),
		cmocka_unit_test(test_samples_of_nothing_count_for_nothing),
		cmocka_unit_test(test_python_has_native_code_by_samples),
		cmocka_unit_test(test_python_alone_stays_traced),
		cmocka_unit_test(test_between_windows_native_code_is_native_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
