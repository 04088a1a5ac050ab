/* The overview: bounded, exact in its sums, the same however a trace is long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/estimate/estimate_untraced.h"
#include "analysis/timeline/sweep.h"
#include "tests/analysis/breakdown/script.h"

#define NS_PER_S 1000000000ull

static uint64_t sum(const struct rls_overview *overview, const struct rls_scope *scope,
		    enum rls_category category)
{
	uint64_t wall_ns = 0;

	for (size_t i = 0; i < overview->count; i++) {
		if (overview->cells[i].scope == scope && overview->cells[i].category == category)
			wall_ns += overview->cells[i].wall_ns;
	}
	return wall_ns;
}

static void assert_in_order(const struct rls_overview *overview)
{
	uint64_t bucket_ns = 0;

	assert_true(overview->count <= RLS_OVERVIEW_CELLS_MAX);
	for (size_t i = 0; i < overview->count; i++) {
		const struct rls_overview_cell *cell = &overview->cells[i];
		bool same = i && cell[-1].bucket == cell->bucket;

		assert_true(!i || same || cell->bucket > cell[-1].bucket);
		assert_true(cell->gpu_ns <= cell->wall_ns);
		bucket_ns = (same ? bucket_ns : 0) + cell->wall_ns;
		assert_true(bucket_ns <= 1ull << overview->shift);
	}
	if (overview->count)
		assert_true(overview->cells[overview->count - 1].bucket -
				    overview->cells[0].bucket <
			    RLS_OVERVIEW_BUCKETS_MAX);
}

static void test_short_trace_is_exact(void **unused)
{
	struct rls_overview overview = {0};
	struct rls_scope scope = {0};

	assert_int_equal(rls_overview_add(&overview, &scope, RLS_CATEGORY_PYTHON, 5, 7, 0), 0);
	assert_int_equal(rls_overview_add(&overview, &scope, RLS_CATEGORY_BACKEND, 7, 8, 1), 0);
	assert_int_equal(overview.shift, 0);
	assert_int_equal(overview.count, 3);
	assert_int_equal(overview.cells[0].bucket, 5);
	assert_int_equal(overview.cells[2].category, RLS_CATEGORY_BACKEND);
	assert_int_equal(overview.cells[2].gpu_ns, 1);
	rls_overview_free(&overview);
}

/* Half a million spans, half an hour: sums are exact all the same. */
static void test_long_trace_is_bounded(void **unused)
{
	const struct rls_scope scopes[3] = {{0}};
	uint64_t now_ns = 5 * NS_PER_S, expected[3] = {0}, gpu_ns = 0, found_gpu_ns = 0;
	struct rls_overview overview = {0};

	for (uint64_t i = 0; i < 500000; i++) {
		uint64_t length_ns = 100 + i % 7 * 1000 + (i % 25000 == 0) * 90 * NS_PER_S;

		assert_int_equal(rls_overview_add(&overview, &scopes[i % 3], 1 + i % 2, now_ns,
						  now_ns + length_ns, length_ns / 3),
				 0);
		now_ns += length_ns;
		expected[i % 3] += length_ns;
		gpu_ns += length_ns / 3;
	}
	assert_in_order(&overview);
	assert_true(overview.capacity <= RLS_OVERVIEW_CELLS_MAX);
	for (int i = 0; i < 3; i++)
		assert_int_equal(sum(&overview, &scopes[i], 1) + sum(&overview, &scopes[i], 2),
				 expected[i]);
	for (size_t i = 0; i < overview.count; i++)
		found_gpu_ns += overview.cells[i].gpu_ns;
	assert_int_equal(found_gpu_ns, gpu_ns);
	assert_true(overview.count > RLS_OVERVIEW_BUCKETS_MAX / 2);
	rls_overview_free(&overview);
}

/* As many operations as there are spans: a bucket tells so many apart and no more. */
static void test_many_scopes(void **unused)
{
	enum { SCOPES = 100000 };
	struct rls_scope *scopes = calloc(SCOPES, sizeof(*scopes));
	struct rls_overview overview = {0};
	uint64_t found_ns = 0, others_ns;

	for (uint64_t i = 0; i < SCOPES; i++)
		assert_int_equal(rls_overview_add(&overview, &scopes[i], i % RLS_CATEGORY_MAX,
						  i * 1000, i * 1000 + 1000, 0),
				 0);
	assert_in_order(&overview);
	rls_overview_shrink(&overview, RLS_OVERVIEW_CELLS_MIN);
	assert_in_order(&overview);
	assert_true(overview.count <= RLS_OVERVIEW_CELLS_MIN);
	for (size_t i = 0; i < overview.count; i++)
		found_ns += overview.cells[i].wall_ns;
	assert_int_equal(found_ns, SCOPES * 1000ull);
	others_ns = sum(&overview, NULL, RLS_CATEGORY_PYTHON);
	assert_true(others_ns > 0 && others_ns < SCOPES * 1000ull);
	rls_overview_free(&overview);
	free(scopes);
}

static void test_ends_of_time(void **unused)
{
	struct rls_overview overview = {0};

	assert_int_equal(rls_overview_add(&overview, NULL, RLS_CATEGORY_PYTHON, 0, 1, 0), 0);
	assert_int_equal(rls_overview_add(&overview, NULL, RLS_CATEGORY_PYTHON, UINT64_MAX - 1,
					  UINT64_MAX, 0),
			 0);
	assert_int_equal(sum(&overview, NULL, RLS_CATEGORY_PYTHON), 2);
	assert_in_order(&overview);
	rls_overview_free(&overview);
	assert_int_equal(
		rls_overview_add(&overview, NULL, RLS_CATEGORY_PYTHON, 0, UINT64_MAX, UINT64_MAX),
		0);
	assert_int_equal(sum(&overview, NULL, RLS_CATEGORY_PYTHON), UINT64_MAX);
	assert_int_equal(rls_overview_add(&overview, NULL, RLS_CATEGORY_PYTHON, 9, 9, 0), 0);
	rls_overview_free(&overview);
}

/* Through a report: where and what, with the thread's own life as its sum. */
static void test_in_a_report(void **unused)
{
	const struct rls_overview_entry *entry;
	struct rls_report *report;
	struct script script;
	uint64_t busy_ns = 0;

	script_begin(&script);
	add_process(&script, 0, 1, "p");
	add_thread(&script, 0, 1, 1);
	add_category(&script, 0, 1, 1, RLS_CATEGORY_PYTHON);
	add_operation(&script, 100, 1, 1, "step");
	add_phase(&script, 150, 1, "train");
	add_category(&script, 200, 1, 1, RLS_CATEGORY_BACKEND);
	add_gpu(&script, 180, 260, 1, RLS_GPU_KERNEL, 0);
	add_end(&script, 300);
	report = script_report(&script);
	assert_int_equal(report->overview_count, 1);
	entry = report->overviews;
	assert_int_equal(entry->shift, 0);
	assert_int_equal(entry->part_count, 300);
	assert_string_equal(entry->parts[99].operation, "");
	assert_string_equal(entry->parts[100].operation, "step");
	assert_string_equal(entry->parts[149].phase, "");
	assert_string_equal(entry->parts[150].phase, "train");
	assert_int_equal(entry->parts[199].category, RLS_CATEGORY_PYTHON);
	assert_int_equal(entry->parts[200].category, RLS_CATEGORY_BACKEND);
	for (size_t i = 0; i < entry->part_count; i++)
		busy_ns += entry->parts[i].gpu_ns;
	assert_int_equal(busy_ns, 80);
	rls_report_free(report);
	script_end(&script);
}

/* Hundreds of busy threads: each is shown more coarsely, all of them are shown. */
static void test_many_threads(void **unused)
{
	enum { THREADS = 400, SPANS = 2000 };
	struct rls_report *report;
	struct script script;
	size_t parts = 0;

	script_begin(&script);
	add_process(&script, 0, 1, "p");
	for (uint32_t tid = 1; tid <= THREADS; tid++) {
		for (uint64_t i = 0; i < SPANS; i++)
			add_category(&script, 1000 * i, 1, tid, 1 + i % 3);
	}
	add_end(&script, 1000 * SPANS);
	report = script_report(&script);
	assert_int_equal(report->overview_count, THREADS);
	for (size_t i = 0; i < report->overview_count; i++) {
		uint64_t wall_ns = 0;

		for (size_t k = 0; k < report->overviews[i].part_count; k++)
			wall_ns += report->overviews[i].parts[k].wall_ns;
		assert_int_equal(wall_ns, report->threads[i].wall_ns);
		parts += report->overviews[i].part_count;
	}
	assert_in_range(parts, RLS_TIMELINE_CELLS_MAX / 8, RLS_TIMELINE_CELLS_MAX);
	rls_report_free(report);
	script_end(&script);
}

static size_t count_scopes(const struct rls_timeline *timeline)
{
	size_t count = 0;

	for (const struct rls_process *p = timeline->processes; p; p = p->next) {
		for (const struct rls_thread *t = p->threads; t; t = t->next) {
			for (const struct rls_scope *s = t->scopes; s; s = s->next)
				count++;
		}
	}
	return count;
}

/* Memory is that of the report: a phase in which a thread did nothing is no row of it. */
static void test_phases_without_time_take_no_room(void **unused)
{
	struct rls_timeline timeline = {0};
	struct rls_report *report;
	struct script script;
	char phase[16];

	script_begin(&script);
	add_process(&script, 10, 1, "p");
	for (uint32_t tid = 1; tid <= 20; tid++)
		add_thread(&script, 10, 1, tid);
	add_category(&script, 10, 1, 1, RLS_CATEGORY_PYTHON);
	for (int i = 0; i < 50; i++) {
		snprintf(phase, sizeof(phase), "%d", i);
		add_phase(&script, 20, 1, phase);
	}
	add_phase(&script, 20, 1, "last");
	add_category(&script, 20, 1, 1, RLS_CATEGORY_BACKEND);
	add_end(&script, 30);
	for (size_t i = 0; i < script.count; i++)
		assert_int_equal(rls_sweep_event(&timeline, &script.events[i]), 0);
	assert_int_equal(rls_sweep_end(&timeline), 0);
	assert_int_equal(rls_estimate_untraced(&timeline), 0);
	assert_int_equal(count_scopes(&timeline), 20 * 2);
	rls_timeline_free(&timeline);

	report = script_report(&script);
	assert_int_equal(report->breakdown_count, 20 * 2);
	assert_int_equal(find_row(report, 1, 1, "", "", "python", RLS_RESOURCE_CPU)->wall_ns, 10);
	assert_int_equal(find_row(report, 1, 1, "last", "", "backend", RLS_RESOURCE_CPU)->wall_ns,
			 10);
	assert_int_equal(find_row(report, 1, 20, "last", "", "unknown", RLS_RESOURCE_CPU)->wall_ns,
			 10);
	assert_int_equal(report->transition_count, 1);
	assert_string_equal(report->transitions[0].phase, "last");
	rls_report_free(report);
	script_end(&script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_trace_is_exact),
		cmocka_unit_test(test_long_trace_is_bounded),
		cmocka_unit_test(test_many_scopes),
		cmocka_unit_test(test_ends_of_time),
		cmocka_unit_test(test_in_a_report),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_phases_without_time_take_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
