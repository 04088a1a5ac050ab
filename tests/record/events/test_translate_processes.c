/* Records of forks, execs and ends become events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/record/fixture.h"
#include "tests/record/wire_records.h"

static void describe_parent(struct rls_translator *translator)
{
	struct rls_event event = {.kind = RLS_EVENT_PROCESS, .pid = 7, .time_ns = 1};

	event.process.ppid = 1;
	event.process.name = log_string("python3");
	event.process.python = log_string("3.11.2");
	event.process.cmdline = log_string("[\"train\"]");
	event.process.container = log_string("0123456789ab");
	assert_int_equal(rls_translator_describe(translator, &event), 0);
}

static void a_child_goes_on_where_its_parent_was(void **state)
{
	describe_parent(*state);
	send_name(*state, 7, 0x100, "collect");
	send_name(*state, 7, 0x200, "rollout");
	send_edge(*state, 7, 8, 2, RLS_EDGE_PHASE, 0, 0x100);
	send_edge(*state, 7, 8, 3, RLS_EDGE_PUSH, 1, 0x200);
	event_log_empty(&event_log);
	send_fork(*state, 7, 8, 10, 70, 4, RLS_CATEGORY_SIMULATOR);
	assert_log(&event_log,
		   "10 70/0 process child ppid=7 ns_pid=4 python=3.11.2 cmdline=[\"train\"]"
		   " container=0123456789ab\n"
		   "10 70/70 thread child ns_tid=4\n"
		   "10 70/0 phase collect\n"
		   "10 70/70 operation rollout continued=1\n"
		   "10 70/70 category simulator\n"
		   "10 forked 7 70\n");
	/* Its edges go on from there; its parent's stack is its parent's. */
	send_edge(*state, 70, 70, 11, RLS_EDGE_POP, 0, 0);
	send_edge(*state, 7, 8, 12, RLS_EDGE_PUSH, 2, 0x100);
	assert_log(&event_log, "11 70/70 operation -\n"
			       "12 7/8 operation rollout>collect\n");
	assert_int_equal(rls_translator_process(*state, 70)->process.ppid, 7);
}

static void a_child_of_an_idle_parent_inherits_nothing(void **state)
{
	send_fork(*state, 7, 7, 10, 70, 70, RLS_CATEGORY_UNKNOWN);
	assert_log(&event_log, "10 70/0 process child ppid=7 ns_pid=0 python= cmdline= container=\n"
			       "10 70/70 thread child ns_tid=0\n"
			       "10 forked 7 70\n");
}

static void a_number_used_again_is_another_process(void **state)
{
	send_name(*state, 70, 0x100, "old");
	send_edge(*state, 70, 70, 2, RLS_EDGE_PUSH, 1, 0x100);
	send_edge(*state, 70, 71, 3, RLS_EDGE_PHASE, 0, 0x100);
	event_log_empty(&event_log);
	send_fork(*state, 7, 7, 10, 70, 70, RLS_CATEGORY_UNKNOWN);
	send_edge(*state, 70, 70, 11, RLS_EDGE_PUSH, 1, 0x100);
	assert_log(&event_log, "10 70/0 process child ppid=7 ns_pid=0 python= cmdline= container=\n"
			       "10 70/70 thread child ns_tid=0\n"
			       "10 forked 7 70\n"
			       "11 70/70 operation (unreadable)\n");
}

static void exec_forgets_all_but_the_process(void **state)
{
	describe_parent(*state);
	send_name(*state, 7, 0x100, "collect");
	send_edge(*state, 7, 7, 2, RLS_EDGE_PHASE, 0, 0x100);
	send_edge(*state, 7, 7, 3, RLS_EDGE_PUSH, 1, 0x100);
	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 7, 4, 0, "range");
	event_log_empty(&event_log);
	send_exec(*state, 7, 7, 10);
	send_edge(*state, 7, 7, 11, RLS_EDGE_PUSH, 1, 0x100);
	send_fork(*state, 7, 7, 12, 70, 70, RLS_CATEGORY_UNKNOWN);
	assert_log(&event_log,
		   "10 7/7 thread program ns_tid=0\n"
		   "10 7/7 operation -\n"
		   "10 7/0 phase \n"
		   "10 7/7 category unknown\n"
		   "10 execed 7\n"
		   "11 7/7 operation (unreadable)\n"
		   "12 70/0 process child ppid=7 ns_pid=0 python=3.11.2 cmdline=[\"train\"]"
		   " container=0123456789ab\n"
		   "12 70/70 thread child ns_tid=0\n"
		   "12 70/70 operation (unreadable) continued=1\n"
		   "12 forked 7 70\n");
}

static void a_thread_that_execs_takes_the_processs_number(void **state)
{
	send_thread(*state, 7, 8, 1, 8, "worker");
	send_exit(*state, 7, 7, 9, false, true); /* the kernel ends all others first */
	event_log_empty(&event_log);
	send_exec(*state, 7, 8, 10);
	assert_log(&event_log, "10 7/8 thread_end\n"
			       "10 7/7 thread program ns_tid=0\n"
			       "10 7/7 operation -\n"
			       "10 7/0 phase \n"
			       "10 7/7 category unknown\n"
			       "10 execed 7\n");
}

static void ends_of_threads_and_processes(void **state)
{
	struct rls_wire_exit last = {
		HEADER(struct rls_wire_exit, RLS_WIRE_THREAD_EXIT, 7, 7, 30),
		.hit_totals = {.hits = 4, .cost_ns = 40, .off_cpu_ns = 400},
		.process_over = 1,
		.traced = 1,
	};

	describe_parent(*state);
	send_thread(*state, 7, 8, 2, 8, "worker");
	event_log_empty(&event_log);
	send_exit(*state, 7, 8, 10, false, true);
	send_exit(*state, 7, 9, 11, false, false); /* never heard of: nothing to say */
	SEND(*state, last);
	assert_log(&event_log, "10 7/8 thread_end\n"
			       "30 7/7 hits 4 cost=40\n"
			       "30 7/7 off_cpu 400\n"
			       "30 7/7 thread_end\n"
			       "30 7/0 process_end\n"
			       "30 ended 7\n");
	assert_null(rls_translator_process(*state, 7));
	/* The other of two that ended side by side. */
	send_exit(*state, 7, 12, 31, false, true);
	assert_log(&event_log, "31 7/12 thread_end\n");
	assert_null(rls_translator_process(*state, 7));
}

static void a_process_ends_for_lack_of_memory(void **state)
{
	const struct rls_wire_exit last = {
		HEADER(struct rls_wire_exit, RLS_WIRE_THREAD_EXIT, 7, 7, 30),
		.process_over = 1,
		.out_of_memory = 1,
	};

	SEND(*state, last);
	assert_log(&event_log, "30 7/0 memory_use out_of_memory\n"
			       "30 7/0 process_end\n"
			       "30 ended 7\n");
}

static void an_untraced_process_ends_too(void **state)
{
	send_exit(*state, 7, 7, 30, true, false);
	assert_log(&event_log, "30 7/0 process_end\n"
			       "30 ended 7\n");
}

static void operations_without_a_traced_thread_end_with_it(void **state)
{
	/* Announced by an edge alone, as the recorder reads them. */
	send_edge(*state, 7, 8, 5, RLS_EDGE_POP, 0, 0);
	send_exit(*state, 7, 8, 10, false, false);
	send_exit(*state, 7, 8, 11, false, false);
	assert_log(&event_log, "5 7/8 operation -\n"
			       "10 7/8 thread_end\n");
}

static void watchers_may_be_missing(void **state)
{
	struct rls_event_sink sink = event_log_sink(&event_log);
	const struct rls_process_watcher nobody = {0};
	struct rls_wire_final final = {
		HEADER(struct rls_wire_final, RLS_WIRE_FINAL, 7, 7, 4),
		.record = 1,
	};
	struct rls_translator *translator;

	assert_int_equal(rls_translator_new(&sink, &nobody, &translator), 0);
	send_fork(translator, 7, 7, 1, 70, 70, 0);
	send_exec(translator, 70, 70, 2);
	SEND(translator, final);
	send_exit(translator, 70, 70, 5, true, true);
	rls_translator_free(translator);
	rls_translator_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_child_goes_on_where_its_parent_was),
		TEST(a_child_of_an_idle_parent_inherits_nothing),
		TEST(a_number_used_again_is_another_process),
		TEST(exec_forgets_all_but_the_process),
		TEST(a_thread_that_execs_takes_the_processs_number),
		TEST(ends_of_threads_and_processes),
		TEST(a_process_ends_for_lack_of_memory),
		TEST(an_untraced_process_ends_too),
		TEST(operations_without_a_traced_thread_end_with_it),
		TEST(watchers_may_be_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
