/* The invariants of the breakdown, on thousands of small random traces. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/event/memory_source.h"
#include "analysis/report/tables.h"
#include "analysis/timeline/slice_source.h"
#include "tests/analysis/breakdown/reference.h"

#define CASES 3000

/* xorshift64: the cases are the same everywhere. */
static uint64_t state;

static uint64_t below(uint64_t bound)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % bound;
}

struct span {
	uint64_t start, end;
};

static void random_thread_events(struct script *script, uint32_t pid, uint32_t tid,
				 struct span life, unsigned int density)
{
	for (uint64_t t = life.start; t <= life.end; t++) {
		if (!below(density))
			add_category(script, t, pid, tid, below(RLS_CATEGORY_MAX));
		if (!below(density))
			add_operation(script, t, pid, tid, reference_name(below(REFERENCE_NAMES)));
		if (!below(density + 2))
			add_hits(script, t, pid, tid, 1 + below(3), below(8));
		if (!below(density + 3))
			add_off_cpu(script, t, pid, tid, below(8));
	}
}

/* Launches of one process have their own ids; its work may name them, late or never. */
static void random_gpu(struct script *script, uint32_t pid, uint32_t tid, struct span life)
{
	uint64_t launches = below(6);

	for (uint64_t id = 1; id <= launches; id++)
		add_launch(script, life.start + below(life.end - life.start + 1), pid, tid, id);
	for (uint64_t n = below(8); n; n--) {
		uint64_t start = 1 + below(REFERENCE_TIMES - 16);

		add_gpu(script, start, start + below(12), pid, below(RLS_GPU_KIND_MAX),
			below(launches + 3));
	}
}

static void random_process(struct script *script, uint32_t pid, uint64_t end)
{
	unsigned int density = 2 + below(8);
	uint32_t threads = 1 + below(REFERENCE_TIDS);
	struct span first = {0};

	add_process(script, 0, pid, "p");
	for (uint64_t t = 0; t < end; t++) {
		if (!below(12))
			add_phase(script, t, pid, reference_name(below(REFERENCE_NAMES)));
	}
	for (uint32_t tid = 1; tid <= threads; tid++) {
		struct span life = {.start = below(end / 2)};

		life.end = life.start + below(end - life.start + 1);
		if (tid == 1)
			first = life;
		if (below(4))
			add_thread(script, life.start, pid, tid);
		random_thread_events(script, pid, tid, life, density);
		if (life.end < end || below(2))
			script_add(script, RLS_EVENT_THREAD_END, life.end, pid, tid);
	}
	random_gpu(script, pid, 1, first);
}

static void random_script(struct script *script, uint64_t seed)
{
	uint64_t end = 8 + (seed * 7919) % 40;

	state = seed * 0x9e3779b97f4a7c15ULL + 1;
	script_begin(script);
	random_process(script, 1, end);
	if (below(2))
		random_process(script, 2, end);
	add_end(script, end);
}

static void shuffle(struct script *script)
{
	for (size_t i = script->count; i > 1; i--) {
		size_t k = below(i);
		struct rls_event event = script->events[k];

		script->events[k] = script->events[i - 1];
		script->events[i - 1] = event;
	}
}

/* --- against the reference ---------------------------------------------------------- */

static int index_of(const char *name)
{
	for (int i = 0; i < REFERENCE_NAMES; i++) {
		if (!strcmp(name, reference_name(i)))
			return i;
	}
	fail_msg("a name from nowhere: %s", name);
	return 0;
}

/* Takes what a row says off the reference, so that in the end nothing may be left. */
static void subtract_row(struct reference *left, const struct rls_breakdown_row *row)
{
	int phase = index_of(row->phase);
	struct reference_cell *cell;

	if (row->resource == RLS_RESOURCE_GPU) {
		assert_int_equal(row->tid, 0);
		left->gpu_alone[row->pid - 1][phase] -= row->wall_ns;
		return;
	}
	cell = &left->cells[row->pid - 1][row->tid - 1][phase][index_of(row->operation)]
			   [row->category];
	assert_true(row->wall_ns > 0);
	assert_true(row->on_cpu_ns <= row->wall_ns);
	assert_true(row->corrected_ns <= row->wall_ns);
	if (row->resource == RLS_RESOURCE_CPU_GPU)
		assert_int_equal(row->corrected_ns, row->wall_ns);
	cell->wall[row->resource == RLS_RESOURCE_CPU_GPU] -= row->wall_ns;
	assert_true(row->induced_wait_ns <= row->wall_ns - row->on_cpu_ns);
	cell->subtracted -= row->wall_ns - row->corrected_ns - row->induced_wait_ns;
	cell->off_cpu -= row->wall_ns - row->on_cpu_ns;
}

static void subtract_gpu(struct reference *left, const struct rls_gpu_entry *gpu)
{
	left->busy[gpu->pid - 1] -= gpu->busy_ns;
	for (size_t i = 0; i < gpu->operation_count; i++) {
		const struct rls_gpu_operation *operation = &gpu->operations[i];

		left->launched[gpu->pid - 1][index_of(operation->phase)]
			      [index_of(operation->operation)] -= operation->busy_ns;
	}
}

static void test_equals_the_reference(void **unused)
{
	static const struct reference nothing;
	static struct reference left;

	for (uint64_t seed = 1; seed <= CASES; seed++) {
		struct rls_report *report;
		struct script script;

		random_script(&script, seed);
		reference_compute(&script, &left);
		shuffle(&script);
		report = script_report(&script);
		for (size_t i = 0; i < report->breakdown_count; i++)
			subtract_row(&left, &report->breakdown[i]);
		for (size_t i = 0; i < report->transition_count; i++) {
			const struct rls_transition_row *row = &report->transitions[i];

			left.transitions[row->pid - 1][row->tid - 1][index_of(row->phase)]
					[index_of(row->operation)][row->from][row->to] -=
				row->count;
		}
		for (size_t i = 0; i < report->gpu_count; i++)
			subtract_gpu(&left, &report->gpu[i]);
		if (memcmp(&left, &nothing, sizeof(left)))
			fail_msg("seed %lu differs from the reference", (unsigned long)seed);
		/* But for random costs, which may well be more than there is time. */
		for (size_t i = 0; i < report->warning_count; i++)
			assert_non_null(strstr(report->warnings[i], "estimated cost"));
		rls_report_free(report);
		script_end(&script);
	}
}

/* --- invariants --------------------------------------------------------------------- */

static void test_rows_sum_to_the_threads_time(void **unused)
{
	for (uint64_t seed = 1; seed <= CASES; seed++) {
		struct rls_report *report;
		struct script script;

		random_script(&script, seed);
		report = script_report(&script);
		for (size_t i = 0; i < report->thread_count; i++) {
			const struct rls_thread_entry *thread = &report->threads[i];
			uint64_t wall = 0, on_cpu = 0;

			for (size_t k = 0; k < report->breakdown_count; k++) {
				const struct rls_breakdown_row *row = &report->breakdown[k];

				if (row->pid != thread->pid || row->tid != thread->tid)
					continue;
				wall += row->wall_ns;
				on_cpu += row->on_cpu_ns;
			}
			assert_int_equal(wall, thread->wall_ns);
			assert_int_equal(on_cpu, thread->on_cpu_ns);
		}
		rls_report_free(report);
		script_end(&script);
	}
}

/* With one thread every busy instant of the GPU is in exactly one row. */
static void test_gpu_rows_sum_to_the_union(void **unused)
{
	for (uint64_t seed = 1; seed <= CASES; seed++) {
		struct span life = {.start = 3, .end = 40};
		struct rls_report *report;
		uint64_t rows = 0, busy = 0;
		struct script script;

		state = seed * 0x9e3779b97f4a7c15ULL + 1;
		script_begin(&script);
		add_process(&script, 0, 1, "p");
		add_thread(&script, life.start, 1, 1);
		random_thread_events(&script, 1, 1, life, 4);
		random_gpu(&script, 1, 1, life);
		add_end(&script, 45);
		report = script_report(&script);
		for (size_t i = 0; i < report->breakdown_count; i++)
			rows += report->breakdown[i].resource == RLS_RESOURCE_CPU
					? 0
					: report->breakdown[i].wall_ns;
		for (size_t i = 0; i < report->gpu_count; i++)
			busy += report->gpu[i].busy_ns;
		assert_int_equal(rows, busy);
		rls_report_free(report);
		script_end(&script);
	}
}

static void test_order_in_the_file_does_not_matter(void **unused)
{
	for (uint64_t seed = 1; seed <= CASES / 10; seed++) {
		struct rls_report *report;
		struct script script;
		char *first, *second;

		random_script(&script, seed);
		report = script_report(&script);
		first = report_json(report);
		rls_report_free(report);
		shuffle(&script);
		report = script_report(&script);
		second = report_json(report);
		rls_report_free(report);
		assert_string_equal(first, second);
		free(first);
		free(second);
		script_end(&script);
	}
}

/* Two traces of a process each, merged, are the one trace of both. */
static void test_merging_equals_recording_together(void **unused)
{
	for (uint64_t seed = 1; seed <= CASES / 10; seed++) {
		struct script parts[2], whole;
		struct rls_report *reports[2], *report;
		char *merged, *together;
		uint32_t pid;

		state = seed;
		script_begin(&whole);
		random_process(&whole, 1, 30);
		random_process(&whole, 2, 30);
		add_end(&whole, 30);
		for (uint32_t p = 0; p < 2; p++) {
			parts[p] = whole;
			parts[p].count = 0;
			parts[p].events = calloc(whole.count, sizeof(*whole.events));
			for (size_t i = 0; i < whole.count; i++) {
				if (whole.events[i].pid == p + 1 || !whole.events[i].pid)
					parts[p].events[parts[p].count++] = whole.events[i];
			}
			reports[p] = script_report(&parts[p]);
			free(parts[p].events);
		}
		assert_int_equal(rls_report_merge(reports[0], reports[1], &pid), 0);
		rls_report_free(reports[1]);
		report = script_report(&whole);
		/* Shares of the whole, not of the parts, may be worth a warning. */
		reports[0]->warning_count = report->warning_count = 0;
		merged = report_json(reports[0]);
		together = report_json(report);
		assert_string_equal(merged, together);
		free(merged);
		free(together);
		rls_report_free(reports[0]);
		rls_report_free(report);
		script_end(&whole);
	}
}

static void sum_rows(const struct rls_report *report, struct rls_breakdown_row *sum,
		     uint64_t *transitions)
{
	*sum = (struct rls_breakdown_row){0};
	*transitions = 0;
	for (size_t i = 0; i < report->breakdown_count; i++) {
		sum->wall_ns += report->breakdown[i].wall_ns;
		sum->on_cpu_ns += report->breakdown[i].on_cpu_ns;
		sum->corrected_ns += report->breakdown[i].corrected_ns;
		rls_row_error_add(&sum->error, &report->breakdown[i].error);
	}
	for (size_t i = 0; i < report->transition_count; i++)
		*transitions += report->transitions[i].count;
}

static void test_grouping_keeps_the_sums(void **unused)
{
	for (uint64_t seed = 1; seed <= CASES / 10; seed++) {
		for (int group = RLS_GROUP_PROCESS; group < RLS_GROUP_MAX; group++) {
			struct rls_breakdown_row before, after;
			uint64_t transitions_before, transitions_after;
			struct rls_report *report;
			struct script script;

			random_script(&script, seed);
			report = script_report(&script);
			sum_rows(report, &before, &transitions_before);
			rls_report_group(report, group);
			sum_rows(report, &after, &transitions_after);
			assert_memory_equal(&before, &after, sizeof(before));
			assert_int_equal(transitions_before, transitions_after);
			rls_report_free(report);
			script_end(&script);
		}
	}
}

/* --- cutting ------------------------------------------------------------------------ */

static struct rls_report *report_part(const struct script *script, uint64_t from, uint64_t to)
{
	struct rls_event_source *source;
	struct rls_report *report;

	assert_int_equal(
		rls_memory_source_new(script->events, script->count, script->strings, &source), 0);
	assert_int_equal(rls_slice_source_new(source, from, to, &source), 0);
	assert_int_equal(rls_report_build(source, &report), 0);
	source->free(source);
	return report;
}

/* Takes a part's rows off the whole's. */
static void take_off(struct rls_report *whole, const struct rls_report *part)
{
	for (size_t i = 0; i < part->breakdown_count; i++) {
		const struct rls_breakdown_row *row = &part->breakdown[i];
		size_t k = 0;

		while (k < whole->breakdown_count &&
		       rls_table_compare(RLS_TABLE_BREAKDOWN, row, &whole->breakdown[k]))
			k++;
		assert_true(k < whole->breakdown_count);
		whole->breakdown[k].wall_ns -= row->wall_ns;
	}
	for (size_t i = 0; i < part->transition_count; i++) {
		const struct rls_transition_row *row = &part->transitions[i];
		size_t k = 0;

		while (k < whole->transition_count &&
		       rls_table_compare(RLS_TABLE_TRANSITIONS, row, &whole->transitions[k]))
			k++;
		assert_true(k < whole->transition_count);
		whole->transitions[k].count -= row->count;
	}
	for (size_t i = 0; i < part->thread_count; i++) {
		const struct rls_thread_entry *thread = &part->threads[i];
		size_t k = 0;

		while (k < whole->thread_count && (thread->pid != whole->threads[k].pid ||
						   thread->tid != whole->threads[k].tid))
			k++;
		assert_true(k < whole->thread_count);
		whole->threads[k].on_cpu_ns -= thread->on_cpu_ns;
	}
}

/* Wherever a trace is cut, its parts' times, waits and transitions are the whole's. */
static void test_parts_sum_to_the_whole(void **unused)
{
	for (uint64_t seed = 1; seed <= CASES / 3; seed++) {
		uint64_t end = 8 + (seed * 7919) % 40, first = 1 + seed % (end - 2);
		uint64_t second = first + 1 + seed % (end - first);
		struct rls_report *whole, *part;
		struct script script;

		random_script(&script, seed);
		whole = script_report(&script);
		part = report_part(&script, 0, first);
		take_off(whole, part);
		rls_report_free(part);
		/* GPU work may reach beyond the end mark: the last part has no end. */
		part = report_part(&script, first, second < end ? second : UINT64_MAX);
		take_off(whole, part);
		rls_report_free(part);
		if (second < end) {
			part = report_part(&script, second, UINT64_MAX);
			take_off(whole, part);
			rls_report_free(part);
		}
		for (size_t i = 0; i < whole->breakdown_count; i++)
			assert_int_equal(whole->breakdown[i].wall_ns, 0);
		for (size_t i = 0; i < whole->transition_count; i++)
			assert_int_equal(whole->transitions[i].count, 0);
		for (size_t i = 0; i < whole->thread_count; i++)
			assert_int_equal(whole->threads[i].on_cpu_ns, 0);
		rls_report_free(whole);
		script_end(&script);
	}
}

static uint64_t corrected_ns(const struct rls_report *report)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < report->breakdown_count; i++)
		ns += report->breakdown[i].corrected_ns;
	return ns;
}

/* Costs too: but for those under GPU work, which depend on where reports fall. */
static void test_parts_costs_sum_to_the_wholes(void **unused)
{
	for (uint64_t seed = 1; seed <= CASES; seed++) {
		struct span life = {.start = 3, .end = 40};
		uint64_t at = 1 + seed % 43;
		struct rls_report *whole, *first, *rest;
		struct script script;

		state = seed * 0x9e3779b97f4a7c15ULL + 1;
		script_begin(&script);
		add_process(&script, 0, 1, "p");
		add_thread(&script, life.start, 1, 1);
		random_thread_events(&script, 1, 1, life, 2 + seed % 8);
		add_end(&script, 45);
		whole = script_report(&script);
		first = report_part(&script, 0, at);
		rest = report_part(&script, at, UINT64_MAX);
		assert_int_equal(corrected_ns(first) + corrected_ns(rest), corrected_ns(whole));
		rls_report_free(whole);
		rls_report_free(first);
		rls_report_free(rest);
		script_end(&script);
	}
}

static void test_a_part_beyond_the_end_is_none(void **unused)
{
	struct rls_event_source *source;
	struct rls_report *report;
	struct script script;

	random_script(&script, 1);
	assert_int_equal(
		rls_memory_source_new(script.events, script.count, script.strings, &source), 0);
	assert_int_equal(rls_slice_source_new(source, 1000, UINT64_MAX, &source), 0);
	assert_int_equal(rls_report_build(source, &report), -ERANGE);
	source->free(source);
	script_end(&script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equals_the_reference),
		cmocka_unit_test(test_rows_sum_to_the_threads_time),
		cmocka_unit_test(test_gpu_rows_sum_to_the_union),
		cmocka_unit_test(test_order_in_the_file_does_not_matter),
		cmocka_unit_test(test_merging_equals_recording_together),
		cmocka_unit_test(test_grouping_keeps_the_sums),
		cmocka_unit_test(test_parts_sum_to_the_whole),
		cmocka_unit_test(test_parts_costs_sum_to_the_wholes),
		cmocka_unit_test(test_a_part_beyond_the_end_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
