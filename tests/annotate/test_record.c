/* The record of one thread, as an observer outside sees it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "observer.h"
#include "rlscope_annotate.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void assert_edge(const struct target *target, const struct rls_thread_record *record,
			uint64_t number, enum rls_edge_kind kind, const char *name, int depth)
{
	const struct rls_edge *edge = &record->edges[number % RLS_EDGE_RING];

	assert_int_equal(edge->kind, kind);
	assert_string_equal(read_name(target->pid, edge->name), name);
	assert_int_equal(edge->depth, depth);
}

static void nest(void)
{
	rlscope_set_process_name("trainer");
	rlscope_set_phase("collect");
	rlscope_operation_begin("step");
	rlscope_operation_begin("inference");
	rlscope_operation_end();
	rlscope_set_phase("train");
	rlscope_operation_begin("backward");
}

static void test_nested_operations(void **state)
{
	uint64_t before = now_ns(), last = before;
	struct target target = target_start(nest);
	struct rls_thread_record record = read_record(&target);
	struct rls_annotate_descriptor descriptor = read_descriptor(target.pid);

	assert_true(descriptor.magic == RLS_ANNOTATE_MAGIC);
	assert_int_equal(descriptor.version, RLS_ANNOTATE_VERSION);
	assert_int_equal(descriptor.size, sizeof(descriptor));
	assert_string_equal(read_name(target.pid, descriptor.phase), "train");
	assert_string_equal(read_name(target.pid, descriptor.process_name), "trainer");
	assert_int_equal(record.tid, target.pid);
	assert_int_equal(record.head, 7);
	assert_edge(&target, &record, 0, RLS_EDGE_PROCESS_NAME, "trainer", 0);
	assert_edge(&target, &record, 1, RLS_EDGE_PHASE, "collect", 0);
	assert_edge(&target, &record, 2, RLS_EDGE_PUSH, "step", 1);
	assert_edge(&target, &record, 3, RLS_EDGE_PUSH, "inference", 2);
	assert_edge(&target, &record, 4, RLS_EDGE_POP, "step", 1);
	assert_edge(&target, &record, 5, RLS_EDGE_PHASE, "train", 1);
	assert_edge(&target, &record, 6, RLS_EDGE_PUSH, "backward", 2);
	for (int i = 0; i < 7; last = record.edges[i++].time_ns)
		assert_true(record.edges[i].time_ns >= last);
	assert_true(last <= now_ns());
	assert_int_equal(record.depth, 2);
	assert_string_equal(read_name(target.pid, record.stack[0]), "step");
	assert_string_equal(read_name(target.pid, record.stack[1]), "backward");
	assert_int_equal(target_end(&target), 0);
}

static void annotate_nothing(void)
{
	rlscope_operation_end();
}

static void test_a_thread_that_never_annotated_has_no_record(void **state)
{
	struct target target = target_start(annotate_nothing);

	assert_true(record_address(target.pid, target.thread_pointer) == 0);
	assert_int_equal(target_end(&target), 0);
}

static void end_too_often(void)
{
	rlscope_operation_begin("a");
	for (int i = 0; i < 5; i++)
		rlscope_operation_end();
	rlscope_operation_begin("b");
}

static void test_an_end_without_begin_is_nothing(void **state)
{
	struct target target = target_start(end_too_often);
	struct rls_thread_record record = read_record(&target);

	assert_int_equal(record.head, 3);
	assert_edge(&target, &record, 1, RLS_EDGE_POP, "", 0);
	assert_edge(&target, &record, 2, RLS_EDGE_PUSH, "b", 1);
	assert_int_equal(target_end(&target), 0);
}

static void recurse(void)
{
	rlscope_operation_begin("expand");
	rlscope_operation_begin("expand");
	rlscope_operation_end();
}

static void test_a_name_may_nest_in_itself(void **state)
{
	struct target target = target_start(recurse);
	struct rls_thread_record record = read_record(&target);

	assert_int_equal(record.depth, 1);
	assert_true(record.edges[0].name == record.edges[1].name);
	assert_edge(&target, &record, 2, RLS_EDGE_POP, "expand", 1);
	assert_int_equal(target_end(&target), 0);
}

#define PAIRS 200

static void wrap(void)
{
	char name[16];

	for (int i = 0; i < PAIRS; i++) {
		snprintf(name, sizeof(name), "op%d", i);
		rlscope_operation_begin(name);
		rlscope_operation_end();
	}
}

static void test_the_ring_keeps_the_newest_edges(void **state)
{
	struct target target = target_start(wrap);
	struct rls_thread_record record = read_record(&target);
	char name[16];

	assert_int_equal(record.head, 2 * PAIRS);
	for (uint64_t number = record.head - RLS_EDGE_RING; number < record.head; number++) {
		bool push = number % 2 == 0;

		snprintf(name, sizeof(name), "op%d", (int)(number / 2));
		assert_edge(&target, &record, number, push ? RLS_EDGE_PUSH : RLS_EDGE_POP,
			    push ? name : "", push);
	}
	assert_int_equal(target_end(&target), 0);
}

static void dig(void)
{
	char name[16];

	for (int i = 0; i < RLS_STACK_MAX + 10; i++) {
		snprintf(name, sizeof(name), "level%d", i);
		rlscope_operation_begin(name);
	}
	for (int i = 0; i < 5; i++)
		rlscope_operation_end();
}

static void test_beyond_the_deepest_level_only_depth_counts(void **state)
{
	struct target target = target_start(dig);
	struct rls_thread_record record = read_record(&target);
	uint64_t last_push = RLS_STACK_MAX + 10 - 1;

	assert_int_equal(record.depth, RLS_STACK_MAX + 5);
	assert_string_equal(read_name(target.pid, record.stack[0]), "level0");
	assert_string_equal(read_name(target.pid, record.stack[RLS_STACK_MAX - 1]), "level63");
	assert_edge(&target, &record, last_push, RLS_EDGE_PUSH, "level73", RLS_STACK_MAX + 10);
	assert_edge(&target, &record, last_push + 5, RLS_EDGE_POP, "level63", RLS_STACK_MAX + 5);
	assert_int_equal(target_end(&target), 0);
}

static void climb(void)
{
	dig();
	for (int i = 0; i < RLS_STACK_MAX + 5 - 1; i++)
		rlscope_operation_end();
}

static void test_the_way_back_from_there_is_exact(void **state)
{
	struct target target = target_start(climb);
	struct rls_thread_record record = read_record(&target);

	assert_int_equal(record.depth, 1);
	assert_edge(&target, &record, record.head - 1, RLS_EDGE_POP, "level0", 1);
	assert_int_equal(target_end(&target), 0);
}

static void clear_phase(void)
{
	rlscope_set_phase("warmup");
	rlscope_set_phase(NULL);
}

static void test_no_phase_is_said_by_zero(void **state)
{
	struct target target = target_start(clear_phase);
	struct rls_thread_record record = read_record(&target);

	assert_true(read_descriptor(target.pid).phase == 0);
	assert_true(record.edges[1].name == 0);
	assert_int_equal(target_end(&target), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested_operations),
		cmocka_unit_test(test_a_thread_that_never_annotated_has_no_record),
		cmocka_unit_test(test_an_end_without_begin_is_nothing),
		cmocka_unit_test(test_a_name_may_nest_in_itself),
		cmocka_unit_test(test_the_ring_keeps_the_newest_edges),
		cmocka_unit_test(test_beyond_the_deepest_level_only_depth_counts),
		cmocka_unit_test(test_the_way_back_from_there_is_exact),
		cmocka_unit_test(test_no_phase_is_said_by_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
