/* What is kept of a calibration, what of a file is believed, and the figures from it. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/calibration/calibration_file.h"
#include "userspace/attach/calibration/disturb.h"

static const struct rls_calibration_scope scope = {"boot-1", "6.18.0", "EPYC", "multi"};

static struct rls_calibration make_calibration(double ns)
{
	struct rls_calibration calibration = {.inside_ns = 345.5};

	for (int path = 0; path < RLS_PATH_MAX; path++)
		calibration.paths[path] =
			(struct rls_calibrated){ns + path, 10 + path, ns / 2 + path, 1 + path};
	return calibration;
}

static struct rls_calibration_file make_file(void)
{
	return (struct rls_calibration_file){.calibration = make_calibration(700.25)};
}

static double mean_hit(const struct rls_calibration *calibration)
{
	return rls_calibration_mean_hit(calibration).value_ns;
}

static void assert_same(const struct rls_calibration *a, const struct rls_calibration *b)
{
	assert_true(a->inside_ns == b->inside_ns);
	assert_memory_equal(a->paths, b->paths, sizeof(a->paths));
}

static void survives_a_round_trip(void **state)
{
	struct rls_calibration_file file = make_file(), back;
	struct rls_workload workload = {
		.command = "[\"python3\", \"train \\\"x\\\".py\"]",
		.factor = 1.25,
		.error = 0.03,
		.calibration = make_calibration(910.75),
		.cuda = {{"cudaLaunchKernel", 3100, 90.5}, {"cuMemcpyAsync", 900, 0}},
		.cuda_count = 2,
		.operations = {{"", 1.5, 0.25}, {"int\"erence é", 0.75, 0.125}},
		.operation_count = 2,
	};
	_cleanup_free_ char *text = NULL;

	(void)state;
	assert_int_equal(rls_calibration_add_workload(&file, &workload), 0);
	file.until_s = 70123.5;
	file.source = RLS_CALIBRATED_BY_COMMAND;
	assert_int_equal(rls_calibration_format(&file, &scope, &text), 0);
	assert_int_equal(rls_calibration_parse(text, strlen(text), &scope, &back), 0);
	assert_same(&file.calibration, &back.calibration);
	assert_true(back.until_s == 70123.5);
	assert_int_equal(back.source, RLS_CALIBRATED_BY_COMMAND);
	assert_int_equal(back.workload_count, 1);
	assert_same(&back.workloads[0].calibration, &workload.calibration);
	assert_string_equal(back.workloads[0].command, workload.command);
	assert_true(back.workloads[0].factor == 1.25 && back.workloads[0].error == 0.03);
	assert_int_equal(back.workloads[0].cuda_count, 2);
	assert_memory_equal(back.workloads[0].cuda, workload.cuda, sizeof(workload.cuda));
	assert_int_equal(back.workloads[0].operation_count, 2);
	for (int i = 0; i < 2; i++) {
		const struct rls_operation_cost *cost = &back.workloads[0].operations[i];

		assert_string_equal(cost->operation, workload.operations[i].operation);
		assert_true(cost->factor == workload.operations[i].factor &&
			    cost->error == workload.operations[i].error);
	}
	rls_calibration_file_clear(&file);
	rls_calibration_file_clear(&back);
}

static void holds_for_its_scope_alone(void **state)
{
	const struct rls_calibration_scope others[] = {{"boot-2", "6.18.0", "EPYC", "multi"},
						       {"boot-1", "6.18.1", "EPYC", "multi"},
						       {"boot-1", "6.18.0", "Xeon", "multi"},
						       {"boot-1", "6.18.0", "EPYC", "perf"}};
	struct rls_calibration_file file = make_file(), back;
	_cleanup_free_ char *text = NULL;

	(void)state;
	assert_int_equal(rls_calibration_format(&file, &scope, &text), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(rls_calibration_parse(text, strlen(text), &others[i], &back),
				 -ESTALE);
}

/* What is used where nothing can be measured: every path costs something, and may be off by all of it. */
static void has_a_default_of_no_certainty(void **state)
{
	struct rls_calibration calibration;
	struct rls_calibrated hit;

	(void)state;
	rls_calibration_default(&calibration);
	for (int path = 0; path < RLS_PATH_MAX; path++) {
		assert_true(calibration.paths[path].value_ns > 0);
		assert_true(calibration.paths[path].error_ns >= calibration.paths[path].value_ns);
	}
	hit = rls_calibration_mean_hit(&calibration);
	assert_true(hit.value_ns > 400 && hit.value_ns < 4000);
	assert_true(hit.error_ns >= hit.value_ns);
}

/* As other versions' figures are: they may have been found in another way. */
static void takes_no_other_versions_figures(void **state)
{
	static const char earlier[] = "{\"version\": 1, \"boot\": \"boot-1\"}",
			  none[] = "{\"version\": \"1\"}";
	struct rls_calibration_file back;

	(void)state;
	assert_int_equal(rls_calibration_parse(earlier, strlen(earlier), &scope, &back), -ESTALE);
	assert_int_equal(rls_calibration_parse(none, strlen(none), &scope, &back), -EINVAL);
}

/* Whatever byte is changed: an error, or figures that are possible. Never a crash. */
static void believes_no_impossible_figure(void **state)
{
	static const char bytes[] = "-9e{}[]\",: nN\0\xff";
	struct rls_calibration_file file = make_file(), back;
	_cleanup_free_ char *text = NULL;
	size_t length;

	(void)state;
	assert_int_equal(rls_calibration_format(&file, &scope, &text), 0);
	length = strlen(text);
	for (size_t i = 0; i < length; i++) {
		char kept = text[i];

		for (size_t b = 0; b < sizeof(bytes); b++) {
			text[i] = bytes[b];
			if (rls_calibration_parse(text, length, &scope, &back))
				continue;
			for (int path = 0; path < RLS_PATH_MAX; path++) {
				const struct rls_calibrated *figure = &back.calibration.paths[path];

				assert_true(figure->value_ns >= 0 && figure->value_ns <= 1e9);
				assert_true(figure->error_ns >= 0 && figure->hot_ns >= 0);
			}
			rls_calibration_file_clear(&back);
		}
		text[i] = kept;
		assert_int_not_equal(rls_calibration_parse(text, i, &scope, &back),
				     0); /* cut off */
	}
}

static void refuses_impossible_workloads(void **state)
{
	static const char *const workloads[] = {
		"{\"command\": \"x\", \"factor\": -1, \"error\": 0}",
		"{\"command\": \"x\", \"factor\": 101, \"error\": 0}",
		"{\"command\": 7, \"factor\": 1, \"error\": 0}",
		"{\"factor\": 1, \"error\": 0}",
		"{\"command\": \"x\", \"factor\": 1, \"error\": 0, \"cuda\": 7}",
		"{\"command\": \"x\", \"factor\": 1, \"error\": 0, \"cuda\": [{\"ns\": 1, "
		"\"error_ns\": 0}]}",
		"{\"command\": \"x\", \"factor\": 1, \"error\": 0, \"cuda\": [{\"name\": \"c\", "
		"\"ns\": -1, \"error_ns\": 0}]}",
		"{\"command\": \"x\", \"factor\": 1, \"error\": 0, \"operations\": {}}",
		"{\"command\": \"x\", \"factor\": 1, \"error\": 0, \"operations\": [{\"factor\": "
		"1, \"error\": 0}]}",
		"{\"command\": \"x\", \"factor\": 1, \"error\": 0, \"operations\": "
		"[{\"operation\": \"o\", \"factor\": 0, \"error\": 0}]}",
		"{\"command\": \"x\", \"factor\": 1, \"error\": 0, \"operations\": "
		"[{\"operation\": \"o\", \"factor\": 101, \"error\": 0}]}",
		"{\"command\": \"x\", \"factor\": 1, \"error\": 0, \"inside_ns\": 1, \"paths\": "
		"{}}",
	};
	struct rls_calibration_file file = make_file(), back;

	(void)state;
	for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
		_cleanup_free_ char *text = NULL, *changed = NULL;
		char *empty;

		assert_int_equal(rls_calibration_format(&file, &scope, &text), 0);
		empty = strstr(text, "\"workloads\": []");
		assert_non_null(empty);
		assert_true(asprintf(&changed, "%.*s\"workloads\": [%s]%s", (int)(empty - text),
				     text, workloads[i], empty + strlen("\"workloads\": []")) > 0);
		assert_int_equal(rls_calibration_parse(changed, strlen(changed), &scope, &back),
				 -EINVAL);
	}
}

/* As earlier releases wrote them. */
static void ignores_what_is_no_longer_known(void **state)
{
	static const char none[] = "\"workloads\": []";
	static const char one[] =
		"\"workloads\": [{\"command\": \"x\", \"factor\": 2, \"error\": 0.1, "
		"\"lasting_error\": 0.05, "
		"\"operations\": [{\"operation\": \"o\", \"factor\": 3, \"error\": 0.2, "
		"\"lasting_error\": 0.1, "
		"\"spill_ns\": 900, \"spill_error_ns\": 300, \"spill_lasting_error_ns\": 100}]}]";
	struct rls_calibration_file file = make_file(), back;
	_cleanup_free_ char *text = NULL, *changed = NULL;
	const char *empty;

	(void)state;
	assert_int_equal(rls_calibration_format(&file, &scope, &text), 0);
	empty = strstr(text, none);
	assert_non_null(empty);
	assert_true(asprintf(&changed, "%.*s%s%s", (int)(empty - text), text, one,
			     empty + strlen(none)) > 0);
	assert_int_equal(rls_calibration_parse(changed, strlen(changed), &scope, &back), 0);
	assert_int_equal(back.workload_count, 1);
	assert_true(back.workloads[0].factor == 2 && back.workloads[0].error == 0.1);
	assert_int_equal(back.workloads[0].operation_count, 1);
	assert_true(back.workloads[0].operations[0].factor == 3 &&
		    back.workloads[0].operations[0].error == 0.2);
	rls_calibration_file_clear(&back);
}

/* As whoever writes one by hand may leave it. */
static void goes_by_the_machines_without_one_of_its_own(void **state)
{
	static const char none[] = "\"workloads\": []";
	static const char one[] =
		"\"workloads\": [{\"command\": \"x\", \"factor\": 1, \"error\": 0}]";
	struct rls_calibration_file file = make_file(), back;
	_cleanup_free_ char *text = NULL, *changed = NULL;
	const char *empty;

	(void)state;
	assert_int_equal(rls_calibration_format(&file, &scope, &text), 0);
	empty = strstr(text, none);
	assert_non_null(empty);
	assert_true(asprintf(&changed, "%.*s%s%s", (int)(empty - text), text, one,
			     empty + strlen(none)) > 0);
	assert_int_equal(rls_calibration_parse(changed, strlen(changed), &scope, &back), 0);
	assert_int_equal(back.workload_count, 1);
	assert_same(&back.workloads[0].calibration, &file.calibration);
	rls_calibration_file_clear(&back);
}

/* The factor goes with the figure that it is a share of. */
static void goes_along_with_the_calibration(void **state)
{
	const struct rls_calibration expensive = make_calibration(800),
				     inexpensive = make_calibration(600), unknown = {0};
	struct rls_workload workload = {.calibration = expensive};
	double factor = rls_workload_rescale(&workload, 1.5, &inexpensive);

	(void)state;
	assert_true(rls_workload_rescale(&workload, 1.5, &expensive) == 1.5);
	assert_float_equal(factor * mean_hit(&inexpensive), 1.5 * mean_hit(&expensive), 1e-9);
	assert_true(rls_workload_rescale(&workload, 1.5, &unknown) == 1.5);
	workload.calibration = unknown;
	assert_true(rls_workload_rescale(&workload, 1.5, &inexpensive) == 1.5);
}

static void keeps_the_latest_workloads(void **state)
{
	struct rls_calibration_file file = make_file();
	struct rls_workload workload = {.error = 0.1};

	(void)state;
	for (int i = 0; i < RLS_WORKLOADS_MAX + 5; i++) {
		snprintf(workload.command, sizeof(workload.command), "[\"%d\"]", i);
		workload.factor = i;
		assert_int_equal(rls_calibration_add_workload(&file, &workload), 0);
	}
	assert_int_equal(file.workload_count, RLS_WORKLOADS_MAX);
	assert_null(rls_calibration_workload(&file, "[\"0\"]"));
	assert_true(rls_calibration_workload(&file, "[\"9\"]")->factor == 9);
	snprintf(workload.command, sizeof(workload.command), "[\"9\"]");
	workload.factor = 90;
	assert_int_equal(rls_calibration_add_workload(&file, &workload), 0);
	assert_int_equal(file.workload_count, RLS_WORKLOADS_MAX);
	assert_true(rls_calibration_workload(&file, "[\"9\"]")->factor == 90);
	rls_calibration_file_clear(&file);
}

static void trusts_no_file_of_others(void **state)
{
	char folder[] = "/tmp/rls-calibration.XXXXXX";
	struct rls_calibration_file file = make_file(), back;
	_cleanup_free_ char *path = NULL, *other = NULL;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_true(asprintf(&path, "%s/made/calibration.json", folder) > 0);
	assert_true(asprintf(&other, "%s/made/other", folder) > 0);
	assert_int_equal(rls_calibration_load(path, &scope, &back), -ENOENT);
	assert_int_equal(rls_calibration_save(path, &scope, &file), 0);
	assert_int_equal(rls_calibration_load(path, &scope, &back), 0);
	assert_same(&file.calibration, &back.calibration);
	rls_calibration_file_clear(&back);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(rls_calibration_load(path, &scope, &back), -EPERM);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(rls_calibration_load(path, &scope, &back), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(rls_calibration_load(path, &scope, &back), -EPERM);
	/* Saving replaces whatever is there. */
	assert_int_equal(rls_calibration_save(path, &scope, &file), 0);
	assert_int_equal(rls_calibration_load(path, &scope, &back), 0);
	rls_calibration_file_clear(&back);
	*strrchr(path, '/') = '\0';
	assert_int_equal(chmod(path, 0777), 0);
	path[strlen(path)] = '/';
	assert_int_equal(rls_calibration_load(path, &scope, &back), -EPERM);
	assert_int_equal(rls_calibration_save(path, &scope, &file), -EPERM);
	unlink(path);
	unlink(other);
	*strrchr(path, '/') = '\0';
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* ---- figures ---- */

static void median_lies_in_its_interval(void **state)
{
	double values[99], median, half;
	int inside = 0;

	(void)state;
	srand(1);
	for (int trial = 0; trial < 2000; trial++) {
		for (int i = 0; i < 25; i++) /* skewed: the median of the square is 0.25 */
			values[i] = pow((double)rand() / RAND_MAX, 2);
		rls_median_interval(values, 25, &median, &half);
		inside += fabs(median - 0.25) <= half;
	}
	assert_true(inside > 2000 * 0.93);
	values[0] = 7;
	rls_median_interval(values, 1, &median, &half);
	assert_true(median == 7 && half == 0);
}

/* Of a machine that takes twice as long two fifths of the time. */
static void slow_rounds_are_left_out(void **state)
{
	double values[25], plain_ns[25], median, half;
	size_t kept;

	(void)state;
	for (int i = 0; i < 25; i++) {
		int slow = 1 + (i % 5 < 2);

		plain_ns[i] = slow * (100 + i % 7);
		values[i] = slow * 1000;
	}
	kept = rls_quieter_half(values, plain_ns, 25);
	assert_true(kept >= 13 && kept <= 15);
	for (size_t i = 0; i < kept; i++)
		assert_true(values[i] == 1000);

	/* In their order; one alone stays. */
	for (int i = 0; i < 5; i++) {
		values[i] = i;
		plain_ns[i] = 5 - i;
	}
	assert_int_equal(rls_quieter_half(values, plain_ns, 5), 3);
	assert_true(values[0] == 2 && values[1] == 3 && values[2] == 4);
	assert_int_equal(rls_quieter_half(values, plain_ns, 1), 1);
	rls_median_interval(values, 1, &median, &half);
	assert_true(median == 2);
}

static void costs_fit_the_figures(void **state)
{
	struct rls_calibration_file file = make_file();

	(void)state;
	srand(2);
	for (int trial = 0; trial < 1000; trial++) {
		struct rls_calibration *calibration = &file.calibration;
		struct rls_hit_costs costs;

		for (int path = 0; path < RLS_PATH_MAX; path++) {
			calibration->paths[path].value_ns = rand() % 20000;
			calibration->paths[path].hot_ns = rand() % 20000;
		}
		calibration->inside_ns = rand() % 20000;
		costs = rls_calibration_costs(calibration);
		for (int i = 0; i < RLS_SITE_CLASS_MAX; i++) {
			assert_true(costs.ns[i][0] == lround(calibration->paths[i].value_ns));
			assert_true(costs.ns[i][1] ==
				    lround(calibration->paths[RLS_PATH_RETURN].value_ns));
		}
		/* What is over when a hit's time is taken is no more than the hit. */
		assert_true(costs.before_ns[0] <= costs.ns[RLS_SITE_EMULATED][0] + costs.event_ns);
		assert_true(costs.before_ns[1] <= costs.ns[RLS_SITE_EMULATED][1] + costs.event_ns);
	}
}

static void mean_hit_says_how_little_is_known(void **state)
{
	struct rls_calibration calibration = {0};
	struct rls_calibrated hit;

	(void)state;
	calibration.paths[RLS_PATH_EMULATED_ENTRY] = (struct rls_calibrated){900, 0, 600, 0};
	calibration.paths[RLS_PATH_RETURN] = (struct rls_calibrated){490, 0, 360, 0};
	calibration.paths[RLS_PATH_EVENT] = (struct rls_calibrated){160, 0, 40, 0};
	hit = rls_calibration_mean_hit(&calibration);
	assert_true(hit.value_ns == 855 && hit.hot_ns == 520);
	assert_true(hit.error_ns == 0.45 * 855); /* more than what it costs less when hot */
}

static void disturbance_goes_all_over(void **state)
{
	struct rls_disturb disturb;
	size_t touched = 0;

	(void)state;
	assert_int_equal(rls_disturb_init(&disturb, 1 << 16), 0);
	rls_disturb_run(&disturb, 20000);
	for (size_t i = 0; i < 1 << 16; i++)
		touched += disturb.bytes[i] != 1;
	assert_true(touched > 2000);
	rls_disturb_clear(&disturb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_a_round_trip),
		cmocka_unit_test(holds_for_its_scope_alone),
		cmocka_unit_test(has_a_default_of_no_certainty),
		cmocka_unit_test(takes_no_other_versions_figures),
		cmocka_unit_test(believes_no_impossible_figure),
		cmocka_unit_test(refuses_impossible_workloads),
		cmocka_unit_test(ignores_what_is_no_longer_known),
		cmocka_unit_test(goes_by_the_machines_without_one_of_its_own),
		cmocka_unit_test(goes_along_with_the_calibration),
		cmocka_unit_test(keeps_the_latest_workloads),
		cmocka_unit_test(trusts_no_file_of_others),
		cmocka_unit_test(median_lies_in_its_interval),
		cmocka_unit_test(slow_rounds_are_left_out),
		cmocka_unit_test(costs_fit_the_figures),
		cmocka_unit_test(mean_hit_says_how_little_is_known),
		cmocka_unit_test(disturbance_goes_all_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
