/* What ran and was not traced is named: libraries with a role that no call was seen into, or that ran while the trace
 * said python, and libraries without a role in which much ran, with the option that traces them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/report/library_names.h"
#include "tests/analysis/breakdown/script.h"

#define TICK_NS 5000000ull
#define TICKS 100
#define END_NS (TICKS * TICK_NS)
#define CV2 "/v/site-packages/cv2/cv2.abi3.so"
#define TREE "/v/site-packages/sklearn/tree/_tree.cpython-311-x86_64-linux-gnu.so"
#define SORT "/v/site-packages/sklearn/utils/_sorting.cpython-311-x86_64-linux-gnu.so"
#define NUMPY "/v/site-packages/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so"
#define JAX "/v/site-packages/jaxlib/libjax_common.so"
#define ALE "/v/site-packages/ale_py/_ale_py.cpython-311-x86_64-linux-gnu.so"

static uint32_t frames;

static void begin(struct script *script)
{
	frames = 0;
	script_begin(script);
	add_process(script, 0, 1, "python3");
	add_thread(script, 0, 1, 1);
	add_category(script, 0, 1, 1, RLS_CATEGORY_PYTHON);
}

static void add_library(struct script *script, const char *path, const char *role, uint32_t sites)
{
	struct rls_event *event = script_add(script, RLS_EVENT_LIBRARY, 0, 1, 0);

	event->library.path = script_string(script, path);
	event->library.role = script_string(script, role);
	event->library.sites = sites;
}

/* Samples in functions of the library, each in one of its own, from tick `first` on; path NULL: in
 * the interpreter's loop. */
static void add_samples(struct script *script, uint32_t tid, const char *path, int first, int count)
{
	for (int i = first; i < first + count; i++) {
		struct rls_event *event;
		char name[16];

		if (path) {
			event = script_add(script, RLS_EVENT_FRAME, 0, 0, 0);
			snprintf(name, sizeof(name), "0x%x", i);
			event->frame.id = ++frames;
			event->frame.function = script_string(script, name);
			event->frame.file = script_string(script, path);
			event->frame.native = true;
		}
		event = script_add(script, RLS_EVENT_SAMPLE, (uint64_t)i * TICK_NS + 1, 1, tid);
		event->sample.frame = path ? frames : 0;
		event->sample.kind = path ? RLS_SAMPLE_NATIVE : RLS_SAMPLE_PYTHON;
		event->sample.ns = TICK_NS;
	}
}

static struct rls_report *end(struct script *script)
{
	struct rls_report *report;

	add_end(script, END_NS);
	report = script_report_alone(script);
	script_end(script);
	return report;
}

static void expect_one(const struct rls_report *report, const char *warning)
{
	assert_int_equal(report->warning_count, 1);
	assert_string_equal(report->warnings[0], warning);
}

static void functions_of_a_library_are_summed(void **unused)
{
	const struct rls_sampled_library_row *row;
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_samples(&script, 1, CV2, 0, 75);
	add_samples(&script, 1, NULL, 75, 25);
	report = end(&script);
	assert_int_equal(report->sampled_library_count, 1);
	row = report->sampled_libraries;
	assert_string_equal(row->path, CV2);
	assert_string_equal(row->role, "");
	assert_int_equal(row->samples, 75);
	assert_int_equal(row->ns, 75 * TICK_NS);
	assert_int_equal(row->python_ns, row->ns);
	assert_int_equal(row->unknown_ns, 0);
	assert_true(row->percent == 75);
	assert_true(row->error_ns > 16 * TICK_NS && row->error_ns < 18 * TICK_NS);
	expect_one(report,
		   "75% of the samples of running code are in cv2.abi3.so, without a role: only "
		   "samples tell its time; --native 'cv2*.so' traces it");
	rls_report_free(report);
}

static void modules_of_a_package_are_suggested_together(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_samples(&script, 1, TREE, 0, 9);
	add_samples(&script, 1, SORT, 9, 20);
	add_samples(&script, 1, NULL, 29, 71);
	report = end(&script);
	assert_int_equal(report->sampled_library_count, 2);
	expect_one(report, "29% of the samples of running code are in "
			   "_sorting.cpython-311-x86_64-linux-gnu.so "
			   "and 1 more of its package, without a role: only samples tell its time; "
			   "--native 'sklearn/*.so' traces it");
	rls_report_free(report);
}

static void what_is_too_fine_for_probes_is_named_alone(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_samples(&script, 1, NUMPY, 0, 28);
	add_samples(&script, 1, NULL, 28, 72);
	report = end(&script);
	assert_int_equal(report->warning_count, 1);
	assert_non_null(strstr(report->warnings[0], "_multiarray_umath"));
	assert_null(strstr(report->warnings[0], "--native"));
	rls_report_free(report);
}

static void little_and_everybodys_is_not_named(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_samples(&script, 1, CV2, 0, 10); /* not above a tenth */
	add_samples(&script, 1, "/lib/x86_64-linux-gnu/libc.so.6", 10, 30);
	add_samples(&script, 1, "/lib/x86_64-linux-gnu/libm.so.6", 40, 30);
	add_samples(&script, 1, "/usr/lib/libpython3.11.so.1.0", 70, 20);
	add_samples(&script, 1, "[vdso]", 90, 10);
	report = end(&script);
	assert_int_equal(report->sampled_library_count, 5);
	assert_int_equal(report->warning_count, 0);
	rls_report_free(report);
}

/* A library that a traced one calls is part of that one's time. */
static void what_a_traced_library_calls_is_not_named(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_library(&script, JAX, "backend", 600);
	add_category(&script, 1, 1, 1, RLS_CATEGORY_BACKEND);
	add_samples(&script, 1, CV2, 0, 90);
	add_samples(&script, 1, JAX, 90, 10);
	report = end(&script);
	assert_int_equal(report->warning_count, 0);
	rls_report_free(report);
}

static void threads_without_rows_count(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_samples(&script, 1, NULL, 0, 30);
	add_samples(&script, 7, "/v/site-packages/x/lib/libpool-6cdc3b4a.so.2.1", 30, 70);
	report = end(&script);
	assert_int_equal(report->sampled_libraries[0].unknown_ns, 70 * TICK_NS);
	assert_int_equal(report->warning_count, 1);
	assert_non_null(strstr(report->warnings[0], "--native 'libpool*.so*'"));
	rls_report_free(report);
}

static void a_role_without_a_call_is_named(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_library(&script, JAX, "backend", 0);
	add_samples(&script, 1, JAX, 0, 62);
	add_samples(&script, 1, NULL, 62, 38);
	report = end(&script);
	expect_one(
		report,
		"no call into a library of the role backend was seen, though 62% of the samples of "
		"running code are in such: libjax_common.so (0 sites)");
	assert_string_equal(report->sampled_libraries[0].role, "backend");
	rls_report_free(report);
}

/* In a job that runs, of the roles whose libraries are loaded in order to be called. */
static void a_role_that_did_not_run_is_named_in_a_busy_job(void **unused)
{
	static const struct {
		const char *path, *role;
		int busy;
		bool warned;
	} cases[] = {
		{ALE, "simulator", 60, true}, {ALE, "simulator", 0, false},
		{JAX, "backend", 60, true},   {"/v/libcudart.so.13", "cuda", 60, false},
		{CV2, "native", 60, false},   {"/v/libpython3.11.so", "python", 60, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rls_report *report;
		struct script script;

		begin(&script);
		add_off_cpu(&script, END_NS - 1, 1, 1, END_NS - 1);
		add_library(&script, cases[i].path, cases[i].role, 53);
		add_samples(&script, 1, NULL, 0, cases[i].busy);
		report = end(&script);
		assert_int_equal(report->warning_count, cases[i].warned);
		if (cases[i].warned)
			assert_non_null(
				strstr(report->warnings[0], rls_library_base(cases[i].path)));
		rls_report_free(report);
	}
}

static void a_role_that_was_seen_is_not_named(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_library(&script, ALE, "simulator", 53);
	add_category(&script, TICK_NS, 1, 1, RLS_CATEGORY_SIMULATOR);
	add_category(&script, TICK_NS + 9, 1, 1, RLS_CATEGORY_PYTHON);
	add_samples(&script, 1, NULL, 0, TICKS);
	report = end(&script);
	assert_int_equal(report->warning_count, 0);
	rls_report_free(report);
}

/* Calls into one library of the role are seen, those into another are not. */
static void a_library_that_runs_as_python_is_named(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_library(&script, "/v/torch/lib/libtorch_python.so", "backend", 3500);
	add_library(&script, JAX, "backend", 0);
	add_category(&script, 50 * TICK_NS, 1, 1, RLS_CATEGORY_BACKEND);
	add_samples(&script, 1, "/v/torch/lib/libtorch_python.so", 50, 50);
	add_samples(&script, 1, JAX, 0, 27);
	add_samples(&script, 1, NULL, 27, 23);
	report = end(&script);
	expect_one(report,
		   "54% of the samples of what the trace says is python are in libjax_common.so "
		   "(backend, 0 sites): not all calls into it are seen");
	rls_report_free(report);
}

static void globs_leave_out_what_differs_between_builds(void **unused)
{
	static const struct {
		const char *path, *glob, *package_glob;
	} cases[] = {
		{CV2, "cv2*.so", "cv2/*.so"},
		{TREE, "_tree*.so", "sklearn/*.so"},
		{"/usr/lib/python3/dist-packages/a/b.so", "b*.so", "a/*.so"},
		{"/v/site-packages/pybullet.cpython-311-x86_64-linux-gnu.so", "pybullet*.so",
		 "pybullet*.so"},
		{"/usr/lib/libarrow_compute.so.2600", "libarrow_compute*.so*",
		 "libarrow_compute*.so*"},
		{"/v/x.libs/libfoo-6cdc3b4a.so.1.2", "libfoo*.so*", "libfoo*.so*"},
		{"/memfd:nle.so (deleted)", "nle*.so", "nle*.so"},
		{"/a/b[1]*?.so", "b?1???*.so", "b?1???*.so"},
		{"/tmp/plain", "plain*.so", "plain*.so"},
		{"", "*.so", "*.so"},
	};
	char glob[RLS_LIBRARY_GLOB_BYTES], longest[1000];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		rls_library_glob(cases[i].path, false, glob);
		assert_string_equal(glob, cases[i].glob);
		rls_library_glob(cases[i].path, true, glob);
		assert_string_equal(glob, cases[i].package_glob);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	rls_library_glob(longest, true, glob);
	assert_true(strlen(glob) < RLS_LIBRARY_GLOB_BYTES);
}

static void files_are_of_kinds(void **unused)
{
	static const struct {
		const char *path;
		enum rls_library_kind kind;
	} cases[] = {
		{CV2, RLS_LIBRARY_MODULE},
		{"/v/site-packages/xgboost/lib/libxgboost.so", RLS_LIBRARY_PLAIN},
		{NUMPY, RLS_LIBRARY_FINE},
		{"/v/site-packages/numpy.libs/libscipy_openblas64_-6cdc3b4a.so", RLS_LIBRARY_FINE},
		{"/v/site-packages/pandas/_libs/algos.cpython-311-x86_64-linux-gnu.so",
		 RLS_LIBRARY_FINE},
		{"/usr/lib/x86_64-linux-gnu/libc.so.6", RLS_LIBRARY_RUNTIME},
		{"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", RLS_LIBRARY_RUNTIME},
		{"/usr/bin/python3.11", RLS_LIBRARY_RUNTIME},
		{"[vdso]", RLS_LIBRARY_RUNTIME},
		{"[compiled]", RLS_LIBRARY_COMPILED},
		{"", RLS_LIBRARY_COMPILED},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (rls_library_kind_of(cases[i].path) != cases[i].kind)
			fail_msg("%s is %d", cases[i].path, rls_library_kind_of(cases[i].path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_a_library_are_summed),
		cmocka_unit_test(modules_of_a_package_are_suggested_together),
		cmocka_unit_test(what_is_too_fine_for_probes_is_named_alone),
		cmocka_unit_test(little_and_everybodys_is_not_named),
		cmocka_unit_test(what_a_traced_library_calls_is_not_named),
		cmocka_unit_test(threads_without_rows_count),
		cmocka_unit_test(a_role_without_a_call_is_named),
		cmocka_unit_test(a_role_that_did_not_run_is_named_in_a_busy_job),
		cmocka_unit_test(a_role_that_was_seen_is_not_named),
		cmocka_unit_test(a_library_that_runs_as_python_is_named),
		cmocka_unit_test(globs_leave_out_what_differs_between_builds),
		cmocka_unit_test(files_are_of_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
