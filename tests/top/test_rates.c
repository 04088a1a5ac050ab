/* What `top` shows: differences of snapshots, sorted, in any size of terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <cmocka.h>

#include "analysis/writers/text/text_format.h"
#include "tests/metrics/snapshot_maker.h"
#include "userspace/top/kept_snapshot.h"
#include "userspace/top/rates.h"
#include "userspace/top/view.h"

#define SECOND_NS UINT64_C(1000000000)

static struct rls_rates rates_between(struct rls_kept_snapshot *kept, uint64_t from, uint64_t to)
{
	struct rls_rates rates;

	assert_int_equal(rls_kept_snapshot_take(kept, snapshot_make(from)), 0);
	assert_int_equal(rls_rates_make(&kept->snapshot, snapshot_make(to), &rates), 0);
	return rates;
}

static void differences_are_exact_and_sorted(void **state)
{
	struct rls_kept_snapshot kept = {0};
	struct rls_rates rates = rates_between(&kept, 3, 5);
	const struct rls_rates_job *job = rates.jobs;

	assert_int_equal(rates.elapsed_ns, 2 * SECOND_NS);
	assert_int_equal(rates.lost, 5 + 7);
	assert_int_equal(rates.job_count, 2);
	/* Rows of 1, 2 and 3 s a step; the GPU alone is no thread's time. */
	assert_string_equal(job->job->name, "walker");
	assert_int_equal(job->sums.total_ns, 2 * 6 * SECOND_NS);
	assert_int_equal(job->sums.category_ns[RLS_CATEGORY_PYTHON], 2 * 2 * SECOND_NS);
	assert_int_equal(job->sums.on_gpu_ns, 2 * 3 * SECOND_NS);
	assert_int_equal(job->sums.transitions, 2 * 2 * 1000);
	assert_int_equal(job->gpu_busy_ns, 2 * SECOND_NS / 10);
	assert_int_equal(job->smi_style_ns, 2 * SECOND_NS);
	assert_int_equal(job->overhead_ns, 2 * SECOND_NS / 100);
	assert_int_equal(job->operation_count, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(job->operations[i].sums.total_ns, 6 * SECOND_NS);
	assert_string_equal(job->operations[0].name, "backpropagation");
	assert_false(job->operations[0].estimated);
	assert_string_equal(job->operations[1].name, "simulation");
	assert_true(job->operations[1].estimated);
	assert_int_equal(job->operations[1].sums.transitions, 4000);
	rls_rates_clear(&rates);
	rls_kept_snapshot_clear(&kept);
}

static void jobs_come_and_go(void **state)
{
	struct rls_snapshot_row row = {
		"", "a", RLS_CATEGORY_PYTHON, RLS_RESOURCE_CPU, RLS_METHOD_TRACED, 5 * SECOND_NS,
		0,  0};
	struct rls_snapshot_job jobs[] = {
		{.id = 1,
		 .name = "gone",
		 .container = "",
		 .unit = "",
		 .cgroup = "",
		 .command = "",
		 .python = "",
		 .ended_ns = 7},
		{.id = 2,
		 .name = "ending",
		 .container = "",
		 .unit = "",
		 .cgroup = "",
		 .command = "",
		 .python = "",
		 .rows = &row,
		 .row_count = 1},
		{.id = 3,
		 .name = "new",
		 .container = "",
		 .unit = "",
		 .cgroup = "",
		 .command = "",
		 .python = "",
		 .rows = &row,
		 .row_count = 1},
	};
	struct rls_snapshot snapshot = {.version = "", .jobs = jobs, .job_count = 2};
	struct rls_kept_snapshot kept = {0};
	struct rls_rates rates;

	assert_int_equal(rls_kept_snapshot_take(&kept, &snapshot), 0);
	jobs[1].ended_ns = 9;
	row.wall_ns += SECOND_NS;
	snapshot.job_count = 3;
	assert_int_equal(rls_rates_make(&kept.snapshot, &snapshot, &rates), 0);
	assert_int_equal(rates.job_count, 2);
	assert_string_equal(rates.jobs[0].job->name, "new");
	assert_int_equal(rates.jobs[0].sums.total_ns, 6 * SECOND_NS);
	assert_string_equal(rates.jobs[1].job->name, "ending");
	assert_int_equal(rates.jobs[1].sums.total_ns, SECOND_NS);
	rls_rates_clear(&rates);
	rls_kept_snapshot_clear(&kept);
}

/* The snapshot that was kept is a copy: what it came from may change. */
static void kept_is_a_copy(void **state)
{
	struct rls_kept_snapshot kept = {0};
	const struct rls_snapshot *made = snapshot_make(1);

	assert_int_equal(rls_kept_snapshot_take(&kept, made), 0);
	snapshot_make(100);
	assert_int_equal(kept.snapshot.jobs[0].rows[0].wall_ns, SECOND_NS + 1);
	assert_int_equal(kept.snapshot.jobs[0].transitions[1].count, 1001);
	assert_int_equal(kept.snapshot.jobs[0].gpus[0].kernels, 50);
	assert_ptr_not_equal(kept.snapshot.jobs[0].name, made->jobs[0].name);
	assert_string_equal(kept.snapshot.jobs[1].rows[0].operation, "say \"hi\"\\\n");
	assert_string_equal(kept.snapshot.losses[1].buffer, "control");
	/* Itself, too. */
	assert_int_equal(rls_kept_snapshot_take(&kept, &kept.snapshot), 0);
	assert_string_equal(kept.snapshot.jobs[0].name, "walker");
	rls_kept_snapshot_clear(&kept);
}

static char *text_of(const struct rls_rates *rates, struct rls_top_view view)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	rls_top_write_text(out, rates, &view);
	fclose(out);
	return text;
}

static void is_the_table(void **state)
{
	struct rls_kept_snapshot kept = {0};
	struct rls_rates rates = rates_between(&kept, 1, 2);
	char *text = text_of(&rates, (struct rls_top_view){.columns = 110}), expected[4096];
	FILE *file;

	if (getenv("RLS_UPDATE_GOLDEN")) {
		FILE *update = fopen("expected.txt", "we");

		fputs(text, update);
		fclose(update);
	}
	file = fopen("expected.txt", "re");
	assert_non_null(file);
	expected[fread(expected, 1, sizeof(expected) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(text, expected);
	free(text);
	rls_rates_clear(&rates);
	rls_kept_snapshot_clear(&kept);
}

/* No line is wider than the terminal, nor are there more, whatever its size. */
static void fits_any_terminal(void **state)
{
	struct rls_kept_snapshot kept = {0};
	struct rls_rates rates = rates_between(&kept, 1, 2);

	for (unsigned int columns = 1; columns < 200; columns++) {
		for (unsigned int lines = 1; lines < 12; lines++) {
			char *text = text_of(&rates, (struct rls_top_view){columns, lines, false});
			unsigned int count = 0;

			for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
				*end = '\0';
				count++;
				if (rls_text_width(at) > columns)
					fail_msg("%u columns: '%s'", columns, at);
				for (const char *byte = at; *byte; byte++)
					assert_true((unsigned char)*byte >= 0x20);
			}
			assert_true(count < lines || lines == 1);
			free(text);
		}
	}
	rls_rates_clear(&rates);
	rls_kept_snapshot_clear(&kept);
}

static void is_json(void **state)
{
	struct rls_kept_snapshot kept = {0};
	struct rls_rates rates = rates_between(&kept, 1, 2);
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	json_t *root, *job;
	const char *name;
	json_int_t total;

	rls_top_write_json(out, &rates);
	fclose(out);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	assert_int_equal(json_array_size(json_object_get(root, "jobs")), 2);
	job = json_array_get(json_object_get(root, "jobs"), 0);
	assert_int_equal(json_unpack(job, "{s:s,s:I}", "job", &name, "total_ns", &total), 0);
	assert_string_equal(name, "walker");
	assert_int_equal(total, 6 * SECOND_NS);
	assert_int_equal(json_array_size(json_object_get(job, "operations")), 2);
	job = json_array_get(json_object_get(root, "jobs"), 1);
	assert_string_equal(json_string_value(json_object_get(job, "job")), "walker\xef\xbf\xbd");
	json_decref(root);
	free(text);
	rls_rates_clear(&rates);
	rls_kept_snapshot_clear(&kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(differences_are_exact_and_sorted),
		cmocka_unit_test(jobs_come_and_go),
		cmocka_unit_test(kept_is_a_copy),
		cmocka_unit_test(is_the_table),
		cmocka_unit_test(fits_any_terminal),
		cmocka_unit_test(is_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
