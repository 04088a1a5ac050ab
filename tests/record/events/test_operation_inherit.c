#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/record/fixture.h"
#include "tests/record/wire_records.h"
#include "userspace/record/events/operation_inherit.h"

/* Thread 9 loads data for thread 8 and has no annotations. */
static void helper_threads_have_the_operation_of_the_annotated_one(void **state)
{
	send_name(*state, 7, 0x100, "train");
	send_name(*state, 7, 0x200, "step");
	send_thread(*state, 7, 8, 1, 8, "main");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	send_thread(*state, 7, 9, 20, 9,
		    "loader"); /* its operation is certain with the next edge */
	send_edge(*state, 7, 8, 15, RLS_EDGE_PUSH, 2, 0x200); /* arrives late */
	send_edge(*state, 7, 8, 30, RLS_EDGE_POP, 1, 0x100);
	assert_log(&event_log, "1 7/8 thread main ns_tid=0\n"
			       "10 7/8 operation train\n"
			       "20 7/9 thread loader ns_tid=0\n"
			       "15 7/8 operation train>step\n"
			       "20 7/9 operation train>step continued=2\n"
			       "30 7/8 operation train\n"
			       "30 7/9 operation train continued=1\n");
}

static void a_helper_with_an_operation_of_its_own_is_none(void **state)
{
	send_name(*state, 7, 0x100, "train");
	send_name(*state, 7, 0x200, "load");
	send_thread(*state, 7, 8, 1, 8, "main");
	send_thread(*state, 7, 9, 2, 9, "loader");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	send_edge(*state, 7, 9, 20, RLS_EDGE_PUSH, 1, 0x200);
	send_edge(*state, 7, 8, 30, RLS_EDGE_POP, 0, 0);
	event_log_empty(&event_log);
	send_edge(*state, 7, 9, 40, RLS_EDGE_POP, 0, 0);
	send_edge(*state, 7, 8, 50, RLS_EDGE_PUSH, 1, 0x100);
	assert_log(&event_log, "40 7/9 operation -\n"
			       "50 7/8 operation train\n");
}

/* It enters an operation of the name that it had inherited: that is an entry. */
static void a_helper_leaves_what_it_has_inherited(void **state)
{
	send_name(*state, 7, 0x100, "train");
	send_thread(*state, 7, 8, 1, 8, "main");
	send_thread(*state, 7, 9, 2, 9, "loader");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	send_edge(*state, 7, 8, 15, RLS_EDGE_PHASE, 0, 0);
	send_edge(*state, 7, 8, 16, RLS_EDGE_PUSH, 2, 0x100);
	event_log_empty(&event_log);
	send_edge(*state, 7, 9, 40, RLS_EDGE_PUSH, 1, 0x100);
	/* What its source did before then arrives late. */
	send_edge(*state, 7, 8, 20, RLS_EDGE_POP, 1, 0x100);
	send_edge(*state, 7, 8, 39, RLS_EDGE_POP, 0, 0);
	assert_log(&event_log, "39 7/9 operation -\n"
			       "40 7/9 operation train\n"
			       "20 7/8 operation train\n"
			       "20 7/9 operation train continued=1\n"
			       "39 7/8 operation -\n");
}

/* What it was in is certain when an edge from after its end has arrived. */
static void a_helper_that_has_ended_gets_what_was_open_then(void **state)
{
	send_name(*state, 7, 0x100, "train");
	send_name(*state, 7, 0x200, "step");
	send_thread(*state, 7, 8, 1, 8, "main");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	send_thread(*state, 7, 9, 20, 9, "loader");
	event_log_empty(&event_log);
	send_exit(*state, 7, 9, 25, false, true);
	assert_log(&event_log, "25 7/9 thread_end\n");
	send_edge(*state, 7, 8, 22, RLS_EDGE_PUSH, 2, 0x200);
	send_edge(*state, 7, 8, 30, RLS_EDGE_POP, 1, 0x100);
	assert_log(&event_log, "20 7/9 operation train continued=1\n"
			       "22 7/8 operation train>step\n"
			       "22 7/9 operation train>step continued=2\n"
			       "30 7/8 operation train\n");
}

static void a_helper_does_not_get_an_operation_that_had_ended(void **state)
{
	send_name(*state, 7, 0x100, "train");
	send_thread(*state, 7, 8, 1, 8, "main");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	send_thread(*state, 7, 9, 20, 9, "loader");
	send_exit(*state, 7, 9, 25, false, true);
	event_log_empty(&event_log);
	send_edge(*state, 7, 8, 15, RLS_EDGE_POP, 0, 0);
	assert_int_equal(rls_translator_finish(*state), 0);
	assert_log(&event_log, "15 7/8 operation -\n");
}

/* No later edge comes: the last one that did says it. */
static void the_end_of_a_recording_makes_the_rest_certain(void **state)
{
	send_name(*state, 7, 0x100, "train");
	send_thread(*state, 7, 8, 1, 8, "main");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	send_thread(*state, 7, 9, 20, 9, "ended");
	send_exit(*state, 7, 9, 25, false, true);
	send_thread(*state, 7, 10, 30, 10, "alive");
	event_log_empty(&event_log);
	assert_int_equal(rls_translator_finish(*state), 0);
	assert_log(&event_log, "30 7/10 operation train continued=1\n"
			       "20 7/9 operation train continued=1\n");
}

static void with_the_source_its_operations_end(void **state)
{
	send_name(*state, 7, 0x100, "train");
	send_name(*state, 7, 0x200, "next");
	send_thread(*state, 7, 8, 1, 8, "worker");
	send_thread(*state, 7, 9, 2, 9, "helper");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	event_log_empty(&event_log);
	send_exit(*state, 7, 8, 30, false, true);
	assert_log(&event_log, "30 7/9 operation -\n"
			       "30 7/8 thread_end\n");
	/* The next one that enters an operation is the source. */
	send_edge(*state, 7, 10, 40, RLS_EDGE_PUSH, 1, 0x200);
	assert_log(&event_log, "40 7/10 operation next\n"
			       "40 7/9 operation next continued=1\n");
}

/* Met late, though it has lived since recording began. */
static void a_helper_that_is_met_late_gets_the_edges_of_its_life(void **state)
{
	send_name(*state, 7, 0x100, "rollout");
	send_name(*state, 7, 0x200, "update");
	send_thread(*state, 7, 8, 1, 8, "main");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	send_edge(*state, 7, 8, 80, RLS_EDGE_POP, 0, 0);
	send_edge(*state, 7, 8, 90, RLS_EDGE_PUSH, 1, 0x200);
	event_log_empty(&event_log);
	send_thread(*state, 7, 9, 50, 9, "engine");
	send_edge(*state, 7, 8, 120, RLS_EDGE_POP, 0, 0);
	assert_log(&event_log, "50 7/9 thread engine ns_tid=0\n"
			       "50 7/9 operation rollout continued=1\n"
			       "80 7/9 operation -\n"
			       "90 7/9 operation update continued=1\n"
			       "120 7/8 operation -\n"
			       "120 7/9 operation -\n");
}

/* Only the latest edges are kept. */
static void a_helper_that_is_met_very_late_gets_the_latest(void **state)
{
	char expected[200];

	send_name(*state, 7, 0x100, "step");
	send_thread(*state, 7, 8, 1, 8, "main");
	for (unsigned int i = 0; i < 1000; i++)
		send_edge(*state, 7, 8, 10 + i, i % 2 ? RLS_EDGE_POP : RLS_EDGE_PUSH, !(i % 2),
			  i % 2 ? 0 : 0x100);
	event_log_empty(&event_log);
	send_thread(*state, 7, 9, 5, 9, "engine");
	event_log_empty(&event_log);
	assert_int_equal(rls_translator_finish(*state), 0);
	snprintf(expected, sizeof(expected), "%u 7/9 operation step continued=1\n",
		 10 + 1000 - RLS_SOURCE_EDGES_KEPT);
	assert_memory_equal(event_log.text, expected, strlen(expected));
}

/* Its coroutine goes on: that is no new entry. */
static void a_resumed_operation_is_continued(void **state)
{
	struct rls_wire_edge record = {
		HEADER(struct rls_wire_edge, RLS_WIRE_EDGE, 7, 8, 30),
		.name = 0x100,
		.edge = RLS_EDGE_PUSH,
		.depth = 1,
		.flags = RLS_EDGE_RESUMED,
	};

	send_name(*state, 7, 0x100, "rollout");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	send_edge(*state, 7, 8, 20, RLS_EDGE_POP, 0, 0);
	SEND(*state, record);
	assert_log(&event_log, "10 7/8 operation rollout\n"
			       "20 7/8 operation -\n"
			       "30 7/8 operation rollout continued=1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(helper_threads_have_the_operation_of_the_annotated_one),
		TEST(a_helper_with_an_operation_of_its_own_is_none),
		TEST(a_helper_leaves_what_it_has_inherited),
		TEST(a_helper_that_has_ended_gets_what_was_open_then),
		TEST(a_helper_does_not_get_an_operation_that_had_ended),
		TEST(the_end_of_a_recording_makes_the_rest_certain),
		TEST(with_the_source_its_operations_end),
		TEST(a_helper_that_is_met_late_gets_the_edges_of_its_life),
		TEST(a_helper_that_is_met_very_late_gets_the_latest),
		TEST(a_resumed_operation_is_continued),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
