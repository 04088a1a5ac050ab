/* Time by layer: self and cumulative time, calls, sums that are a thread's time, parts of a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/event/memory_source.h"
#include "analysis/timeline/slice_source.h"
#include "tests/analysis/breakdown/script.h"

#define LAYERS 7
#define ROUNDS 60

static void name_layer(struct script *script, uint32_t pid, uint32_t id, const char *path,
		       const char *type)
{
	struct rls_event *event = script_add(script, RLS_EVENT_LAYER_NAME, 0, pid, 0);

	event->layer_name.id = id;
	event->layer_name.path = script_string(script, path);
	event->layer_name.type = script_string(script, type);
}

static struct rls_event *add_layer(struct script *script, uint64_t time_ns, uint32_t tid,
				   uint32_t id, uint32_t depth, bool begun)
{
	struct rls_event *event = script_add(script, RLS_EVENT_LAYER, time_ns, 1, tid);

	event->layer.id = id;
	event->layer.depth = depth;
	event->layer.begun = begun;
	event->layer.pass = id ? RLS_PASS_FORWARD : RLS_PASS_OUTSIDE;
	return event;
}

static const struct rls_layer_row *find_layer(const struct rls_report *report, uint64_t id)
{
	for (size_t i = 0; i < report->layer_count; i++)
		if (report->layers[i].id == id)
			return &report->layers[i];
	return NULL;
}

static void assert_layer(const struct rls_report *report, uint64_t id, uint64_t calls,
			 uint64_t self_ns, uint64_t cumulative_ns)
{
	const struct rls_layer_row *row = find_layer(report, id);

	assert_non_null(row);
	assert_int_equal(row->calls, calls);
	assert_int_equal(row->self_ns, self_ns);
	assert_int_equal(row->cumulative_ns, cumulative_ns);
}

/*  0     10    20    50    60  70    100
 *  |------|--A--|--B--|--A--|-A-|------|     the second A is called by the first */
static void begin(struct script *script)
{
	script_begin(script);
	add_process(script, 0, 1, "p");
	add_thread(script, 0, 1, 1);
	name_layer(script, 1, 1, "Net", "Net");
	name_layer(script, 1, 2, "fc.0", "Linear");
	add_category(script, 0, 1, 1, RLS_CATEGORY_PYTHON);
	add_layer(script, 10, 1, 1, 1, true);
	add_layer(script, 20, 1, 2, 2, true);
	add_layer(script, 50, 1, 1, 1, false);
	add_layer(script, 60, 1, 1, 2, true);
	add_layer(script, 65, 1, 1, 1, false);
	add_layer(script, 70, 1, 0, 0, false);
	add_hits(script, 70, 1, 1, 6, 4);
	add_end(script, 100);
}

static void test_self_and_cumulative_time(void **unused)
{
	const struct rls_layer_row *row;
	struct rls_report *report;
	struct script script;

	begin(&script);
	report = script_report(&script);
	assert_int_equal(report->layer_count, 3);
	assert_layer(report, 1, 2, 30, 60);
	assert_layer(report, 2, 1, 30, 30);
	assert_layer(report, RLS_COUNT_UNKNOWN, 0, 40, 40);
	row = find_layer(report, 2);
	assert_string_equal(row->path, "fc.0");
	assert_string_equal(row->raw_path, "fc.0");
	assert_string_equal(row->type, "Linear");
	assert_int_equal(row->index, 1);
	assert_int_equal(row->parent, RLS_COUNT_UNKNOWN);
	/* Hits are taken from the time since the event before. */
	assert_int_equal(find_layer(report, 1)->corrected_ns, 26);
	assert_int_equal(row->corrected_ns, 30);
	assert_int_equal(find_layer(report, RLS_COUNT_UNKNOWN)->corrected_ns, 40);
	rls_report_free(report);
	script_end(&script);
}

static void test_grouping(void **unused)
{
	static const enum rls_group groups[] = {RLS_GROUP_LAYER, RLS_GROUP_LAYER_TYPE,
						RLS_GROUP_PASS, RLS_GROUP_PROCESS};
	static const size_t rows[] = {3, 3, 2, 3};

	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
		struct rls_report *report;
		struct script script;
		uint64_t sum_ns = 0;

		begin(&script);
		report = script_report(&script);
		rls_report_group(report, groups[i]);
		assert_int_equal(report->layer_count, rows[i]);
		for (size_t k = 0; k < report->layer_count; k++)
			sum_ns += report->layers[k].self_ns;
		assert_int_equal(sum_ns, 100);
		if (groups[i] == RLS_GROUP_PASS) {
			assert_int_equal(report->layers[0].id, RLS_COUNT_UNKNOWN);
			assert_string_equal(report->layers[0].type, "");
			assert_int_equal(report->layers[1].calls, 3);
		}
		rls_report_free(report);
		script_end(&script);
	}
}

/* A begin or an end that was lost costs precision until the next event, not longer. */
static void test_lost_events(void **unused)
{
	struct rls_report *report;
	struct script script;

	script_begin(&script);
	add_process(&script, 0, 1, "p");
	add_thread(&script, 0, 1, 1);
	add_layer(&script, 10, 1, 3, 3, true); /* two begins were lost */
	add_layer(&script, 20, 1, 2, 2, false);
	add_layer(&script, 30, 1, 4, 2, true); /* an end was */
	add_layer(&script, 40, 1, 0, 0, false); /* and two more */
	add_layer(&script, 45, 1, 5, RLS_LAYER_DEPTH_MAX + 9, true);
	add_layer(&script, 50, 1, 0, 0, false)->layer.pass = RLS_PASS_UNKNOWN;
	add_end(&script, 60);
	report = script_report(&script);
	assert_layer(report, 3, 1, 10, 10);
	assert_layer(report, 2, 0, 10, 10);
	assert_layer(report, 4, 1, 10, 10);
	assert_layer(report, 5, 1, 5, 5);
	assert_int_equal(report->layer_count, 6);
	for (size_t i = 0; i < report->layer_count; i++) {
		assert_string_equal(report->layers[i].path, "");
		if (report->layers[i].pass == RLS_PASS_UNKNOWN)
			assert_int_equal(report->layers[i].self_ns, 10);
	}
	rls_report_free(report);
	script_end(&script);
}

static void test_traces_without_layers_have_none(void **unused)
{
	struct rls_report *report;
	struct script script;
	char *json;

	script_begin_step(&script, 0.1);
	add_end(&script, 100);
	report = script_report(&script);
	assert_int_equal(report->layer_count, 0);
	json = report_json(report);
	assert_null(strstr(json, "\"layers\""));
	free(json);
	rls_report_free(report);
	script_end(&script);
}

/* --- properties --------------------------------------------------------------------- */

struct maker {
	struct script script;
	uint64_t state, now_ns;
	uint32_t depth[4], stack[4][RLS_LAYER_DEPTH_MAX + 1];
};

static uint32_t draw(struct maker *maker, uint32_t below)
{
	maker->state = maker->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(maker->state >> 33) % below;
}

static void move_layer(struct maker *maker, uint32_t tid)
{
	uint32_t *depth = &maker->depth[tid], *stack = maker->stack[tid];
	bool lost = !draw(maker, 10);

	if (*depth < 12 && draw(maker, 2)) {
		stack[++*depth] = 1 + draw(maker, LAYERS);
		if (!lost)
			add_layer(&maker->script, maker->now_ns, tid, stack[*depth], *depth, true);
		return;
	}
	*depth -= *depth && draw(maker, 3) ? 1 : *depth;
	if (!lost)
		add_layer(&maker->script, maker->now_ns, tid, *depth ? stack[*depth] : 0, *depth,
			  false);
}

static void make_event(struct maker *maker)
{
	static const char *const names[] = {"", "step", "learn"};
	struct script *script = &maker->script;
	uint32_t tid = 1 + draw(maker, 3);

	maker->now_ns += draw(maker, 1000);
	switch (draw(maker, 12)) {
	case 0:
		add_operation(script, maker->now_ns, 1, tid, names[draw(maker, 3)]);
		break;
	case 1:
		add_phase(script, maker->now_ns, 1, names[draw(maker, 3)]);
		break;
	case 2:
		add_category(script, maker->now_ns, 1, tid, draw(maker, RLS_CATEGORY_MAX));
		break;
	case 3:
		add_hits(script, maker->now_ns, 1, tid, 1 + draw(maker, 4), draw(maker, 400));
		break;
	case 4:
		add_off_cpu(script, maker->now_ns, 1, tid, draw(maker, 300));
		break;
	case 5:
		add_gpu(script, maker->now_ns, maker->now_ns + 1 + draw(maker, 2000), 1,
			RLS_GPU_KERNEL, 0);
		break;
	default:
		move_layer(maker, tid);
	}
}

static void make(struct maker *maker, uint64_t seed)
{
	*maker = (struct maker){.state = seed};
	script_begin(&maker->script);
	add_process(&maker->script, 0, 1, "p");
	for (uint32_t tid = 1; tid < 4; tid++) {
		add_thread(&maker->script, 0, 1, tid);
		add_category(&maker->script, 0, 1, tid, RLS_CATEGORY_PYTHON);
	}
	for (uint32_t id = 1; id <= LAYERS; id++)
		name_layer(&maker->script, 1, id, "layer", id % 2 ? "Linear" : "ReLU");
	for (int i = 0; i < 300; i++)
		make_event(maker);
	add_end(&maker->script, maker->now_ns + 500);
}

static void assert_sums(const struct rls_report *report)
{
	for (size_t t = 0; t < report->thread_count; t++) {
		const struct rls_thread_entry *thread = &report->threads[t];
		uint64_t self_ns = 0, on_cpu_ns = 0;

		for (size_t i = 0; i < report->layer_count; i++) {
			const struct rls_layer_row *row = &report->layers[i];

			if (row->tid != thread->tid)
				continue;
			self_ns += row->self_ns;
			on_cpu_ns += row->on_cpu_ns;
			assert_true(row->cumulative_ns >= row->self_ns);
			assert_true(row->cumulative_ns <= thread->wall_ns);
			assert_true(row->corrected_ns <= row->self_ns);
		}
		assert_int_equal(self_ns, thread->wall_ns);
		assert_int_equal(on_cpu_ns, thread->on_cpu_ns);
	}
}

static void test_rows_sum_to_the_threads_time(void **unused)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct rls_report *report;
		struct maker maker;

		make(&maker, seed);
		report = script_report(&maker.script);
		assert_true(report->layer_count > LAYERS);
		assert_sums(report);
		rls_report_free(report);
		script_end(&maker.script);
	}
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

/* Of one layer, over threads, phases and operations. */
static void add_up(const struct rls_report *report, uint64_t id, uint64_t sums[3])
{
	for (size_t i = 0; i < report->layer_count; i++) {
		if (report->layers[i].id != id)
			continue;
		sums[0] += report->layers[i].self_ns;
		sums[1] += report->layers[i].cumulative_ns;
		sums[2] += report->layers[i].calls;
	}
}

static void test_parts_sum_to_the_whole(void **unused)
{
	for (uint64_t seed = 1; seed <= ROUNDS / 4; seed++) {
		struct rls_report *whole, *first, *rest;
		struct maker maker;
		uint64_t at_ns;

		make(&maker, seed);
		at_ns = 1 + draw(&maker, (uint32_t)maker.now_ns - 1);
		whole = script_report(&maker.script);
		first = cut(&maker.script, 0, at_ns);
		rest = cut(&maker.script, at_ns, UINT64_MAX);
		assert_sums(first);
		assert_sums(rest);
		for (uint64_t id = 1; id <= LAYERS; id++) {
			uint64_t all[3] = {0}, parts[3] = {0};

			add_up(whole, id, all);
			add_up(first, id, parts);
			add_up(rest, id, parts);
			assert_memory_equal(all, parts, sizeof(all));
		}
		rls_report_free(whole);
		rls_report_free(first);
		rls_report_free(rest);
		script_end(&maker.script);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_self_and_cumulative_time),
		cmocka_unit_test(test_grouping),
		cmocka_unit_test(test_lost_events),
		cmocka_unit_test(test_traces_without_layers_have_none),
		cmocka_unit_test(test_rows_sum_to_the_threads_time),
		cmocka_unit_test(test_parts_sum_to_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
