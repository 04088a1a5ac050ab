/* Memory events added up: lines, their sums by --by, the peak, the course, and what is not known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/event/event_fields.h"
#include "analysis/memory/leak.h"
#include "tests/analysis/breakdown/script.h"

#define SECOND 1000000000ull
#define LINES 24
#define STEPS 600
#define STEP_NS (SECOND / 10)

static struct rls_memory_line line_of(struct script *script, unsigned int i)
{
	static const char *const files[] = {"/job/a.py", "/job/b.py", ""};
	static const char *const operations[] = {"step", "update", ""};
	char function[16];

	snprintf(function, sizeof(function), "f%u", i % 5);
	return (struct rls_memory_line){
		.file = script_string(script, files[i % 3]),
		.function = script_string(script, function),
		.line = i,
		.source = i % 2 ? RLS_MEMORY_TENSOR : RLS_MEMORY_ARRAY,
		.operation = script_string(script, operations[i / 3 % 3]),
		.phase = script_string(script, i % 4 ? "train" : ""),
	};
}

static struct rls_event *add_line(struct script *script, uint64_t time_ns, uint32_t pid,
				  const struct rls_memory_line *of, uint64_t born, uint64_t freed)
{
	struct rls_event *event = script_add(script, RLS_EVENT_MEMORY_LINE, time_ns, pid, 0);

	event->memory_line.of = *of;
	event->memory_line.alloc_bytes = born;
	event->memory_line.freed_bytes = freed;
	event->memory_line.allocs = born / 64;
	event->memory_line.frees = freed / 64;
	return event;
}

static struct rls_event *add_use(struct script *script, uint64_t time_ns, uint32_t pid,
				 uint64_t rss_bytes)
{
	struct rls_event *event = script_add(script, RLS_EVENT_MEMORY_USE, time_ns, pid, 0);

	event->memory_use.rss_bytes = rss_bytes;
	return event;
}

static void add_age(struct script *script, uint64_t time_ns, const struct rls_memory_line *of,
		    bool freed, uint64_t from_ns, uint64_t count)
{
	struct rls_event *event = script_add(script, RLS_EVENT_MEMORY_AGES, time_ns, 1, 0);

	event->memory_ages.of = *of;
	event->memory_ages.freed = freed;
	event->memory_ages.from_ns = from_ns;
	event->memory_ages.to_ns = from_ns + from_ns / 4 + 1;
	event->memory_ages.count = count;
}

/* What a job did, and what it comes to. */
struct job {
	uint64_t born[LINES], freed[LINES], at_peak[LINES], most[LINES];
	uint64_t peak_bytes, peak_ns, rss_bytes;
};

static void make_job(struct script *script, struct job *job)
{
	add_process(script, 0, 1, "job");
	add_use(script, 0, 1, job->peak_bytes = job->rss_bytes = 1 << 20);
	for (unsigned int step = 1; step <= STEPS; step++) {
		uint64_t now_ns = step * STEP_NS;

		for (unsigned int i = 0; i < LINES; i++) {
			struct rls_memory_line of = line_of(script, i);
			uint64_t live;

			if (rand() % 3)
				continue;
			job->born[i] += 64 * (uint64_t)(rand() % 1000);
			live = job->born[i] - job->freed[i];
			job->freed[i] += i % 6 ? live / 64 / 2 * 64 : 0;
			live = job->born[i] - job->freed[i];
			job->most[i] = live > job->most[i] ? live : job->most[i];
			add_line(script, now_ns, 1, &of, job->born[i], job->freed[i]);
		}
		job->rss_bytes = (1 << 20) + (uint64_t)rand() % (1 << 30);
		add_use(script, now_ns, 1, job->rss_bytes);
		if (job->rss_bytes <= job->peak_bytes)
			continue;
		job->peak_bytes = job->rss_bytes;
		job->peak_ns = now_ns;
		for (unsigned int i = 0; i < LINES; i++)
			job->at_peak[i] = job->born[i] - job->freed[i];
	}
	add_end(script, STEPS * STEP_NS);
}

static void check_job(const struct rls_report *report, const struct job *job)
{
	uint64_t live = 0;

	assert_int_equal(report->memory_line_count, LINES);
	for (size_t k = 0; k < LINES; k++) {
		const struct rls_memory_line_row *row = &report->memory_lines[k];
		unsigned int i = row->line;

		assert_int_equal(row->alloc_bytes, job->born[i]);
		assert_int_equal(row->freed_bytes, job->freed[i]);
		assert_int_equal(row->growth_bytes, job->born[i] - job->freed[i]);
		assert_int_equal(row->live_bytes, row->growth_bytes);
		assert_int_equal(row->bytes_at_process_peak, job->at_peak[i]);
		assert_int_equal(row->peak_bytes, job->most[i]);
		assert_int_equal(row->device, -1);
		assert_true(row->leak_score >= 0 && row->leak_score <= 1);
		live += row->live_bytes;
	}
	assert_int_equal(report->memory_count, 1);
	assert_int_equal(report->memory[0].rss_start_bytes, 1 << 20);
	assert_int_equal(report->memory[0].rss_end_bytes, job->rss_bytes);
	assert_int_equal(report->memory[0].rss_peak_bytes, job->peak_bytes);
	assert_int_equal(report->memory[0].peak_time_ns, job->peak_ns);
	assert_int_equal(report->memory[0].tracked_growth_bytes, live);
	assert_int_equal(report->memory[0].untracked_bytes,
			 (int64_t)job->rss_bytes - (1 << 20) - (int64_t)live);
}

static void check_timeline(const struct rls_report *report, const struct job *job)
{
	bool peak = false;

	assert_true(report->memory_timeline_count >= 3 && report->memory_timeline_count <= 100);
	for (size_t i = 0; i < report->memory_timeline_count; i++) {
		const struct rls_memory_timeline_row *row = &report->memory_timeline[i];

		assert_true(!i || row[-1].time_ns < row->time_ns);
		peak |= row->time_ns == job->peak_ns && row->rss_bytes == job->peak_bytes;
	}
	assert_true(peak);
}

struct total {
	uint64_t allocs, born, freed, live, at_peak;
};

static struct total total_of(const struct rls_report *report)
{
	struct total total = {0};

	for (size_t i = 0; i < report->memory_line_count; i++) {
		const struct rls_memory_line_row *row = &report->memory_lines[i];

		total.allocs += row->allocs;
		total.born += row->alloc_bytes;
		total.freed += row->freed_bytes;
		total.live += row->live_bytes;
		total.at_peak += row->bytes_at_process_peak;
		assert_true(row->peak_bytes >= row->live_bytes);
		assert_true(row->peak_bytes >= row->bytes_at_process_peak);
		assert_true(row->peak_bytes <= row->alloc_bytes);
	}
	return total;
}

static void test_sums(void **unused)
{
	for (int round = 0; round < 4; round++) {
		struct script script;
		struct job job = {0};
		struct rls_report *report;

		script_begin(&script);
		make_job(&script, &job);
		report = script_report(&script);
		check_job(report, &job);
		check_timeline(report, &job);
		rls_report_free(report);
		script_end(&script);
	}
}

/* Whatever rows are summed by, the sums are the rows' sums. */
static void test_groups(void **unused)
{
	static const size_t most[RLS_GROUP_MAX] = {
		[RLS_GROUP_PROCESS] = 2, [RLS_GROUP_THREAD] = 2, [RLS_GROUP_OPERATION] = 6,
		[RLS_GROUP_PHASE] = 4,   [RLS_GROUP_LINE] = 24,  [RLS_GROUP_FUNCTION] = 24,
		[RLS_GROUP_FILE] = 6,    [RLS_GROUP_LAYER] = 2,  [RLS_GROUP_LAYER_TYPE] = 2,
		[RLS_GROUP_PASS] = 2,
	};
	struct script script;
	struct job job = {0};

	script_begin(&script);
	make_job(&script, &job);
	for (int group = RLS_GROUP_PROCESS; group < RLS_GROUP_MAX; group++) {
		struct rls_report *report = script_report(&script);
		struct total before = total_of(report), after;

		rls_report_group(report, group);
		after = total_of(report);
		assert_memory_equal(&before, &after, sizeof(before));
		assert_true(report->memory_line_count <= most[group]);
		assert_int_equal(report->memory_count, 1);
		rls_report_free(report);
	}
	script_end(&script);
}

static void grow(struct script *script, const struct rls_memory_line *of, uint64_t until_ns,
		 uint64_t bytes)
{
	for (uint64_t t = 0; t <= until_ns; t += STEP_NS)
		add_line(script, t, 1, of, t / STEP_NS * bytes, 0);
	/* Once more at the end, as it is. */
	add_line(script, 60 * SECOND, 1, of, until_ns / STEP_NS * bytes, 0);
	add_age(script, 60 * SECOND, of, false, 5 * SECOND, until_ns / STEP_NS);
}

static const struct rls_memory_line_row *row_of(const struct rls_report *report, uint32_t line)
{
	for (size_t i = 0; i < report->memory_line_count; i++) {
		if (report->memory_lines[i].line == line)
			return &report->memory_lines[i];
	}
	fail();
	return NULL;
}

/* One leaks, one is full after half a minute; a function that has both leaks. */
static void test_leaks(void **unused)
{
	const struct rls_memory_line_row *row;
	struct rls_memory_line of[2];
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_process(&script, 0, 1, "job");
	for (unsigned int i = 0; i < 2; i++) {
		of[i] = line_of(&script, 0);
		of[i].line = i;
	}
	grow(&script, &of[0], 60 * SECOND, 1000);
	grow(&script, &of[1], 30 * SECOND, 9000);
	add_end(&script, 60 * SECOND);
	report = script_report(&script);
	row = row_of(report, 0);
	assert_true(row->leak_score >= RLS_LEAK_SCORE);
	assert_true(fabs(row->growth_bytes_per_s / 10000 - 1) < 0.1);
	assert_int_equal(row->survivors, 600);
	assert_int_equal(row->observed, 600);
	row = row_of(report, 1);
	assert_true(row->leak_score < RLS_LEAK_SCORE);
	assert_true(row->growth_bytes_per_s < 100);
	rls_report_group(report, RLS_GROUP_FUNCTION);
	assert_int_equal(report->memory_line_count, 1);
	row = &report->memory_lines[0];
	assert_true(row->leak_score >= RLS_LEAK_SCORE);
	assert_true(fabs(row->growth_bytes_per_s / 10000 - 1) < 0.1);
	assert_int_equal(row->observed, 900);
	rls_report_free(report);
	script_end(&script);
}

/* How a job ends is nothing that its lines do, if it does not take long. */
static void test_pauses_at_the_end(void **unused)
{
	static const struct {
		uint64_t until_ns;
		bool leaks;
	} cases[] = {{59 * SECOND, true}, {53 * SECOND, true}, {45 * SECOND, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rls_memory_line of;
		struct rls_report *report;
		struct script script;

		script_begin(&script);
		add_process(&script, 0, 1, "job");
		of = line_of(&script, 0);
		grow(&script, &of, cases[i].until_ns, 1000);
		add_end(&script, 60 * SECOND);
		report = script_report(&script);
		assert_int_equal(row_of(report, 0)->leak_score >= RLS_LEAK_SCORE, cases[i].leaks);
		if (cases[i].leaks)
			assert_true(fabs(row_of(report, 0)->growth_bytes_per_s / 10000 - 1) < 0.1);
		rls_report_free(report);
		script_end(&script);
	}
}

/* A recording that was cut off has no ages. */
static void test_without_ages(void **unused)
{
	const struct rls_memory_line_row *row;
	struct rls_memory_line of;
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_process(&script, 0, 1, "job");
	of = line_of(&script, 0);
	add_line(&script, SECOND, 1, &of, 64 * 50, 0);
	add_line(&script, 2 * SECOND, 1, &of, 64 * 100, 64 * 10);
	report = script_report(&script);
	row = row_of(report, 0);
	assert_int_equal(row->observed, 100);
	assert_int_equal(row->survivors, 90);
	assert_int_equal(row->median_lifetime_ns, RLS_COUNT_UNKNOWN);
	rls_report_free(report);
	script_end(&script);
}

/* Sizes are known, ends are not; and what was sampled says how far it may be wrong. */
static void test_unknown_frees(void **unused)
{
	const struct rls_memory_line_row *row;
	struct rls_memory_line of;
	struct rls_report *report;
	struct script script;
	struct rls_event *event;
	char *json;

	script_begin(&script);
	add_process(&script, 0, 1, "job");
	for (unsigned int i = 0; i < 2; i++) {
		of = line_of(&script, i);
		of.source = RLS_MEMORY_MALLOC;
		event = add_line(&script, SECOND, 1, &of, 4096, 0);
		event->memory_line.method = RLS_MEMORY_SCALED;
		event->memory_line.error_bytes = 30 + 10 * i;
	}
	add_end(&script, 2 * SECOND);
	report = script_report(&script);
	rls_report_group(report, RLS_GROUP_PROCESS);
	assert_int_equal(report->memory_line_count, 1);
	row = &report->memory_lines[0];
	assert_int_equal(row->alloc_bytes, 8192);
	assert_int_equal(row->error_bytes, 50);
	assert_int_equal(row->method, RLS_MEMORY_SCALED);
	assert_int_equal(row->growth_bytes, RLS_COUNT_UNKNOWN);
	assert_int_equal(row->live_bytes, RLS_COUNT_UNKNOWN);
	assert_true(isnan(row->leak_score));
	json = report_json(report);
	assert_non_null(strstr(json, "\"leak_score\": null"));
	assert_non_null(strstr(json, "\"live_bytes\": null"));
	free(json);
	rls_report_free(report);
	script_end(&script);
}

/* From the third second on the first line was counted in windows: what needs frees is not known of it, nor what all lines have
 * over time. The other line is as ever. */
static void test_windows(void **unused)
{
	const struct rls_memory_line_row *row;
	struct rls_memory_line of[2];
	struct rls_report *report;
	struct script script;
	char *json;

	script_begin(&script);
	add_process(&script, 0, 1, "job");
	of[0] = line_of(&script, 0);
	of[1] = line_of(&script, 1);
	for (uint64_t i = 1; i <= 6; i++) {
		struct rls_event *event = add_line(&script, i * SECOND, 1, &of[0], 1000 * i, 100);

		if (i > 2) {
			event->memory_line.method = RLS_MEMORY_SCALED;
			event->memory_line.error_bytes = 70;
		}
		add_line(&script, i * SECOND, 1, &of[1], 10 * i, 0);
		add_use(&script, i * SECOND, 1, 50000 + 100 * i);
	}
	add_end(&script, 7 * SECOND);
	report = script_report(&script);
	row = row_of(report, 0);
	assert_int_equal(row->alloc_bytes, 6000);
	assert_int_equal(row->error_bytes, 70);
	assert_int_equal(row->method, RLS_MEMORY_SCALED);
	assert_int_equal(row->growth_bytes, RLS_COUNT_UNKNOWN);
	assert_int_equal(row->live_bytes, RLS_COUNT_UNKNOWN);
	assert_int_equal(row->peak_bytes, RLS_COUNT_UNKNOWN);
	assert_true(isnan(row->leak_score));
	row = row_of(report, 1);
	assert_int_equal(row->method, RLS_MEMORY_COUNTED);
	assert_int_equal(row->live_bytes, 60);
	assert_int_equal(report->memory[0].tracked_growth_bytes, 60);
	assert_int_equal(report->memory[0].untracked_bytes, 500 - 60);
	assert_true(report->memory_timeline_count > 0);
	for (size_t i = 0; i < report->memory_timeline_count; i++)
		assert_int_equal(report->memory_timeline[i].live_bytes, RLS_COUNT_UNKNOWN);
	json = report_json(report);
	assert_non_null(strstr(json, "\"method\": \"scaled\""));
	free(json);
	rls_report_free(report);
	script_end(&script);
}

static void test_limit(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	for (uint32_t pid = 1; pid <= 3; pid++) {
		add_process(&script, 0, pid, "job");
		for (uint64_t i = 0; i <= 300; i++) {
			struct rls_event *event = add_use(&script, i * STEP_NS, pid,
							  1000000 + (pid == 1 ? 1000 * i : 0));

			event->memory_use.limit_bytes = pid == 3 ? 0 : 2000000;
			event->memory_use.used_bytes = event->memory_use.rss_bytes + 100000;
			event->memory_use.out_of_memory = pid == 2 && i == 300;
		}
	}
	add_end(&script, 300 * STEP_NS);
	report = script_report(&script);
	assert_int_equal(report->memory_count, 3);
	assert_int_equal(report->memory[0].limit_bytes, 2000000);
	/* 600,000 bytes are left of it, at 10,000 a second. */
	assert_true(fabs(report->memory[0].limit_in_s - 60) < 3);
	assert_true(isnan(report->memory[1].limit_in_s));
	assert_false(report->memory[0].out_of_memory);
	assert_true(report->memory[1].out_of_memory);
	assert_int_equal(report->memory[2].limit_bytes, RLS_COUNT_UNKNOWN);
	assert_true(isnan(report->memory[2].limit_in_s));
	rls_report_free(report);
	script_end(&script);
}

/* A GPU's lines are of its own memory, and have its own peak. */
static void test_devices(void **unused)
{
	struct rls_memory_line of[2];
	struct rls_report *report;
	struct script script;
	struct rls_event *event;

	script_begin(&script);
	add_process(&script, 0, 1, "job");
	of[0] = line_of(&script, 1);
	of[1] = line_of(&script, 2);
	of[1].source = RLS_MEMORY_GPU;
	of[1].device = 3;
	for (uint64_t i = 0; i < 10; i++) {
		add_line(&script, i * SECOND, 1, &of[0], i * 100, 0);
		add_line(&script, i * SECOND, 1, &of[1], i * 1000, i > 6 ? 6000 : 0);
		add_use(&script, i * SECOND, 1, i == 3 ? 9999 : 5000);
		event = script_add(&script, RLS_EVENT_MEMORY_USE, i * SECOND, 1, 0);
		event->memory_use.gpu = true;
		event->memory_use.device = 3;
		event->memory_use.allocated_bytes = 70 + i * 1000 - (i > 6 ? 6000 : 0);
	}
	report = script_report(&script);
	assert_int_equal(report->memory_count, 2);
	assert_int_equal(report->memory[0].device, -1);
	assert_int_equal(report->memory[0].tracked_growth_bytes, 900);
	assert_int_equal(report->memory[1].device, 3);
	assert_int_equal(report->memory[1].rss_peak_bytes, 6070);
	assert_int_equal(report->memory[1].tracked_growth_bytes, 3000);
	assert_int_equal(report->memory[1].untracked_bytes, 0);
	assert_int_equal(row_of(report, 1)->bytes_at_process_peak, 300);
	assert_int_equal(row_of(report, 2)->bytes_at_process_peak, 6000);
	assert_int_equal(row_of(report, 2)->device, 3);
	rls_report_free(report);
	script_end(&script);
}

/* One pid, used twice; and other traces' rows beside. */
static void test_reused_pids_and_traces(void **unused)
{
	struct rls_report *reports[2];
	struct rls_memory_line of;
	uint32_t pid;

	for (uint32_t k = 0; k < 2; k++) {
		struct script script;

		script_begin(&script);
		of = line_of(&script, 7);
		for (uint64_t use = 0; use < 2; use++) {
			uint64_t start_ns = 100 * SECOND * use;

			add_process(&script, start_ns, 1 + k, "job");
			add_line(&script, start_ns + SECOND, 1 + k, &of, 6400, 640);
			add_use(&script, start_ns + SECOND, 1 + k, 1000);
			script_add(&script, RLS_EVENT_PROCESS_END, start_ns + 2 * SECOND, 1 + k, 0);
		}
		reports[k] = script_report(&script);
		assert_int_equal(reports[k]->memory_line_count, 1);
		assert_int_equal(reports[k]->memory_lines[0].alloc_bytes, 12800);
		assert_int_equal(reports[k]->memory_lines[0].live_bytes, 11520);
		script_end(&script);
	}
	assert_int_equal(rls_report_merge(reports[0], reports[1], &pid), 0);
	assert_int_equal(reports[0]->memory_line_count, 2);
	assert_int_equal(reports[0]->memory_count, 4);
	rls_report_free(reports[0]);
	rls_report_free(reports[1]);
}

/* What no recorder writes is bounded, and is no reason to fail. */
static void test_nonsense(void **unused)
{
	struct rls_report *report;
	struct script script;
	char *json;

	srand(5);
	script_begin(&script);
	add_process(&script, 0, 1, "job");
	for (unsigned int i = 0; i < 3000; i++) {
		struct rls_memory_line of = line_of(&script, (unsigned int)rand() % LINES);
		uint64_t some = rand() % 3 ? (uint64_t)rand() : RLS_EVENT_NUMBER_MAX;
		uint64_t more = rand() % 3 ? (uint64_t)rand() : RLS_EVENT_NUMBER_MAX;
		struct rls_event *event = add_line(&script, i * SECOND, 1, &of, some, more);

		event->memory_line.peak_bytes = more;
		event->memory_line.error_bytes = some;
		add_use(&script, i * SECOND, 1, some)->memory_use.limit_bytes = more;
		add_age(&script, i * SECOND, &of, rand() % 2, some / 2, more);
	}
	report = script_report(&script);
	json = report_json(report);
	assert_null(strstr(json, "nan"));
	assert_null(strstr(json, "inf"));
	free(json);
	for (int group = RLS_GROUP_PROCESS; group < RLS_GROUP_MAX; group++)
		rls_report_group(report, group);
	rls_report_free(report);
	script_end(&script);
}

static void test_nothing(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_process(&script, 0, 1, "job");
	add_end(&script, SECOND);
	report = script_report(&script);
	assert_false(rls_report_has_memory(report));
	assert_int_equal(report->memory_count + report->memory_line_count + report->copy_count +
				 report->memory_timeline_count,
			 0);
	rls_report_free(report);
	script_end(&script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_pauses_at_the_end),
		cmocka_unit_test(test_leaks),
		cmocka_unit_test(test_without_ages),
		cmocka_unit_test(test_unknown_frees),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_reused_pids_and_traces),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
