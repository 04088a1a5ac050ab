/* From transitions to calls: nested ones once, callbacks inside, and none that is not whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/record/gpu/cuda_calls.h"

enum { LAUNCH = 7, SYNC = 8, HOST_FUNCTION = 9, OTHER = 50 };

/* A file that is never opened keeps its events waiting, to be looked at. */
static struct rls_event_output output;
static struct rls_cuda_calls calls;
static uint32_t sequence;
static char reported[400];

static int set_up(void **state)
{
	int r = rls_event_output_init(&output);

	calls = (struct rls_cuda_calls){.output = &output};
	sequence = 0;
	if (!r)
		r = rls_cuda_calls_site(&calls, LAUNCH, "cudaLaunchKernel");
	if (!r)
		r = rls_cuda_calls_site(&calls, SYNC, "cuStreamSynchronize and 1 more");
	return r ? r : rls_cuda_calls_site(&calls, HOST_FUNCTION, "cudaLaunchHostFunc");
}

static int tear_down(void **state)
{
	rls_cuda_calls_clear(&calls);
	return rls_event_output_close(&output);
}

static void transition(uint32_t tid, uint64_t time_ns, uint8_t from, uint8_t to, uint16_t depth,
		       uint32_t site)
{
	const struct rls_wire_category record = {
		.header = {.size = sizeof(record),
			   .kind = RLS_WIRE_CATEGORY,
			   .pid = 3,
			   .tid = tid,
			   .sequence = ++sequence,
			   .time_ns = time_ns},
		.category = to,
		.from = from,
		.depth = depth,
		.site = site,
	};

	assert_int_equal(rls_cuda_calls_add(&calls, &record), 0);
}

static void enter(uint64_t time_ns, uint16_t depth, uint32_t site)
{
	transition(3, time_ns, RLS_CATEGORY_PYTHON, RLS_CATEGORY_CUDA_API, depth, site);
}

static void leave(uint64_t time_ns, uint16_t depth)
{
	transition(3, time_ns, RLS_CATEGORY_CUDA_API, RLS_CATEGORY_PYTHON, depth, LAUNCH);
}

/* "name duration launches@end;" for each call reported. */
static const char *all_reported(void)
{
	reported[0] = '\0';
	for (size_t i = 0; i < output.waiting_count; i++) {
		const struct rls_event *event = &output.waiting[i];

		if (event->kind == RLS_EVENT_HITS) {
			assert_int_equal(event->hits.count, 0);
			snprintf(reported + strlen(reported), sizeof(reported) - strlen(reported),
				 "cost %d@%d;", (int)event->hits.cost_ns, (int)event->time_ns);
			continue;
		}
		assert_int_equal(event->kind, RLS_EVENT_CUDA_CALL);
		snprintf(reported + strlen(reported), sizeof(reported) - strlen(reported),
			 "%s %d %u@%d;", rls_string_pool_get(output.strings, event->cuda_call.name),
			 (int)event->cuda_call.duration_ns, event->cuda_call.launches,
			 (int)event->time_ns);
	}
	return reported;
}

static void reports_calls_at_their_end(void **state)
{
	enter(100, 1, LAUNCH);
	leave(130, 0);
	enter(200, 1, SYNC);
	leave(250, 0);
	enter(300, 1, HOST_FUNCTION); /* runs on the CPU */
	leave(301, 0);
	assert_string_equal(all_reported(),
			    "cudaLaunchKernel 30 1@130;cuStreamSynchronize 50 0@250;"
			    "cudaLaunchHostFunc 1 0@301;");
}

static void reports_calls_in_callbacks_too(void **state)
{
	enter(100, 1, SYNC);
	transition(3, 110, RLS_CATEGORY_CUDA_API, RLS_CATEGORY_PYTHON, 2, OTHER);
	sequence += 4; /* what the callback does elsewhere is not ours to see */
	enter(120, 3, LAUNCH);
	leave(125, 2);
	transition(3, 140, RLS_CATEGORY_PYTHON, RLS_CATEGORY_CUDA_API, 1, OTHER);
	leave(150, 0);
	assert_string_equal(all_reported(),
			    "cudaLaunchKernel 5 1@125;cuStreamSynchronize 50 0@150;");
}

static void reports_nothing_of_what_is_not_whole(void **state)
{
	leave(50, 0); /* begun before we came */
	enter(100, 1, LAUNCH);
	sequence += 2; /* its end was lost, and another's beginning */
	leave(900, 0);
	enter(1000, 1, LAUNCH);
	enter(1100, 1, LAUNCH); /* the end of the first was lost */
	leave(1110, 0);
	enter(1200, 1, OTHER); /* not at an entry of CUDA */
	leave(1210, 0);
	assert_string_equal(all_reported(), "cudaLaunchKernel 10 1@1110;");
}

static void keeps_threads_apart_until_after_their_end(void **state)
{
	struct rls_wire_header end = {.pid = 3, .tid = 3, .time_ns = 200};

	enter(100, 1, LAUNCH);
	/* The end of a thread is reported on another ring, and may come first. */
	assert_int_equal(rls_cuda_calls_end(&calls, &end), 0);
	rls_cuda_calls_tick(&calls, 1000000000);
	leave(130, 0);
	enter(140, 1, LAUNCH);
	rls_cuda_calls_tick(&calls, 3000000000);
	leave(3000000100, 0);
	assert_string_equal(all_reported(), "cudaLaunchKernel 30 1@130;");
}

static void forgets_processes_that_are_over(void **state)
{
	enter(100, 1, LAUNCH);
	leave(130, 0);
	assert_true(rls_cuda_calls_made(&calls, 3));
	assert_int_equal(rls_cuda_calls_end_process(&calls, 3, 200), 0);
	rls_cuda_calls_tick(&calls, 1000000000);
	assert_true(rls_cuda_calls_made(&calls, 3)); /* its last transitions may be yet to come */
	rls_cuda_calls_tick(&calls, 3000000000);
	assert_false(rls_cuda_calls_made(&calls, 3));
	assert_int_equal(calls.processes.count, 0);
	enter(3000000100, 1, LAUNCH);
	leave(3000000130, 0);
	rls_cuda_calls_forget(&calls, 3); /* it runs another program */
	assert_false(rls_cuda_calls_made(&calls, 3));
	assert_int_equal(calls.processes.count, 0);
}

static void bounds_what_is_open(void **state)
{
	for (uint16_t depth = 1; depth < 60; depth += 2) {
		enter(100 + depth, depth, LAUNCH);
		transition(3, 101 + depth, RLS_CATEGORY_CUDA_API, RLS_CATEGORY_PYTHON, depth + 1,
			   OTHER);
	}
	for (uint16_t depth = 59; depth < 60; depth -= 2)
		leave(1000, depth - 1);
	assert_true(output.waiting_count <= 8);
}

static void call(uint64_t from_ns, uint64_t to_ns)
{
	enter(from_ns, 1, LAUNCH);
	leave(to_ns, 0);
}

/* While it is armed, in that process, of that name; and never more than the call took. */
static void takes_off_what_cupti_costs(void **state)
{
	call(100, 130);
	assert_int_equal(rls_cuda_calls_set_cost(&calls, 3, "cudaLaunchKernel", 30), 0);
	assert_int_equal(rls_cuda_calls_set_cost(&calls, 3, "cudaLaunchKernel", 20), 0);
	call(200, 230);
	assert_int_equal(rls_cuda_calls_arm(&calls, 4, true), 0);
	call(300, 330);
	assert_int_equal(rls_cuda_calls_arm(&calls, 3, true), 0);
	call(400, 430);
	call(500, 505);
	enter(600, 1, SYNC);
	leave(650, 0);
	assert_int_equal(rls_cuda_calls_arm(&calls, 3, false), 0);
	call(700, 730);
	assert_string_equal(all_reported(),
			    "cudaLaunchKernel 30 1@130;cudaLaunchKernel 30 1@230;"
			    "cudaLaunchKernel 30 1@330;cudaLaunchKernel 30 1@430;cost 20@430;"
			    "cudaLaunchKernel 5 1@505;cost 5@505;cuStreamSynchronize 50 0@650;"
			    "cudaLaunchKernel 30 1@730;");
}

static void forgets_costs_with_their_process(void **state)
{
	assert_int_equal(rls_cuda_calls_set_cost(&calls, 3, "cudaLaunchKernel", 20), 0);
	assert_int_equal(rls_cuda_calls_arm(&calls, 3, true), 0);
	rls_cuda_calls_forget(&calls, 3); /* it runs another program */
	call(100, 130);
	assert_int_equal(rls_cuda_calls_arm(&calls, 3, true), 0);
	call(200, 230);
	assert_string_equal(all_reported(), "cudaLaunchKernel 30 1@130;cudaLaunchKernel 30 1@230;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(reports_calls_at_their_end),
		TEST(reports_calls_in_callbacks_too),
		TEST(reports_nothing_of_what_is_not_whole),
		TEST(keeps_threads_apart_until_after_their_end),
		TEST(forgets_processes_that_are_over),
		TEST(bounds_what_is_open),
		TEST(takes_off_what_cupti_costs),
		TEST(forgets_costs_with_their_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
