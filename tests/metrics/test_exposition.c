/* The page of a snapshot: as in the golden file, exact, bounded, and never going back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/metrics/snapshot_maker.h"
#include "userspace/metrics/exposition.h"
#include "userspace/metrics/label_set.h"

static const struct rls_exposition_outlets outlets = {
	.realtime_ns = 1700000000123456789,
	.pages_served = 3,
	.requests_refused = 1,
};

static struct rls_exposition *new_exposition(void)
{
	struct rls_exposition *exposition;

	assert_int_equal(rls_exposition_new(&exposition), 0);
	return exposition;
}

static char *write_page(struct rls_exposition *exposition, const struct rls_snapshot *snapshot)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(rls_exposition_write(exposition, snapshot, &outlets, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static char *page_of(const struct rls_snapshot *snapshot)
{
	struct rls_exposition *exposition = new_exposition();
	char *text = write_page(exposition, snapshot);

	rls_exposition_free(exposition);
	return text;
}

static void is_the_golden_page(void **state)
{
	char *text = page_of(snapshot_make(3));
	char expected[64 * 1024];
	FILE *file = fopen("expected.prom", "re");
	size_t bytes;

	if (getenv("RLS_UPDATE_GOLDEN")) {
		FILE *update = fopen("expected.prom", "we");

		fputs(text, update);
		fclose(update);
	}
	assert_non_null(file);
	bytes = fread(expected, 1, sizeof(expected) - 1, file);
	expected[bytes] = '\0';
	fclose(file);
	assert_string_equal(text, expected);
	free(text);
}

static void assert_has(const char *page, const char *line)
{
	if (strstr(page, line))
		return;
	print_error("%s", page);
	fail_msg("no line '%s'", line);
}

static void seconds_are_exact(void **state)
{
	struct rls_snapshot_job job = {.id = 1,
				       .name = "j",
				       .container = "",
				       .unit = "",
				       .cgroup = "",
				       .command = "",
				       .python = ""};
	struct rls_snapshot snapshot = {.version = "v", .jobs = &job, .job_count = 1};
	static const struct {
		uint64_t ns;
		const char *line;
	} cases[] = {
		{0, "rlscope_overhead_seconds_total{job=\"j\"} 0\n"},
		{1, "rlscope_overhead_seconds_total{job=\"j\"} 0.000000001\n"},
		{1500000000, "rlscope_overhead_seconds_total{job=\"j\"} 1.5\n"},
		{10 * 1000000000ULL, "rlscope_overhead_seconds_total{job=\"j\"} 10\n"},
		{1020000000, "rlscope_overhead_seconds_total{job=\"j\"} 1.02\n"},
		{UINT64_MAX, "rlscope_overhead_seconds_total{job=\"j\"} 18446744073.709551615\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *page;

		job.overhead_ns = cases[i].ns;
		page = page_of(&snapshot);
		assert_has(page, cases[i].line);
		free(page);
	}
}

/* More names than series: what is beyond goes to "other", with nothing lost. */
static void folds_into_other(void **state)
{
	enum { COUNT = RLS_LABEL_OPERATIONS_MAX + 50 };
	static struct rls_snapshot_row rows[COUNT];
	static struct rls_snapshot_transition transitions[COUNT];
	static char names[COUNT][16];
	struct rls_snapshot_job job = {.id = 1,
				       .name = "j",
				       .container = "",
				       .unit = "",
				       .cgroup = "",
				       .command = "",
				       .python = "",
				       .rows = rows,
				       .row_count = COUNT,
				       .transitions = transitions,
				       .transition_count = COUNT};
	struct rls_snapshot snapshot = {.version = "v", .jobs = &job, .job_count = 1};
	char *page;

	for (size_t i = 0; i < COUNT; i++) {
		snprintf(names[i], sizeof(names[i]), "op%zu", i);
		rows[i] = (struct rls_snapshot_row){.phase = "",
						    .operation = names[i],
						    .category = RLS_CATEGORY_PYTHON,
						    .wall_ns = 1000000000};
		transitions[i] = (struct rls_snapshot_transition){names[i], RLS_CATEGORY_PYTHON,
								  RLS_CATEGORY_BACKEND, 2};
	}
	page = page_of(&snapshot);
	assert_has(page, "operation=\"op199\",category=\"python\",resource=\"cpu\"} 1\n");
	assert_null(strstr(page, "op200"));
	assert_has(page, "operation=\"other\",category=\"python\",resource=\"cpu\"} 50\n");
	assert_has(page, "operation=\"other\",from=\"python\",to=\"backend\"} 100\n");
	free(page);
}

static void leaves_jobs_out_when_full(void **state)
{
	enum { JOBS = 12, ROWS = 6000, OPERATIONS = 200, PHASES = 5 };
	static struct rls_snapshot_row rows[ROWS];
	static char names[OPERATIONS][16], phases[PHASES][16];
	struct rls_snapshot_job jobs[JOBS];
	struct rls_snapshot snapshot = {.version = "v", .jobs = jobs, .job_count = JOBS};
	size_t lines = 0;
	char *page;

	for (size_t i = 0; i < ROWS; i++) {
		snprintf(names[i % OPERATIONS], sizeof(names[0]), "o%zu", i % OPERATIONS);
		snprintf(phases[i / OPERATIONS % PHASES], sizeof(phases[0]), "p%zu",
			 i / OPERATIONS % PHASES);
		rows[i] = (struct rls_snapshot_row){
			.phase = phases[i / OPERATIONS % PHASES],
			.operation = names[i % OPERATIONS],
			.category = (enum rls_category)(i / OPERATIONS / PHASES),
			.wall_ns = 1};
	}
	for (size_t i = 0; i < JOBS; i++)
		jobs[i] = (struct rls_snapshot_job){.id = i + 1,
						    .name = "same",
						    .container = "",
						    .unit = "",
						    .cgroup = "",
						    .command = "",
						    .python = "",
						    .rows = rows,
						    .row_count = ROWS};
	page = page_of(&snapshot);
	for (const char *at = page; *at; at++)
		lines += *at == '\n';
	assert_in_range(lines, 8 * ROWS, RLS_EXPOSITION_SERIES_MAX + 100);
	assert_has(page, "rlscope_jobs_omitted 4\n");
	free(page);
}

/* The value of the line that begins so; -1 when there is none. */
static double value_of(const char *page, const char *line, size_t length)
{
	for (const char *at = page; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, line, length))
			return strtod(at + length, NULL);
	}
	return -1;
}

/* Every counter of a page is on the next one too, at least as large, whatever came between. */
static void counters_never_go_back(void **state)
{
	struct rls_exposition *exposition = new_exposition();
	char *before = write_page(exposition, snapshot_make(1));

	for (uint64_t step = 2; step < 6; step++) {
		char *after = write_page(exposition, snapshot_make(step));

		for (const char *line = before, *end; (end = strchr(line, '\n')); line = end + 1) {
			const char *value = end;

			while (value > line && value[-1] != ' ')
				value--;
			if (*line == '#' || !memmem(line, (size_t)(value - line), "_total", 6))
				continue;
			assert_true(value_of(after, line, (size_t)(value - line)) >=
				    strtod(value, NULL));
		}
		free(before);
		before = after;
	}
	free(before);
	rls_exposition_free(exposition);
}

static void nonsense_is_left_out(void **state)
{
	struct rls_snapshot_row rows[] = {
		{"", "a", RLS_CATEGORY_MAX, RLS_RESOURCE_CPU, RLS_METHOD_TRACED, 5, 5, 5},
		{"", "b", RLS_CATEGORY_PYTHON, RLS_RESOURCE_MAX, RLS_METHOD_TRACED, 5, 5, 5},
		{"", "c", RLS_CATEGORY_PYTHON, RLS_RESOURCE_CPU, RLS_METHOD_SCALED, UINT64_MAX, 5,
		 5},
		{"", "c", RLS_CATEGORY_PYTHON, RLS_RESOURCE_CPU, RLS_METHOD_TRACED, 1, 5, 5},
	};
	struct rls_snapshot_job job = {.id = 1,
				       .name = "j",
				       .container = "",
				       .unit = "",
				       .cgroup = "",
				       .command = "",
				       .python = "",
				       .rows = rows,
				       .row_count = 4};
	struct rls_snapshot snapshot = {.version = "v", .jobs = &job, .job_count = 1};
	char *page = page_of(&snapshot);

	assert_null(strstr(page, "operation=\"a\""));
	assert_null(strstr(page, "operation=\"b\""));
	assert_has(page,
		   "operation=\"c\",category=\"python\",resource=\"cpu\"} 18446744073.709551615\n");
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_the_golden_page),
		cmocka_unit_test(seconds_are_exact),
		cmocka_unit_test(folds_into_other),
		cmocka_unit_test(leaves_jobs_out_when_full),
		cmocka_unit_test(counters_never_go_back),
		cmocka_unit_test(nonsense_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
