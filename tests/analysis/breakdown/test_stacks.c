/* Stacks of operations: distinguished by all of them, summed by the innermost, entries counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/event/stack_tree.h"
#include "tests/analysis/breakdown/script.h"

/* "a;b;c", "" for none; of thread n in process n. */
static struct rls_event *enter(struct script *script, uint64_t time_ns, uint32_t tid,
			       const char *stack)
{
	struct rls_event *event = script_add(script, RLS_EVENT_OPERATION, time_ns, tid, tid);
	char copy[64], *rest = copy, *name;

	snprintf(copy, sizeof(copy), "%s", stack);
	while ((name = strtok_r(rest, ";", &rest)))
		event->operation.stack[event->operation.depth++] = script_string(script, name);
	return event;
}

static void go_on(struct script *script, uint64_t time_ns, uint32_t tid, const char *stack)
{
	struct rls_event *event = enter(script, time_ns, tid, stack);

	event->operation.continued = event->operation.depth;
}

static uint64_t entries(const struct rls_report *report, uint32_t tid, const char *operation)
{
	for (size_t i = 0; i < report->operation_count; i++) {
		const struct rls_operation_row *row = &report->operations[i];

		if (row->tid == tid && !strcmp(row->operation, operation))
			return row->entries;
	}
	return 0;
}

/* Inherited from another thread, or resumed: the time counts, the entry does not. */
static void test_what_is_continued_is_not_entered(void **unused)
{
	struct script script;
	struct rls_report *report;

	script_begin(&script);
	add_process(&script, 0, 1, "python");
	add_thread(&script, 0, 1, 1);
	add_category(&script, 0, 1, 1, RLS_CATEGORY_PYTHON);
	go_on(&script, 10, 1, "a;b");
	enter(&script, 20, 1, "a");
	enter(&script, 30, 1, "a;c");
	enter(&script, 40, 1, "");
	go_on(&script, 50, 1, "a;c");
	enter(&script, 60, 1, "a;c;c")->operation.continued = 2;
	enter(&script, 70, 1, "");
	enter(&script, 80, 1, "a");
	add_end(&script, 100);
	report = script_report(&script);
	assert_int_equal(entries(report, 1, "a"), 1);
	assert_int_equal(entries(report, 1, "b"), 0);
	assert_int_equal(entries(report, 1, "c"), 2);
	rls_report_free(report);
	script_end(&script);
}

/* The stack row of "a;b", by its operations. */
static const struct rls_stack_row *find_stack(const struct rls_report *report, const char *stack)
{
	for (size_t i = 0; i < report->stack_count; i++) {
		const struct rls_stack_row *row = &report->stacks[i];
		char text[64] = "";

		for (size_t k = 0; k < row->depth; k++) {
			strcat(text, k ? ";" : "");
			strcat(text, row->operations[k]);
		}
		if (!strcmp(text, stack))
			return row;
	}
	return NULL;
}

static struct rls_report *report_of_nested(struct script *script)
{
	script_begin(script);
	add_process(script, 0, 1, "python");
	add_thread(script, 0, 1, 1);
	add_category(script, 0, 1, 1, RLS_CATEGORY_PYTHON);
	enter(script, 10, 1, "step");
	enter(script, 20, 1, "step;infer");
	enter(script, 30, 1, "step");
	enter(script, 40, 1, "step;infer");
	enter(script, 50, 1, "infer");
	enter(script, 60, 1, "infer;infer");
	enter(script, 70, 1, "infer");
	add_category(script, 75, 1, 1, RLS_CATEGORY_BACKEND);
	enter(script, 80, 1, "");
	enter(script, 85, 1, "a;b");
	add_end(script, 100);
	return script_report(script);
}

static void test_entries_are_counted(void **unused)
{
	struct script script;
	struct rls_report *report = report_of_nested(&script);

	assert_int_equal(entries(report, 1, "step"), 1);
	assert_int_equal(entries(report, 1, "infer"), 4);
	assert_int_equal(entries(report, 1, "a"), 1);
	assert_int_equal(entries(report, 1, "b"), 1);
	assert_int_equal(entries(report, 1, ""), 0);
	assert_int_equal(report->operation_count, 4);
	rls_report_group(report, RLS_GROUP_PROCESS);
	assert_int_equal(report->operation_count, 1);
	assert_int_equal(entries(report, 0, ""), 7);
	rls_report_free(report);
	script_end(&script);
}

static void test_rows_are_summed_by_the_innermost(void **unused)
{
	struct script script;
	struct rls_report *report = report_of_nested(&script);
	const struct rls_breakdown_row *row =
		find_row(report, 1, 1, "", "infer", "python", RLS_RESOURCE_CPU);

	assert_non_null(row);
	assert_int_equal(row->wall_ns, 10 + 35);
	for (size_t i = 1; i < report->breakdown_count; i++)
		assert_true(strcmp(report->breakdown[i - 1].operation,
				   report->breakdown[i].operation) ||
			    report->breakdown[i - 1].category != report->breakdown[i].category);
	rls_report_free(report);
	script_end(&script);
}

static void test_stacks_are_distinguished(void **unused)
{
	struct script script;
	struct rls_report *report = report_of_nested(&script);
	uint64_t wall_ns = 0, transitions = 0;

	assert_int_equal(find_stack(report, "step")->wall_ns, 20);
	assert_int_equal(find_stack(report, "step;infer")->wall_ns, 20);
	assert_int_equal(find_stack(report, "infer;infer")->wall_ns, 10);
	assert_null(find_stack(report, "a"));
	assert_int_equal(find_stack(report, "a;b")->wall_ns, 15);
	assert_int_equal(find_stack(report, "a;b")->category, RLS_CATEGORY_BACKEND);
	for (size_t i = 0; i < report->stack_count; i++) {
		wall_ns += report->stacks[i].wall_ns;
		transitions += report->stacks[i].transitions;
	}
	assert_int_equal(wall_ns, report->threads[0].wall_ns);
	assert_int_equal(transitions, 1);
	rls_report_free(report);
	script_end(&script);
}

static void test_merging_keeps_them(void **unused)
{
	struct script script, other_script;
	struct rls_report *report = report_of_nested(&script), *other;
	size_t stacks = report->stack_count;
	uint32_t pid;

	script_begin(&other_script);
	add_process(&other_script, 0, 2, "python");
	add_thread(&other_script, 0, 2, 2);
	enter(&other_script, 0, 2, "step");
	add_end(&other_script, 5);
	other = script_report(&other_script);
	assert_int_equal(rls_report_merge(report, other, &pid), 0);
	rls_report_free(other);
	assert_int_equal(report->stack_count, stacks + 1);
	assert_int_equal(entries(report, 2, "step"), 1);
	assert_string_equal(report->stacks[stacks].operations[0], "step");
	rls_report_free(report);
	script_end(&script);
	script_end(&other_script);
}

static void test_gpu_alone_is_a_stack_of_its_own(void **unused)
{
	struct script script;
	struct rls_report *report;

	script_begin(&script);
	add_process(&script, 0, 1, "python");
	add_gpu(&script, 10, 30, 1, RLS_GPU_KERNEL, 0);
	add_end(&script, 40);
	report = script_report(&script);
	assert_int_equal(report->stack_count, 1);
	assert_true(report->stacks[0].gpu_alone);
	assert_int_equal(report->stacks[0].gpu_ns, 20);
	assert_int_equal(report->stacks[0].wall_ns, 0);
	rls_report_free(report);
	script_end(&script);
}

static void test_tree_is_bounded(void **unused)
{
	struct rls_stack_tree tree = {0};
	rls_string_id names[2] = {1, 0}, back[RLS_OPERATION_DEPTH_MAX];
	rls_stack_id id = 0;

	for (uint32_t i = 2; i < RLS_STACKS_MAX + 10; i++) {
		names[1] = i;
		assert_int_equal(rls_stack_tree_find(&tree, names, 2, &id), 0);
	}
	assert_true(tree.cut);
	assert_int_equal(rls_stack_tree_names(&tree, id, back), 1);
	assert_int_equal(back[0], RLS_STACKS_MAX + 9);
	names[1] = 2;
	assert_int_equal(rls_stack_tree_find(&tree, names, 2, &id), 0);
	assert_int_equal(rls_stack_tree_names(&tree, id, back), 2);
	assert_int_equal(back[0], 1);
	rls_stack_tree_free(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_continued_is_not_entered),
		cmocka_unit_test(test_entries_are_counted),
		cmocka_unit_test(test_rows_are_summed_by_the_innermost),
		cmocka_unit_test(test_stacks_are_distinguished),
		cmocka_unit_test(test_merging_keeps_them),
		cmocka_unit_test(test_gpu_alone_is_a_stack_of_its_own),
		cmocka_unit_test(test_tree_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
