/* Parts of a trace: each has what holds for the whole, and the parts sum to the whole,
 * wherever it is cut. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/event/memory_source.h"
#include "analysis/timeline/slice_source.h"
#include "tests/analysis/breakdown/script.h"

#define STEP_NS 1000
#define END_NS 30000

/* Traced up to 8000 and in [18000, 23000), where the thread shows itself at 20000 first. */
static void begin(struct script *script)
{
	script_begin(script);
	add_process(script, 0, 1, "p");
	add_thread(script, 0, 1, 1);
	add_operation(script, 0, 1, 1, "step");
	add_category(script, 0, 1, 1, RLS_CATEGORY_PYTHON);
	add_category(script, 2500, 1, 1, RLS_CATEGORY_BACKEND);
	add_category(script, 5500, 1, 1, RLS_CATEGORY_PYTHON);
	add_window(script, 8000, false);
	add_sample_of_category(script, 9000, RLS_CATEGORY_BACKEND);
	add_sample_of_category(script, 13000, RLS_CATEGORY_PYTHON);
	add_window(script, 18000, true);
	add_category(script, 20000, 1, 1, RLS_CATEGORY_BACKEND);
	add_category(script, 21500, 1, 1, RLS_CATEGORY_PYTHON);
	add_window(script, 23000, false);
	add_sample_of_category(script, 26000, RLS_CATEGORY_PYTHON);
	script_add(script, RLS_EVENT_BUDGET, END_NS, 0, 0)->budget.percent = 2;
	script->events[script->count - 1].budget.windowed_sites = 1;
	script_add(script, RLS_EVENT_LOSS, END_NS, 0, 0)->loss.buffer =
		script_string(script, "control");
	script->events[script->count - 1].loss.dropped = 3;
	add_end(script, END_NS);
}

static struct rls_report *cut(const struct script *script, uint64_t from_ns, uint64_t to_ns)
{
	struct rls_event_source *source, *part;
	struct rls_report *report;

	assert_int_equal(
		rls_memory_source_new(script->events, script->count, script->strings, &source), 0);
	assert_int_equal(rls_slice_source_new(source, from_ns, to_ns, &part), 0);
	assert_int_equal(rls_report_build(part, &report), 0);
	part->free(part);
	return report;
}

static void test_what_holds_for_the_whole_is_kept_for_a_part(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	report = cut(&script, 1000, 4000);
	assert_int_equal(report->threads[0].wall_ns, 3000);
	assert_int_equal(report->overhead.budget.percent, 2);
	assert_int_equal(report->overhead.budget.windows, 1);
	assert_int_equal(report->loss_count, 1);
	assert_int_equal(report->losses[0].dropped, 3);
	rls_report_free(report);
	script_end(&script);
}

static void test_a_part_between_windows_is_sampled(void **unused)
{
	const struct rls_breakdown_row *row;
	struct rls_report *report;
	struct script script;

	begin(&script);
	report = cut(&script, 10000, 17000);
	assert_int_equal(report->overhead.budget.traced_ns, 0);
	assert_int_equal(report->overhead.budget.windows, 0);
	assert_int_equal(report->overhead.budget.samples, 1);
	row = find_row(report, 1, 1, "", "step", "python", RLS_RESOURCE_CPU);
	assert_non_null(row);
	assert_int_equal(row->method, RLS_METHOD_SAMPLED);
	assert_int_equal(row->wall_ns, 7000);
	rls_report_free(report);
	script_end(&script);
}

/* The window is open there, but the thread has had no event in it yet. */
static void test_a_thread_not_yet_seen_in_a_window_is_sampled(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	report = cut(&script, 19000, 22000);
	assert_int_equal(report->overhead.budget.traced_ns, 2000);
	assert_int_equal(report->overhead.budget.windows, 1);
	/* There were none before the thread's first event in the window. */
	assert_int_equal(
		transition_count(report, 1, "step", RLS_CATEGORY_BACKEND, RLS_CATEGORY_PYTHON), 1);
	rls_report_free(report);
	script_end(&script);
}

static void test_parts_sum_to_the_whole(void **unused)
{
	struct script script;

	begin(&script);
	for (uint64_t at_ns = STEP_NS; at_ns < END_NS; at_ns += STEP_NS / 2) {
		struct rls_report *first = cut(&script, 0, at_ns);
		struct rls_report *rest = cut(&script, at_ns, UINT64_MAX);

		assert_int_equal(first->threads[0].wall_ns, at_ns);
		assert_int_equal(rest->threads[0].wall_ns, END_NS - at_ns);
		assert_int_equal(first->overhead.budget.traced_ns + rest->overhead.budget.traced_ns,
				 8000 + 3000);
		assert_int_equal(first->overhead.budget.samples + rest->overhead.budget.samples, 3);
		rls_report_free(first);
		rls_report_free(rest);
	}
	script_end(&script);
}

/* Two threads, one seen in the window and one not: each is as it was. */
static void test_each_thread_begins_as_it_was(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_thread(&script, 0, 1, 2);
	add_category(&script, 0, 1, 2, RLS_CATEGORY_SIMULATOR);
	report = cut(&script, 21000, 22000);
	assert_int_equal(report->thread_count, 2);
	assert_int_equal(report->overhead.budget.traced_ns, 1000);
	assert_int_equal(find_row(report, 1, 1, "", "step", "python", RLS_RESOURCE_CPU)->method,
			 RLS_METHOD_TRACED);
	assert_int_equal(find_row(report, 1, 1, "", "step", "backend", RLS_RESOURCE_CPU)->wall_ns,
			 500);
	assert_int_equal(find_row(report, 1, 2, "", "", "simulator", RLS_RESOURCE_CPU)->method,
			 RLS_METHOD_SAMPLED);
	rls_report_free(report);
	script_end(&script);
}

/* A stack is described once, long before the samples that are taken in it. */
static void test_stacks_described_before_a_part_are_known_in_it(void **unused)
{
	struct rls_report *report;
	struct rls_event *event;
	struct script script;

	begin(&script);
	event = script_add(&script, RLS_EVENT_FRAME, 0, 0, 0);
	event->frame.id = 1;
	event->frame.function = script_string(&script, "train");
	event->frame.file = script_string(&script, "train.py");
	event = script_add(&script, RLS_EVENT_SAMPLE, 6000, 1, 1);
	event->sample.frame = 1;
	event->sample.ns = 100;
	report = cut(&script, 4000, 7000);
	assert_int_equal(report->function_count, 1);
	assert_string_equal(report->functions[0].function, "train");
	rls_report_free(report);
	script_end(&script);
}

/* One thread in Python from 0 on, and in the backend in [10000, 12000). */
static void begin_plain(struct script *script)
{
	script_begin(script);
	add_process(script, 0, 1, "p");
	add_thread(script, 0, 1, 1);
	add_category(script, 0, 1, 1, RLS_CATEGORY_PYTHON);
	add_category(script, 10000, 1, 1, RLS_CATEGORY_BACKEND);
	add_category(script, 12000, 1, 1, RLS_CATEGORY_PYTHON);
	add_end(script, END_NS);
}

/* A report begins at the thread's last edge: one that lies within the part is all of it. */
static void test_a_report_since_an_edge_in_a_part_is_whole(void **unused)
{
	const struct rls_breakdown_row *row;
	struct rls_report *report;
	struct script script;

	begin_plain(&script);
	add_off_cpu(&script, 12000, 1, 1, 1900);
	add_hits(&script, 12000, 1, 1, 10, 1500);
	report = cut(&script, 9000, UINT64_MAX);
	row = find_row(report, 1, 1, "", "", "backend", RLS_RESOURCE_CPU);
	assert_int_equal(row->on_cpu_ns, 100);
	assert_int_equal(row->corrected_ns, 500);
	assert_int_equal(report->overhead.hits, 10);
	rls_report_free(report);
	script_end(&script);
}

/* One of two waits was recorded, and stands for both. */
static void test_a_wait_that_began_before_a_part_is_clipped(void **unused)
{
	struct rls_report *report;
	struct rls_event *event;
	struct script script;

	begin_plain(&script);
	event = script_add(&script, RLS_EVENT_SAMPLE, 6000, 1, 1);
	event->sample.kind = RLS_SAMPLE_WAIT_LOCK;
	event->sample.ns = 2 * 4000;
	event->sample.every = 2;
	report = cut(&script, 5000, UINT64_MAX);
	assert_int_equal(report->line_count, 1);
	assert_int_equal(report->lines[0].times.waiting_ns, 2 * 1000);
	rls_report_free(report);
	script_end(&script);
}

/* Reports come after what they tell of: of the part's last time, after the part. */
static void test_what_is_reported_after_a_part_counts_in_it(void **unused)
{
	const struct rls_breakdown_row *row;
	struct rls_report *report;
	struct script script;

	begin_plain(&script);
	add_off_cpu(&script, 10000, 1, 1, 10000);
	add_hits(&script, 10000, 1, 1, 1000, 5000);
	report = cut(&script, 2000, 8000);
	row = find_row(report, 1, 1, "", "", "python", RLS_RESOURCE_CPU);
	assert_int_equal(row->wall_ns, 6000);
	assert_int_equal(row->on_cpu_ns, 0);
	assert_int_equal(row->corrected_ns, 3000);
	assert_int_equal(report->overhead.hits, 600);
	assert_true(report->complete);
	rls_report_free(report);
	script_end(&script);
}

/* An edge begins another report, a thread that lives later has none of the part's time. */
static void test_what_tells_of_later_does_not_count_in_a_part(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin_plain(&script);
	add_off_cpu(&script, 12000, 1, 1, 2000);
	add_hits(&script, 12000, 1, 1, 1000, 2000);
	add_thread(&script, 11000, 1, 2);
	add_off_cpu(&script, 12000, 1, 2, 12000);
	add_off_cpu(&script, 12000, 2, 3, 12000);
	report = cut(&script, 2000, 8000);
	assert_int_equal(report->process_count, 1);
	assert_int_equal(report->thread_count, 1);
	assert_int_equal(report->threads[0].on_cpu_ns, 6000);
	assert_int_equal(report->overhead.hits, 0);
	rls_report_free(report);
	script_end(&script);
}

/* They are nothing in the whole, where the ends are seen. */
static void test_what_trails_after_an_end_begins_no_life(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin_plain(&script);
	add_thread(&script, 0, 1, 2);
	script_add(&script, RLS_EVENT_THREAD_END, 1000, 1, 2);
	add_process(&script, 0, 2, "ended");
	add_thread(&script, 0, 2, 3);
	script_add(&script, RLS_EVENT_PROCESS_END, 1000, 2, 0);
	add_off_cpu(&script, 3000, 1, 2, 1000);
	add_hits(&script, 3000, 1, 2, 1, 1000);
	add_category(&script, 3000, 2, 3, RLS_CATEGORY_PYTHON);
	report = cut(&script, 2000, 8000);
	assert_int_equal(report->process_count, 1);
	assert_int_equal(report->thread_count, 1);
	rls_report_free(report);
	script_end(&script);
}

static void test_a_report_without_a_share_begins_a_life(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin_plain(&script);
	add_hits(&script, 2000, 1, 2, 0, 1000);
	report = cut(&script, 2000, 8000);
	assert_int_equal(report->thread_count, 2);
	assert_int_equal(report->threads[1].wall_ns, 6000);
	rls_report_free(report);
	script_end(&script);
}

static void test_a_wait_that_ends_after_a_part_is_clipped(void **unused)
{
	struct rls_report *report;
	struct rls_event *event;
	struct script script;

	begin_plain(&script);
	event = script_add(&script, RLS_EVENT_SAMPLE, 9000, 1, 1);
	event->sample.kind = RLS_SAMPLE_WAIT_LOCK;
	event->sample.ns = 4000;
	event = script_add(&script, RLS_EVENT_SAMPLE, 9500, 1, 1);
	event->sample.kind = RLS_SAMPLE_PYTHON;
	event->sample.ns = 4000;
	report = cut(&script, 6000, 8000);
	assert_int_equal(report->line_count, 1);
	assert_int_equal(report->lines[0].times.waiting_ns, 2000);
	assert_int_equal(report->lines[0].times.samples, 1);
	rls_report_free(report);
	script_end(&script);
}

/* Records are delivered late: the work is the ended process's, which is not alive for it. */
static void test_work_of_an_ended_process_does_not_revive_it(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_process(&script, 0, 2, "ended");
	add_gpu(&script, 2000, 7000, 2, RLS_GPU_KERNEL, 0);
	add_gpu(&script, 2500, 8000, 2, RLS_GPU_KERNEL, 0);
	add_process(&script, 0, 3, "late");
	add_gpu(&script, 6000, 7000, 3, RLS_GPU_KERNEL, 0);
	add_gpu(&script, 7000, 8000, 3, RLS_GPU_KERNEL, 0);
	script_add(&script, RLS_EVENT_PROCESS_END, 3000, 3, 0);
	script_add(&script, RLS_EVENT_PROCESS_END, 3000, 2, 0);
	report = cut(&script, 4000, 10000);
	assert_int_equal(report->process_count, 3);
	assert_string_equal(report->processes[1].name, "ended");
	assert_int_equal(report->processes[1].start_ns, report->processes[1].end_ns);
	assert_string_equal(report->processes[2].name, "late");
	assert_int_equal(report->processes[2].start_ns, report->processes[2].end_ns);
	assert_int_equal(report->gpu_count, 2);
	assert_int_equal(report->gpu[0].busy_ns, 4000);
	assert_int_equal(report->gpu[1].busy_ns, 2000);
	rls_report_free(report);
	script_end(&script);
}

/* What has the pid since is another process, without that work. */
static void test_work_of_an_ended_process_is_not_its_successors(void **unused)
{
	struct rls_report *report;
	struct script script;

	begin(&script);
	add_process(&script, 0, 2, "ended");
	add_gpu(&script, 2000, 7000, 2, RLS_GPU_KERNEL, 0);
	script_add(&script, RLS_EVENT_PROCESS_END, 3000, 2, 0);
	add_process(&script, 3500, 2, "successor");
	report = cut(&script, 4000, 10000);
	assert_int_equal(report->process_count, 3);
	for (size_t i = 0; i < report->process_count; i++) {
		const struct rls_process_entry *process = &report->processes[i];

		assert_int_equal(process->end_ns - process->start_ns,
				 strcmp(process->name, "ended") ? 6000 : 0);
	}
	assert_int_equal(report->gpu_count, 1);
	assert_true(report->gpu[0].smi_style_percent == 0);
	rls_report_free(report);
	script_end(&script);
}

/* Readers of the time line take a process's name at the time of its first work. */
static void test_a_process_is_named_before_its_work(void **unused)
{
	struct rls_event_source *source, *part;
	bool is_named = false, worked = false;
	struct rls_event event;
	struct script script;

	begin(&script);
	add_gpu(&script, 2000, 7000, 1, RLS_GPU_KERNEL, 0);
	assert_int_equal(
		rls_memory_source_new(script.events, script.count, script.strings, &source), 0);
	assert_int_equal(rls_slice_source_new(source, 4000, UINT64_MAX, &part), 0);
	while (part->next(part, &event) > 0) {
		is_named |= event.kind == RLS_EVENT_PROCESS;
		worked |= event.kind == RLS_EVENT_GPU;
		assert_true(is_named || !worked);
	}
	assert_true(worked);
	part->free(part);
	script_end(&script);
}

/* A time that could not be collected is 0: the trace begins later. */
static void test_impossible_work_is_not_where_a_trace_begins(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_gpu(&script, 0, 5, 1, RLS_GPU_KERNEL, 0);
	add_process(&script, 100000, 1, "p");
	add_thread(&script, 100000, 1, 1);
	add_end(&script, 110000);
	report = cut(&script, 0, 5000);
	assert_int_equal(report->thread_count, 1);
	assert_int_equal(report->threads[0].wall_ns, 5000);
	rls_report_free(report);
	script_end(&script);
}

static void add_memory(struct script *script, uint64_t time_ns, uint64_t born, uint64_t freed)
{
	struct rls_event *event = script_add(script, RLS_EVENT_MEMORY_LINE, time_ns, 1, 0);

	event->memory_line.of.line = 7;
	event->memory_line.allocs = born / 10;
	event->memory_line.alloc_bytes = born;
	event->memory_line.frees = freed / 10;
	event->memory_line.freed_bytes = freed;
	event->memory_line.peak_bytes = born;
}

/* Sums are from the recording's beginning on; a part has what they grew by in it. */
static void test_memory_of_parts_sums_to_the_whole(void **unused)
{
	struct rls_report *first, *second, *whole;
	struct script script;

	begin(&script);
	add_memory(&script, 2000, 300, 0);
	add_memory(&script, 9000, 500, 100);
	add_memory(&script, 15000, 900, 150);
	add_memory(&script, 29000, 1000, 800);
	whole = cut(&script, 0, UINT64_MAX);
	first = cut(&script, 0, 10000);
	second = cut(&script, 10000, UINT64_MAX);
	assert_int_equal(whole->memory_lines[0].alloc_bytes, 1000);
	assert_int_equal(whole->memory_lines[0].peak_bytes, 1000);
	assert_int_equal(first->memory_lines[0].alloc_bytes, 500);
	assert_int_equal(first->memory_lines[0].live_bytes, 400);
	assert_int_equal(first->memory_lines[0].allocs + second->memory_lines[0].allocs,
			 whole->memory_lines[0].allocs);
	/* 700 bytes were freed in it, of blocks that it does not know in part. */
	assert_int_equal(second->memory_lines[0].alloc_bytes, 500);
	assert_int_equal(second->memory_lines[0].freed_bytes, 500);
	assert_int_equal(second->memory_lines[0].live_bytes, 0);
	assert_int_equal(second->memory_lines[0].peak_bytes, 350);
	rls_report_free(first);
	rls_report_free(second);
	rls_report_free(whole);
	first = cut(&script, 16000, 20000);
	assert_int_equal(first->memory_line_count, 0);
	rls_report_free(first);
	script_end(&script);
}

static void add_copies(struct script *script, uint64_t time_ns, uint64_t copies)
{
	struct rls_event *event = script_add(script, RLS_EVENT_COPY_LINE, time_ns, 1, 0);

	event->copy_line.of.line = 7;
	event->copy_line.copies = copies;
	event->copy_line.bytes = 100 * copies;
}

static void test_copies_of_parts_sum_to_the_whole(void **unused)
{
	struct rls_report *first, *second;
	struct script script;

	begin(&script);
	add_copies(&script, 2000, 3);
	add_copies(&script, 9000, 5);
	add_copies(&script, 15000, 9);
	first = cut(&script, 0, 10000);
	second = cut(&script, 10000, UINT64_MAX);
	assert_int_equal(first->copies[0].copies, 5);
	assert_int_equal(second->copies[0].copies, 4);
	assert_int_equal(second->copies[0].bytes, 400);
	rls_report_free(first);
	rls_report_free(second);
	first = cut(&script, 16000, 20000);
	assert_int_equal(first->copy_count, 0);
	rls_report_free(first);
	script_end(&script);
}

static void test_a_part_beyond_the_end_is_refused(void **unused)
{
	struct rls_event_source *source, *part;
	struct rls_report *report;
	struct script script;

	begin(&script);
	assert_int_equal(
		rls_memory_source_new(script.events, script.count, script.strings, &source), 0);
	assert_int_equal(rls_slice_source_new(source, 2 * END_NS, UINT64_MAX, &part), 0);
	assert_int_equal(rls_report_build(part, &report), -ERANGE);
	part->free(part);
	script_end(&script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_holds_for_the_whole_is_kept_for_a_part),
		cmocka_unit_test(test_a_part_between_windows_is_sampled),
		cmocka_unit_test(test_a_thread_not_yet_seen_in_a_window_is_sampled),
		cmocka_unit_test(test_parts_sum_to_the_whole),
		cmocka_unit_test(test_each_thread_begins_as_it_was),
		cmocka_unit_test(test_stacks_described_before_a_part_are_known_in_it),
		cmocka_unit_test(test_a_report_since_an_edge_in_a_part_is_whole),
		cmocka_unit_test(test_a_wait_that_began_before_a_part_is_clipped),
		cmocka_unit_test(test_what_is_reported_after_a_part_counts_in_it),
		cmocka_unit_test(test_what_tells_of_later_does_not_count_in_a_part),
		cmocka_unit_test(test_what_trails_after_an_end_begins_no_life),
		cmocka_unit_test(test_a_report_without_a_share_begins_a_life),
		cmocka_unit_test(test_a_wait_that_ends_after_a_part_is_clipped),
		cmocka_unit_test(test_work_of_an_ended_process_does_not_revive_it),
		cmocka_unit_test(test_work_of_an_ended_process_is_not_its_successors),
		cmocka_unit_test(test_a_process_is_named_before_its_work),
		cmocka_unit_test(test_impossible_work_is_not_where_a_trace_begins),
		cmocka_unit_test(test_memory_of_parts_sums_to_the_whole),
		cmocka_unit_test(test_copies_of_parts_sum_to_the_whole),
		cmocka_unit_test(test_a_part_beyond_the_end_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
