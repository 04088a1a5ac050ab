#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/wire/layer.h"
#include "tests/record/fixture.h"
#include "tests/record/wire_records.h"

static const struct rls_wire_hit_totals no_hits;

/* ---- threads, categories, hit totals ---- */

static void threads_and_categories(void **state)
{
	send_thread(*state, 7, 7, 10, 7, "python3");
	send_thread(*state, 7, 8, 11, 2, "sixteen-bytes-xx");
	send_category(*state, 7, 8, 20, RLS_CATEGORY_BACKEND, no_hits);
	send_category(*state, 7, 8, 25, RLS_CATEGORY_PYTHON,
		      (struct rls_wire_hit_totals){.hits = 3, .cost_ns = 900, .off_cpu_ns = 0});
	send_category(*state, 7, 8, 30, RLS_CATEGORY_SIMULATOR,
		      (struct rls_wire_hit_totals){.hits = 1, .cost_ns = 4, .off_cpu_ns = 1});
	assert_log(&event_log, "10 7/7 thread python3 ns_tid=0\n"
			       "11 7/8 thread sixteen-bytes-xx ns_tid=2\n"
			       "20 7/8 category backend\n"
			       "25 7/8 category python\n"
			       "25 7/8 hits 3 cost=900\n"
			       "30 7/8 category simulator\n"
			       "30 7/8 hits 1 cost=4\n"
			       "30 7/8 off_cpu 1\n");
	assert_int_equal(rls_translator_ignored(*state), 0);
}

/* With the hits until then, as categories have. */
static void layers_begin_and_end(void **state)
{
	struct rls_wire_layer record = {
		HEADER(struct rls_wire_layer, RLS_WIRE_LAYER, 7, 8, 100),
		.hit_totals = {.hits = 2, .cost_ns = 90},
		.number = 5,
		.depth = 2,
		.begun = 1,
		.category = RLS_CATEGORY_PYTHON,
	};

	SEND(*state, record);
	record.header.time_ns = 200;
	record.hit_totals = no_hits;
	record.number = record.depth = record.begun = 0;
	record.category = 200; /* hostile, or damaged */
	SEND(*state, record);
	assert_log(&event_log, "100 7/8 layer 5 depth=2 begun forward\n"
			       "100 7/8 hits 2 cost=90\n"
			       "200 7/8 layer 0 depth=0 outside\n");
}

/* What a thread is in may change between a wait and its next hit: a wait has its own begin and end. */
static void a_wait_is_reported_where_it_was(void **state)
{
	struct rls_wire_off_cpu record = {
		HEADER(struct rls_wire_off_cpu, RLS_WIRE_OFF_CPU, 7, 8, 1000),
		.away_ns = 400,
		.before_ns = 30,
	};

	SEND(*state, record);
	/* The hit totals have it too, and what came after it. */
	send_category(*state, 7, 8, 2000, RLS_CATEGORY_PYTHON,
		      (struct rls_wire_hit_totals){.off_cpu_ns = 435, .sent_ns = 430});
	send_category(*state, 7, 8, 2100, RLS_CATEGORY_PYTHON,
		      (struct rls_wire_hit_totals){.off_cpu_ns = 9, .sent_ns = 9});
	assert_log(&event_log, "600 7/8 off_cpu 30\n"
			       "1000 7/8 off_cpu 400\n"
			       "2000 7/8 category python\n"
			       "2000 7/8 off_cpu 5\n"
			       "2100 7/8 category python\n");
	record.away_ns = 1001;
	SEND(*state, record);
	assert_int_equal(rls_translator_ignored(*state), 1);
}

/* A child whose fork could not be reported says itself where it was. */
static void a_thread_may_begin_in_a_category(void **state)
{
	const struct rls_wire_thread record = {
		.header = {.size = sizeof(record),
			   .kind = RLS_WIRE_THREAD,
			   .pid = 7,
			   .tid = 7,
			   .time_ns = 10},
		.ns_tid = 7,
		.category = RLS_CATEGORY_PYTHON,
		.comm = "child",
	};

	assert_int_equal(rls_translate(*state, &record.header, sizeof(record)), 0);
	assert_log(&event_log, "10 7/7 thread child ns_tid=0\n"
			       "10 7/7 category python\n");
}

/* The first transition of one that could not be announced in time counts too. */
static void a_first_event_tells_what_was_before(void **state)
{
	struct rls_wire_category record = {
		.header = {.size = sizeof(record),
			   .kind = RLS_WIRE_CATEGORY,
			   .pid = 7,
			   .tid = 7,
			   .sequence = 1,
			   .time_ns = 20},
		.category = RLS_CATEGORY_SIMULATOR,
		.from = RLS_CATEGORY_PYTHON,
	};

	assert_int_equal(rls_translate(*state, &record.header, sizeof(record)), 0);
	record.header.sequence = 2;
	record.header.time_ns = 30;
	record.category = RLS_CATEGORY_PYTHON;
	record.from = RLS_CATEGORY_SIMULATOR;
	assert_int_equal(rls_translate(*state, &record.header, sizeof(record)), 0);
	assert_log(&event_log, "19 7/7 category python\n"
			       "20 7/7 category simulator\n"
			       "30 7/7 category python\n");
}

static int list_thread(void *context, uint32_t pid, uint32_t tid)
{
	char *at = strchr(context, '\0');

	snprintf(at, 16, "%u/%u ", pid, tid);
	return tid == 9 ? -ENOMEM : 0;
}

static void who_lives_is_known(void **state)
{
	char list[100] = "";

	assert_false(rls_translator_knows(*state, 7, 7));
	send_thread(*state, 7, 8, 10, 8, "worker");
	assert_true(rls_translator_knows(*state, 7, 7)); /* stands for the process */
	assert_true(rls_translator_knows(*state, 7, 8));
	assert_false(rls_translator_knows(*state, 7, 9));
	assert_false(rls_translator_knows(*state, 8, 8));
	send_thread(*state, 7, 7, 11, 7, "python3");
	assert_int_equal(rls_translator_each_thread(*state, list_thread, list), 0);
	assert_true(!strcmp(list, "7/7 7/8 "));
	send_thread(*state, 9, 9, 12, 9, "python3");
	list[0] = '\0';
	assert_int_equal(rls_translator_each_thread(*state, list_thread, list), -ENOMEM);
}

static void a_loss_makes_the_stretch_unknown(void **state)
{
	send_category(*state, 7, 8, 20, RLS_CATEGORY_BACKEND, no_hits);
	send_loss(*state, 7, 8, 21, 40, 17);
	send_category(*state, 7, 8, 40, RLS_CATEGORY_PYTHON, no_hits);
	assert_log(&event_log, "20 7/8 category backend\n"
			       "21 7/8 category unknown\n"
			       "40 7/8 category python\n");
}

static void send_hits(struct rls_translator *translator, uint64_t time_ns, uint8_t category)
{
	send_category(translator, 7, 8, time_ns, category,
		      (struct rls_wire_hit_totals){.hits = 1, .cost_ns = 1000});
	event_log_empty(&event_log);
	send_category(translator, 7, 8, time_ns + 100000, category,
		      (struct rls_wire_hit_totals){.hits = 2, .cost_ns = 1000});
}

/* Edges are heard of ahead of the hits before them. */
static void hits_cost_what_they_do_in_their_operation(void **state)
{
	assert_int_equal(rls_translator_set_cost_factor(*state, 7, 2), 0);
	assert_int_equal(rls_translator_set_operation_factor(*state, 7, "act", 3), 0);
	assert_int_equal(rls_translator_set_operation_factor(*state, 7, "", 5), 0);
	send_name(*state, 7, 0x100, "act");
	send_name(*state, 7, 0x200, "learn");
	send_edge(*state, 7, 8, 1000000, RLS_EDGE_PUSH, 1, 0x100);
	send_edge(*state, 7, 8, 2000000, RLS_EDGE_PUSH, 2, 0x200);
	send_edge(*state, 7, 8, 3000000, RLS_EDGE_POP, 0, 0);
	send_hits(*state, 10000, RLS_CATEGORY_BACKEND);
	assert_log(&event_log, "110000 7/8 category backend\n"
			       "110000 7/8 hits 2 cost=5000\n");
	send_hits(*state, 1000000, RLS_CATEGORY_BACKEND);
	assert_log(&event_log, "1100000 7/8 category backend\n"
			       "1100000 7/8 hits 2 cost=3000\n");
	send_hits(*state, 2000000, RLS_CATEGORY_BACKEND); /* without a factor: the whole's */
	assert_log(&event_log, "2100000 7/8 category backend\n"
			       "2100000 7/8 hits 2 cost=2000\n");
	send_hits(*state, 3000000, RLS_CATEGORY_BACKEND);
	assert_log(&event_log, "3100000 7/8 category backend\n"
			       "3100000 7/8 hits 2 cost=5000\n");
}

/* Children have their parent's; a new figure for the whole is one without parts. */
static void factors_are_inherited_and_replaced(void **state)
{
	send_thread(*state, 7, 7, 1, 7, "python3");
	assert_int_equal(rls_translator_set_cost_factor(*state, 7, 2), 0);
	assert_int_equal(rls_translator_set_operation_factor(*state, 7, "", 4), 0);
	send_fork(*state, 7, 7, 5, 9, 9, RLS_CATEGORY_PYTHON);
	assert_int_equal(rls_translator_set_cost_factor(*state, 7, 3), 0);
	event_log_empty(&event_log);
	send_category(*state, 9, 9, 20000, RLS_CATEGORY_PYTHON,
		      (struct rls_wire_hit_totals){.hits = 2, .cost_ns = 1000});
	send_category(*state, 7, 7, 20000, RLS_CATEGORY_PYTHON,
		      (struct rls_wire_hit_totals){.hits = 2, .cost_ns = 1000});
	assert_log(&event_log, "20000 9/9 category python\n"
			       "20000 9/9 hits 2 cost=4000\n"
			       "20000 7/7 category python\n"
			       "20000 7/7 hits 2 cost=3000\n");
}

static void send_hits_from(struct rls_translator *translator, uint64_t time_ns, uint8_t from)
{
	struct rls_wire_category record = {
		HEADER(struct rls_wire_category, RLS_WIRE_CATEGORY, 7, 8, time_ns),
		.from = from,
		.category = RLS_CATEGORY_PYTHON,
		.hit_totals = {.hits = 1, .cost_ns = 1000},
	};

	event_log_empty(&event_log);
	SEND(translator, record);
}

/* In the category it was taken in, once, whatever hits there cost. */
static void samples_are_charged_with_hits(void **state)
{
	send_thread(*state, 7, 8, 1, 8, "python3");
	assert_int_equal(rls_translator_set_cost_factor(*state, 7, 2), 0);
	send_hits_from(*state, 20000, RLS_CATEGORY_BACKEND);
	rls_translator_sampled(*state, 7, 8, RLS_CATEGORY_BACKEND, 16000);
	rls_translator_sampled(*state, 7, 8, RLS_CATEGORY_MAX, 16000);
	rls_translator_sampled(*state, 7, 9, RLS_CATEGORY_BACKEND, 16000); /* never seen */
	rls_translator_sampled(*state, 5, 5, RLS_CATEGORY_BACKEND, 16000);
	send_hits_from(*state, 40000, RLS_CATEGORY_SIMULATOR);
	assert_log(&event_log, "40000 7/8 category python\n"
			       "40000 7/8 hits 1 cost=2000\n");
	send_hits_from(*state, 50000, RLS_CATEGORY_BACKEND); /* there is no time for more */
	assert_log(&event_log, "50000 7/8 category python\n"
			       "50000 7/8 hits 1 cost=10000\n");
	send_hits_from(*state, 90000, RLS_CATEGORY_BACKEND);
	assert_log(&event_log, "90000 7/8 category python\n"
			       "90000 7/8 hits 1 cost=10000\n");
	send_hits_from(*state, 130000, RLS_CATEGORY_BACKEND);
	assert_log(&event_log, "130000 7/8 category python\n"
			       "130000 7/8 hits 1 cost=2000\n");
}

static void final_states_are_handed_on(void **state)
{
	struct rls_wire_final record = {
		HEADER(struct rls_wire_final, RLS_WIRE_FINAL, 7, 8, 90),
		.hit_totals = {.hits = 2, .cost_ns = 50, .off_cpu_ns = 60},
		.record = 0xabc,
		.edges_seen = 12,
	};

	SEND(*state, record);
	assert_log(&event_log, "90 7/8 hits 2 cost=50\n"
			       "90 7/8 off_cpu 60\n"
			       "90 final 8 record=abc seen=12\n");
}

/* ---- operations ---- */

static void edges_speak_of_names_sent_before(void **state)
{
	send_name(*state, 7, 0x100, "train");
	send_name(*state, 7, 0x200, "step");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	send_edge(*state, 7, 8, 11, RLS_EDGE_PUSH, 2, 0x200);
	send_edge(*state, 7, 9, 12, RLS_EDGE_PUSH, 1, 0x200);
	send_edge(*state, 7, 8, 13, RLS_EDGE_POP, 1, 0x100);
	send_edge(*state, 7, 8, 14, RLS_EDGE_POP, 0, 0);
	assert_log(&event_log, "10 7/8 operation train\n"
			       "11 7/8 operation train>step\n"
			       "12 7/9 operation step\n"
			       "13 7/8 operation train\n"
			       "14 7/8 operation -\n");
}

static void operations_that_lie_too_deep_are_noticed(void **state)
{
	uint16_t depth = 1;

	send_name(*state, 7, 0x100, "again");
	for (; depth <= RLS_OPERATION_DEPTH_MAX; depth++)
		send_edge(*state, 7, 8, depth, RLS_EDGE_PUSH, depth, 0x100);
	assert_false(rls_translator_oddities(*state)->too_deep);
	send_edge(*state, 7, 8, depth, RLS_EDGE_PUSH, depth, 0x100);
	assert_true(rls_translator_oddities(*state)->too_deep);
}

static void unknown_names_are_operations_all_the_same(void **state)
{
	send_name(*state, 6, 0x100, "of another process");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	send_edge(*state, 7, 8, 11, RLS_EDGE_PUSH, 2, 0);
	send_name(*state, 7, 0x100, "known now");
	send_edge(*state, 7, 8, 12, RLS_EDGE_PUSH, 1, 0x100);
	assert_log(&event_log, "10 7/8 operation (unreadable)\n"
			       "11 7/8 operation (unreadable)>\n"
			       "12 7/8 operation known now\n");
}

static void a_name_is_cut_to_its_field(void **state)
{
	struct rls_wire_name record = {
		HEADER(struct rls_wire_name, RLS_WIRE_NAME, 7, 7, 0),
		.address = 0x100,
		.length = UINT32_MAX,
	};
	char expected[256];

	memset(record.text, 'n', sizeof(record.text));
	SEND(*state, record);
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x100);
	snprintf(expected, sizeof(expected), "10 7/8 operation %.*s\n", RLS_WIRE_NAME_BYTES,
		 record.text);
	assert_log(&event_log, expected);
}

static void phases_and_process_names(void **state)
{
	struct rls_event described = {.kind = RLS_EVENT_PROCESS, .pid = 7, .time_ns = 1};

	send_name(*state, 7, 0x100, "warmup");
	send_name(*state, 7, 0x200, "worker");
	send_edge(*state, 7, 8, 5, RLS_EDGE_PROCESS_NAME, 0, 0x200); /* not described yet */
	described.process.name = log_string("python3");
	described.process.cmdline = log_string("[\"x\"]");
	assert_int_equal(rls_translator_describe(*state, &described), 0);
	send_edge(*state, 7, 8, 10, RLS_EDGE_PHASE, 3, 0x100);
	send_edge(*state, 7, 8, 11, RLS_EDGE_PROCESS_NAME, 3, 0x200);
	assert_log(&event_log,
		   "1 7/0 process python3 ppid=0 ns_pid=0 python= cmdline=[\"x\"] container=\n"
		   "10 7/0 phase warmup\n"
		   "11 7/0 process worker ppid=0 ns_pid=0 python= cmdline=[\"x\"] container=\n");
	assert_int_equal(rls_translator_process(*state, 7)->process.name, log_string("worker"));
}

static void a_stack_snapshot_replaces_the_annotations(void **state)
{
	send_name(*state, 7, 0x100, "a");
	send_name(*state, 7, 0x200, "b");
	send_name(*state, 7, 0x300, "c");
	send_edge(*state, 7, 8, 10, RLS_EDGE_PUSH, 1, 0x300);
	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 8, 11, 5, "range");
	send_edge_flags(*state, 7, 8, 20, RLS_WIRE_EDGE_STACK, 1, 0x100, 0);
	send_edge_flags(*state, 7, 8, 20, RLS_WIRE_EDGE_STACK, 2, 0x200, RLS_WIRE_STACK_END);
	send_edge_flags(*state, 7, 8, 30, RLS_WIRE_EDGE_STACK, 0, 0, RLS_WIRE_STACK_END);
	assert_log(&event_log, "10 7/8 operation c\n"
			       "11 7/8 operation c>range\n"
			       "20 7/8 operation range>a>b\n"
			       "30 7/8 operation range\n");
}

static void edges_of_unknown_kind_are_ignored_and_counted(void **state)
{
	send_edge(*state, 7, 8, 10, 0, 1, 0);
	send_edge(*state, 7, 8, 11, 99, 1, 0);
	assert_log(&event_log, "");
	assert_int_equal(rls_translator_ignored(*state), 2);
}

static void edges_read_by_the_recorder_are_like_the_kernels(void **state)
{
	struct rls_edge edge = {.time_ns = 10, .name = 0x100, .kind = RLS_EDGE_PUSH, .depth = 1};

	assert_int_equal(rls_translator_add_edge(*state, 7, 8, &edge, "late", 4), 0);
	send_edge(*state, 7, 8, 11, RLS_EDGE_PUSH, 2, 0x100); /* the name is known now */
	edge = (struct rls_edge){.time_ns = 12, .kind = RLS_EDGE_POP};
	assert_int_equal(rls_translator_add_edge(*state, 7, 8, &edge, "", 0), 0);
	assert_log(&event_log, "10 7/8 operation late\n"
			       "11 7/8 operation late>late\n"
			       "12 7/8 operation -\n");
}

/* ---- ranges ---- */

static void ranges_are_operations(void **state)
{
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 8, 5, 0, ""); /* begun before recording */
	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 8, 10, 0xa, "outer");
	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 8, 11, 0, "nvtx");
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 8, 12, 0xb, ""); /* a destructor's */
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 9, 13, 0xa, ""); /* another thread */
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 8, 14, 0xa, "");
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 8, 15, 0xa, ""); /* end() comes twice */
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 8, 16, 0, "");
	assert_log(&event_log, "10 7/8 operation outer\n"
			       "11 7/8 operation outer>nvtx\n"
			       "14 7/8 operation nvtx\n"
			       "16 7/8 operation -\n");
}

/* What was open may be over: none is better than a wrong one. */
static void after_a_loss_no_earlier_range_is_open(void **state)
{
	struct rls_wire_range range = {
		.header = {.size = sizeof(range),
			   .kind = RLS_WIRE_RANGE_PUSH,
			   .flags = RLS_WIRE_RANGE_AFTER_LOSS,
			   .pid = 7,
			   .tid = 8,
			   .time_ns = 12},
		.length = 5,
		.text = "later",
	};

	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 8, 10, 0, "outer");
	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 8, 11, 0, "inner");
	assert_int_equal(rls_translate(*state, &range.header, sizeof(range)), 0);
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 8, 13, 0, "");
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 8, 14, 0, ""); /* outer's */
	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 8, 15, 0, "next");
	range.header.kind = RLS_WIRE_RANGE_POP;
	range.header.time_ns = 16;
	assert_int_equal(rls_translate(*state, &range.header, sizeof(range)), 0);
	assert_log(&event_log, "10 7/8 operation outer\n"
			       "11 7/8 operation outer>inner\n"
			       "12 7/8 operation later\n"
			       "13 7/8 operation -\n"
			       "15 7/8 operation next\n"
			       "16 7/8 operation -\n");
}

static void a_librarys_own_ranges_are_not_operations(void **state)
{
	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 8, 10, 0xa, "mine");
	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 8, 11, 0xb, "Optimizer.step#Adam.step");
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 8, 12, 0xb, "");
	/* The same address again, for one that is not shown: "mine" is over. */
	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 8, 13, 0xa, "Optimizer.step#Adam.step");
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 8, 14, 0xa, "");
	/* Without tokens the pop of theirs must leave ours alone. */
	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 8, 20, 0, "ours");
	send_range(*state, RLS_WIRE_RANGE_PUSH, 7, 8, 21, 0, "Optimizer.step#Adam.step");
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 8, 22, 0, "");
	send_range(*state, RLS_WIRE_RANGE_POP, 7, 8, 23, 0, "");
	assert_log(&event_log, "10 7/8 operation mine\n"
			       "13 7/8 operation -\n"
			       "20 7/8 operation ours\n"
			       "23 7/8 operation -\n");
}

static void a_ranges_text_is_cut_to_its_field(void **state)
{
	struct rls_wire_range record = {
		HEADER(struct rls_wire_range, RLS_WIRE_RANGE_PUSH, 7, 8, 10),
		.length = UINT32_MAX,
	};
	char expected[256];

	memset(record.text, 'r', sizeof(record.text));
	SEND(*state, record);
	snprintf(expected, sizeof(expected), "10 7/8 operation %.*s\n", RLS_WIRE_NAME_BYTES - 1,
		 record.text);
	assert_log(&event_log, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(threads_and_categories),
		TEST(layers_begin_and_end),
		TEST(a_wait_is_reported_where_it_was),
		TEST(a_thread_may_begin_in_a_category),
		TEST(a_first_event_tells_what_was_before),
		TEST(who_lives_is_known),
		TEST(a_loss_makes_the_stretch_unknown),
		TEST(hits_cost_what_they_do_in_their_operation),
		TEST(factors_are_inherited_and_replaced),
		TEST(samples_are_charged_with_hits),
		TEST(final_states_are_handed_on),
		TEST(edges_speak_of_names_sent_before),
		TEST(operations_that_lie_too_deep_are_noticed),
		TEST(unknown_names_are_operations_all_the_same),
		TEST(a_name_is_cut_to_its_field),
		TEST(phases_and_process_names),
		TEST(a_stack_snapshot_replaces_the_annotations),
		TEST(edges_of_unknown_kind_are_ignored_and_counted),
		TEST(edges_read_by_the_recorder_are_like_the_kernels),
		TEST(ranges_are_operations),
		TEST(after_a_loss_no_earlier_range_is_open),
		TEST(a_librarys_own_ranges_are_not_operations),
		TEST(a_ranges_text_is_cut_to_its_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
