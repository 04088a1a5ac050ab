/* What --verify says of a report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/commands/shared/cross_check.h"

static char *text_of(struct rls_check_row *rows, size_t count)
{
	struct rls_thread_entry threads[] = {{.pid = 1, .on_cpu_ns = 3000},
					     {.pid = 2, .on_cpu_ns = 1000}};
	const struct rls_report report = {
		.checks = rows, .check_count = count, .threads = threads, .thread_count = 2};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	assert_int_equal(rls_cross_check_write(&report, out), 0);
	fclose(out);
	return text;
}

static void processes_are_added_up(void **state)
{
	struct rls_check_row rows[] = {
		{.pid = 1,
		 .category = RLS_CATEGORY_PYTHON,
		 .traced_ns = 500,
		 .sampled_ns = 400,
		 .unseen_ns = 30,
		 .probes_ns = 10,
		 .variance_ns2 = 16},
		{.pid = 2,
		 .category = RLS_CATEGORY_PYTHON,
		 .traced_ns = 100,
		 .sampled_ns = 200,
		 .unseen_ns = 10,
		 .variance_ns2 = 9},
		{.pid = 1,
		 .category = RLS_CATEGORY_BACKEND,
		 .traced_ns = 400,
		 .sampled_ns = 400,
		 .unseen_ns = 5,
		 .probes_ns = 20},
	};
	char *text = text_of(rows, 3);

	assert_string_equal(text, "verify: backend: traced 40.0 %, sampled 40.0 % (± 0.0), unseen "
				  "0.50 %, probes 2.00 %\n"
				  "verify: python: traced 60.0 %, sampled 60.0 % (± 1.0), unseen "
				  "4.00 %, probes 1.00 %\n"
				  "verify: all: traced 100.0 %, sampled 100.0 % (± 1.0), unseen "
				  "4.50 %, probes 3.00 %\n"
				  "verify: compares the 25.0 % of running time in which everything "
				  "was traced; unseen is what ran in other code than the trace "
				  "says, or while it says unknown\n");
	free(text);
}

static void nothing_sampled_is_said(void **state)
{
	struct rls_check_row row = {.pid = 1, .category = RLS_CATEGORY_PYTHON, .traced_ns = 500};
	char *text = text_of(&row, 1);

	assert_string_equal(text, "verify: no thread was sampled running while it was traced\n");
	free(text);
	text = text_of(NULL, 0);
	assert_non_null(strstr(text, "no thread was sampled"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_are_added_up),
		cmocka_unit_test(nothing_sampled_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
