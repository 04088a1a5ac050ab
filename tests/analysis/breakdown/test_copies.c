/* Copies added up: of lines, and of what operations launched on GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/analysis/breakdown/script.h"

#define SECOND 1000000000ull

static void add_copies(struct script *script, uint64_t time_ns, uint32_t line, uint64_t copies,
		       uint64_t bytes)
{
	struct rls_event *event = script_add(script, RLS_EVENT_COPY_LINE, time_ns, 1, 0);

	event->copy_line.of = (struct rls_memory_line){
		.file = script_string(script, "/job/a.py"),
		.function = script_string(script, "f"),
		.line = line,
		.operation = script_string(script, "update"),
	};
	event->copy_line.kind = RLS_COPY_H2H;
	event->copy_line.copies = copies;
	event->copy_line.bytes = bytes;
}

static void add_gpu_copy(struct script *script, uint64_t time_ns, enum rls_copy_kind kind,
			 uint64_t correlation, uint64_t bytes)
{
	struct rls_event *event = script_add(script, RLS_EVENT_GPU_COPY, time_ns, 1, 0);

	event->gpu_copy.kind = kind;
	event->gpu_copy.correlation = correlation;
	event->gpu_copy.bytes = bytes;
}

static const struct rls_copy_row *copy_row(const struct rls_report *report, enum rls_copy_kind kind,
					   uint32_t line, const char *operation)
{
	for (size_t i = 0; i < report->copy_count; i++)
		if (report->copies[i].kind == kind && report->copies[i].line == line &&
		    !strcmp(report->copies[i].operation, operation))
			return &report->copies[i];
	return NULL;
}

/* Of lines the last event counts; a GPU's copies belong to what launched them, also where that is reported later. */
static void test_copies(void **unused)
{
	struct rls_report *report;
	struct script script;
	const struct rls_copy_row *row;

	script_begin(&script);
	add_process(&script, 0, 1, "job");
	add_thread(&script, 0, 1, 1);
	add_copies(&script, SECOND, 3, 1, 100);
	add_copies(&script, SECOND, 4, 7, 70);
	add_copies(&script, 2 * SECOND, 3, 5, 500);
	add_operation(&script, SECOND, 1, 1, "step");
	add_launch(&script, 2 * SECOND, 1, 1, 5);
	add_gpu_copy(&script, 2 * SECOND + 1, RLS_COPY_H2D, 5, 1000);
	add_gpu_copy(&script, 2 * SECOND + 2, RLS_COPY_H2D, 5, 1);
	add_gpu_copy(&script, 2 * SECOND + 3, RLS_COPY_D2H, 6, 64);
	add_launch(&script, 2 * SECOND + 4, 1, 1, 6);
	add_gpu_copy(&script, 3 * SECOND, RLS_COPY_D2D, 0, INT64_MAX);
	add_gpu_copy(&script, 3 * SECOND, RLS_COPY_D2D, 99, INT64_MAX);
	add_end(&script, 4 * SECOND);
	report = script_report(&script);
	assert_true(rls_report_has_memory(report));
	assert_int_equal(report->copy_count, 5);
	row = copy_row(report, RLS_COPY_H2H, 3, "update");
	assert_int_equal(row->copies, 5);
	assert_int_equal(row->bytes, 500);
	assert_float_equal(row->bytes_per_s, 125, 1e-9);
	assert_string_equal(row->file, "/job/a.py");
	assert_string_equal(row->function, "f");
	row = copy_row(report, RLS_COPY_H2D, 0, "step");
	assert_int_equal(row->copies, 2);
	assert_int_equal(row->bytes, 1001);
	row = copy_row(report, RLS_COPY_D2H, 0, "step");
	assert_int_equal(row->bytes, 64);
	row = copy_row(report, RLS_COPY_D2D, 0, "");
	assert_int_equal(row->copies, 2);
	assert_true(row->bytes >= INT64_MAX);
	rls_report_free(report);
	script_end(&script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
