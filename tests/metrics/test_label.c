/* Labels: what targets name things must not break the page, nor bring a series twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/metrics/label.h"
#include "userspace/metrics/label_set.h"

static void assert_written(const char *text, const char *expected)
{
	char *written = NULL;
	size_t bytes;
	FILE *out = open_memstream(&written, &bytes);

	rls_label_write(out, "l", text);
	fclose(out);
	assert_string_equal(written, expected);
	free(written);
}

static void escapes(void **state)
{
	assert_written("", "l=\"\"");
	assert_written("plain µs", "l=\"plain µs\"");
	assert_written("a\"b\\c\nd", "l=\"a\\\"b\\\\c\\nd\"");
	assert_written("\\n", "l=\"\\\\n\"");
	assert_written("\x1b[2J\x7f\r", "l=\"\xef\xbf\xbd[2J\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_written("a\xff\xc3", "l=\"a\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_written("\xed\xa0\x80", "l=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void cuts_between_characters(void **state)
{
	char text[1000], clean[RLS_LABEL_BYTES], again[RLS_LABEL_BYTES];

	for (size_t shift = 0; shift < 4; shift++) {
		memset(text, 'x', shift);
		for (size_t i = shift; i + 3 < sizeof(text); i += 3)
			memcpy(text + i, "€", 4);
		rls_label_clean(text, clean);
		assert_in_range(strlen(clean), RLS_LABEL_BYTES - 3, RLS_LABEL_BYTES - 1);
		assert_int_equal((strlen(clean) - shift) % 3, 0);
		rls_label_clean(clean, again);
		assert_string_equal(clean, again);
	}
	memset(text, 0xff, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	rls_label_clean(text, clean);
	assert_int_equal(strlen(clean), (RLS_LABEL_BYTES - 1) / 3 * 3);
}

static struct rls_snapshot_job jobs[RLS_LABEL_JOBS_MAX + 10];
static char names[RLS_LABEL_JOBS_MAX + 10][32];

static struct rls_snapshot make_jobs(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "job %zu", i);
		jobs[i] = (struct rls_snapshot_job){.id = i + 1, .name = names[i]};
	}
	return (struct rls_snapshot){.jobs = jobs, .job_count = count};
}

static void operations_are_bounded(void **state)
{
	struct rls_snapshot snapshot = make_jobs(1);
	struct rls_label_set set = {0};
	struct rls_label_job *job;
	size_t number, first, phase;
	char name[32];

	assert_int_equal(rls_label_set_update(&set, &snapshot), 0);
	job = rls_label_set_job(&set, 1);
	for (size_t i = 0; i < RLS_LABEL_OPERATIONS_MAX; i++) {
		snprintf(name, sizeof(name), "operation %zu", i);
		assert_int_equal(rls_label_job_operation(job, name, &number), 0);
		assert_string_equal(rls_label_name(&job->operations, number), name);
	}
	assert_int_equal(rls_label_job_operation(job, "one more", &number), 0);
	assert_int_equal(number, 0);
	assert_string_equal(rls_label_name(&job->operations, number), "other");
	assert_int_equal(rls_label_job_operation(job, "operation 0", &first), 0);
	assert_int_equal(first, 1);
	for (size_t i = 0; i < RLS_LABEL_PHASES_MAX + 5; i++) {
		snprintf(name, sizeof(name), "phase %zu", i);
		assert_int_equal(rls_label_job_pair(job, name, "operation 0", &phase, &number), 0);
		assert_int_equal(number, 1);
		assert_int_equal(phase, i < RLS_LABEL_PHASES_MAX ? i + 1 : 0);
	}
	rls_label_set_clear(&set);
}

static void pairs_are_bounded(void **state)
{
	struct rls_snapshot snapshot = make_jobs(1);
	struct rls_label_set set = {0};
	size_t phase, operation, own = 0;
	char names_of[2][32];

	assert_int_equal(rls_label_set_update(&set, &snapshot), 0);
	for (size_t round = 0; round < 2; round++) {
		own = 0;
		for (size_t i = 0; i < 10 * 150; i++) {
			snprintf(names_of[0], sizeof(names_of[0]), "p%zu", i % 10);
			snprintf(names_of[1], sizeof(names_of[1]), "o%zu", i / 10);
			assert_int_equal(rls_label_job_pair(rls_label_set_job(&set, 1), names_of[0],
							    names_of[1], &phase, &operation),
					 0);
			assert_int_equal(phase == 0, operation == 0);
			own += phase != 0;
		}
		assert_int_equal(own, RLS_LABEL_PAIRS_MAX);
	}
	rls_label_set_clear(&set);
}

static void jobs_are_bounded(void **state)
{
	struct rls_snapshot snapshot = make_jobs(RLS_LABEL_JOBS_MAX + 10);
	struct rls_label_set set = {0};

	assert_int_equal(rls_label_set_update(&set, &snapshot), 0);
	assert_int_equal(set.count, RLS_LABEL_JOBS_MAX);
	assert_null(rls_label_set_job(&set, RLS_LABEL_JOBS_MAX + 1));
	/* The first three leave: three others come in, and nobody loses a place. */
	snapshot.jobs += 3;
	snapshot.job_count -= 3;
	assert_int_equal(rls_label_set_update(&set, &snapshot), 0);
	assert_int_equal(set.count, RLS_LABEL_JOBS_MAX);
	assert_null(rls_label_set_job(&set, 3));
	assert_non_null(rls_label_set_job(&set, RLS_LABEL_JOBS_MAX));
	assert_non_null(rls_label_set_job(&set, RLS_LABEL_JOBS_MAX + 3));
	assert_null(rls_label_set_job(&set, RLS_LABEL_JOBS_MAX + 4));
	rls_label_set_clear(&set);
}

static void jobs_labels_differ(void **state)
{
	struct rls_snapshot snapshot = make_jobs(5);
	struct rls_label_set set = {0};
	char text[600];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	jobs[0].name = "j#2";
	jobs[1].name = "j\xff";
	jobs[2].name = "j\xfe";
	jobs[3].name = text;
	jobs[4].name = text + 1;
	assert_int_equal(rls_label_set_update(&set, &snapshot), 0);
	for (size_t i = 0; i < set.count; i++) {
		assert_in_range(strlen(set.jobs[i]->label), 1, RLS_LABEL_BYTES - 1);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(set.jobs[i]->label, set.jobs[k]->label);
	}
	assert_string_equal(rls_label_set_job(&set, 3)->label, "j\xef\xbf\xbd#3");
	rls_label_set_clear(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes),
		cmocka_unit_test(cuts_between_characters),
		cmocka_unit_test(operations_are_bounded),
		cmocka_unit_test(pairs_are_bounded),
		cmocka_unit_test(jobs_are_bounded),
		cmocka_unit_test(jobs_labels_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
