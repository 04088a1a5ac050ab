/* What becomes of stacks: frames, kinds of time, and waits that end, or never do. Interpreters,
 * files and mappings are the test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "tests/record/samples/stack_world.h"
#include "userspace/record/samples/stack_samples.h"

static struct rls_samples *begin(void)
{
	struct rls_samples *samples;

	memset(&world, 0, sizeof(world));
	world.string_count = 1; /* id 0 is "" */
	assert_int_equal(rls_samples_new(NULL, NULL, NULL, NULL, &samples), 0);
	return samples;
}

/* A stack of f1 (line 10), called by f2 (line 20), ... outermost last. */
static struct rls_wire_stack stack_at(uint64_t time_ns, uint64_t ip, unsigned int depth)
{
	struct rls_wire_stack stack = {
		.header = {.kind = RLS_WIRE_STACK, .pid = PID, .tid = TID, .time_ns = time_ns},
		.ip = ip,
		.frames = (uint16_t)depth,
		.syscall = (uint32_t)-1,
		.every = 1,
		.argument = 5000,
	};

	for (unsigned int i = 0; i < depth; i++)
		stack.frame[i] = (struct rls_wire_frame){.code = i + 1, .at = 10 * (i + 1)};
	return stack;
}

static size_t bytes_of(const struct rls_wire_stack *stack)
{
	return RLS_STACK_HEAD_BYTES + stack->frames * sizeof(stack->frame[0]);
}

static void take(struct rls_samples *samples, const struct rls_wire_stack *stack)
{
	assert_int_equal(rls_samples_add(samples, &stack->header, bytes_of(stack)), 0);
}

static void take_wait(struct rls_samples *samples, uint64_t since_ns, uint32_t tid, uint32_t call,
		      uint32_t every)
{
	struct rls_wire_stack stack = stack_at(since_ns, LIBRARY, 1);

	stack.header.flags = RLS_STACK_WAITS;
	stack.header.tid = tid;
	stack.syscall = call;
	stack.every = every;
	take(samples, &stack);
}

static void take_waited(struct rls_samples *samples, uint64_t since_ns, uint32_t tid,
			uint64_t end_ns)
{
	const struct rls_wire_waited record = {
		.header = {.kind = RLS_WIRE_WAITED, .pid = PID, .tid = tid, .time_ns = end_ns},
		.since_ns = since_ns,
	};

	assert_int_equal(rls_samples_add(samples, &record.header, sizeof(record)), 0);
}

#define assert_reported(expected)                                                                  \
	do {                                                                                       \
		assert_string_equal(world.text, expected);                                         \
		world.text[0] = '\0';                                                              \
	} while (0)

static void running_python_is_the_innermost_line(void **state)
{
	struct rls_samples *samples = begin();
	struct rls_wire_stack stack = stack_at(100, LOOP + 4, 2);

	(void)state;
	take(samples, &stack);
	assert_reported("frame 1 in 0: f2 of /job.py, line 20\n"
			"frame 2 in 1: f1 of /job.py, line 10\n"
			"100 python in 2, 5000 ns\n");
	stack.header.time_ns = 200;
	take(samples, &stack);
	assert_reported("200 python in 2, 5000 ns\n");
	assert_int_equal(world.sampled, 2);
	rls_samples_free(samples);
}

static void code_below_python_has_a_frame_of_its_own(void **state)
{
	static const struct {
		uint64_t ip;
		uint8_t flags;
		const char *reported;
	} rows[] = {
		{RUNTIME, 0,
		 "frame 2 in 1: gc_collect_main of /python3, line 0, native\n"
		 "1 runtime in 2, 5000 ns\n"},
		{LIBRARY, 0,
		 "frame 3 in 1: at::matmul of /torch.so, line 0, native\n"
		 "1 native in 3, 5000 ns, code of backend\n"},
		{NAMELESS + 8, 0,
		 "frame 4 in 1: 0x4000 of /torch.so, line 0, native\n"
		 "1 native in 4, 5000 ns\n"},
		{COMPILED, 0,
		 "frame 5 in 1: kernel_of_triton of [compiled], line 0, native\n"
		 "1 native in 5, 5000 ns\n"},
		{LIBRARY, RLS_SAMPLE_KERNEL, "1 system in 3, 5000 ns\n"},
		{LOOP, RLS_SAMPLE_KERNEL,
		 "frame 6 in 1: the loop of /python3, line 0, native\n"
		 "1 system in 6, 5000 ns\n"},
		{SITE, 0, "1 probe in 3, 5000 ns\n"},
		{SITE + 1, RLS_SAMPLE_KERNEL, "1 probe in 3, 5000 ns\n"}, /* its trap */
		{NOWHERE, 0, "1 native in 1, 5000 ns\n"},
	};
	struct rls_samples *samples = begin();
	struct rls_wire_stack stack = stack_at(1, LOOP, 1);

	(void)state;
	take(samples, &stack);
	world.text[0] = '\0';
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		stack.ip = rows[i].ip;
		stack.header.flags = rows[i].flags;
		take(samples, &stack);
		assert_reported(rows[i].reported);
	}
	assert_int_equal(rls_samples_finish(samples, 9), 0);
	assert_reported("9 samples: of 10, 1 were in memory that is no longer known\n");
	rls_samples_free(samples);
}

static void frames_without_a_name_are_left_out_and_counted(void **state)
{
	struct rls_samples *samples = begin();
	struct rls_wire_stack stack = stack_at(1, LOOP, 4);

	(void)state;
	stack.frame[1].code = CODE_INTERNAL;
	stack.frame[2].code = CODE_GONE;
	take(samples, &stack);
	assert_reported("frame 1 in 0: f4 of /job.py, line 40\n"
			"frame 2 in 1: f1 of /job.py, line 10\n"
			"1 python in 2, 5000 ns\n");
	rls_samples_finish(samples, 9);
	assert_reported(
		"9 samples: of 4 Python frames, 1 were of code that was gone before it could "
		"be named\n");
	rls_samples_free(samples);
}

/* Each recording has a few, and a warning that is always there is read by nobody. */
static void a_few_that_lack_something_are_not_worth_a_warning(void **state)
{
	struct rls_samples *samples = begin();
	struct rls_wire_stack stack = stack_at(1, LOOP, 1);

	(void)state;
	stack.frame[0].code = CODE_GONE;
	take(samples, &stack);
	stack.frame[0].code = 1;
	for (int i = 1; i < 50; i++)
		take(samples, &stack);
	rls_samples_finish(samples, 9);
	assert_null(strstr(world.text, "samples: of"));
	rls_samples_free(samples);
}

static void ends_of_walks_are_counted_by_cause(void **state)
{
	struct rls_samples *samples = begin();
	struct rls_wire_stack stack = stack_at(1, LIBRARY, 0);

	(void)state;
	world.refused = 2;
	for (unsigned int end = 0; end < RLS_STACK_END_MAX; end++) {
		for (unsigned int i = 0; i <= end; i++) {
			stack.end = (uint8_t)end;
			take(samples, &stack);
		}
	}
	assert_int_equal(world.missed, 2);
	world.text[0] = '\0';
	rls_samples_finish(samples, 9);
	assert_reported(
		"9 samples: of 28, 2 were of Python builds whose stacks cannot be walked: they "
		"lack Python's frames\n"
		"9 samples: of 28, 4 met memory that could not be read then: their outer "
		"frames are missing\n"
		"9 samples: of 28, 6 were of threads that were entering Python from C just "
		"then: they lack its frames\n"
		"9 samples: of 28, 5 were of deeper stacks than are walked: their outer frames "
		"are missing\n");
	rls_samples_free(samples);
}

/* It began before the recording; its frames were read from outside, at time 20. */
static void open_wait(struct rls_samples *samples, uint32_t tid, uint8_t flags)
{
	struct rls_wire_stack stack = stack_at(10, LIBRARY, 1);

	stack.header.flags = RLS_STACK_WAITS | flags;
	stack.header.tid = tid;
	stack.syscall = SYS_wait4;
	assert_int_equal(rls_samples_open_wait(samples, &stack, 20), 0);
}

static void open_waits_count_from_the_beginning(void **state)
{
	struct rls_samples *samples = begin();

	(void)state;
	open_wait(samples, 1, 0);
	open_wait(samples, 2, 0);
	open_wait(samples, 3, RLS_STACK_STOPPED);
	open_wait(samples, 4, RLS_STACK_PREEMPTED);
	open_wait(samples, 5, 0);
	world.text[0] = '\0';
	take_waited(samples, 10, 1, 30);
	take_waited(samples, 10, 2, 15); /* it was over when its frames were read */
	take_waited(samples, 10, 3, 30);
	take_waited(samples, 10, 4, 30);
	assert_reported("30 child in 2, 20 ns\n"
			"15 child in 3, 5 ns\n"
			"30 other in 2, 20 ns\n"
			"30 cpu in 1, 20 ns\n");
	assert_int_equal(rls_samples_finish(samples, 40), 0);
	assert_reported(
		"40 child in 2, 30 ns\n"
		"40 samples: of 5, 1 waits ended while their stacks were read from outside: "
		"they lack Python's frames\n");
	rls_samples_free(samples);
}

/* Which began before it was known how to walk the stacks of their process. */
static void waits_get_their_frames_when_the_interpreter_is_found(void **state)
{
	struct rls_samples *samples = begin();
	struct rls_wire_stack stack = stack_at(10, LIBRARY, 0);

	(void)state;
	stack.header.flags = RLS_STACK_WAITS;
	stack.end = RLS_STACK_NO_INTERPRETER;
	stack.syscall = SYS_wait4;
	stack.thread_pointer = 0x700000;
	take(samples, &stack);
	stack.header.tid++;
	take(samples, &stack);
	assert_reported("frame 1 in 0: at::matmul of /torch.so, line 0, native\n");
	world.found(world.found_context, PID + 1);
	assert_reported("");
	world.found(world.found_context, PID);
	assert_reported("frame 2 in 0: f1 of /job.py, line 10\n"
			"frame 3 in 2: at::matmul of /torch.so, line 0, native\n");
	take_waited(samples, 10, TID, UINT64_MAX / 2);
	take_waited(samples, 10, TID + 1, 20); /* long over */
	assert_reported("9223372036854775807 child in 3, 9223372036854775797 ns\n"
			"20 child in 1, 10 ns\n");
	world.known = true; /* since the record was sent */
	take(samples, &stack);
	assert_int_equal(rls_samples_finish(samples, UINT64_MAX / 2), 0);
	assert_non_null(strstr(world.text, " child in 3, "));
	rls_samples_free(samples);
}

static void a_wait_is_reported_when_it_is_over(void **state)
{
	struct rls_samples *samples = begin();

	(void)state;
	take_wait(samples, 1000, TID, SYS_futex, 1);
	take_wait(samples, 1100, TID + 1, SYS_read, 4);
	world.text[0] = '\0'; /* the frames */
	take_waited(samples, 1000, TID, 1700);
	assert_reported("1700 lock in 2, 700 ns\n");
	take_waited(samples, 1100, TID + 1, 1200);
	assert_reported("1200 io in 2, 400 ns, one of 4\n");
	take_waited(samples, 1100, TID + 1, 1300); /* over already */
	take_waited(samples, 1, TID + 2, 1300); /* never begun */
	assert_reported("");
	rls_samples_free(samples);
}

/* Where a record was lost no time is made up. */
static void ends_of_other_waits_end_none(void **state)
{
	struct rls_samples *samples = begin();

	(void)state;
	take_wait(samples, 1000, TID, SYS_futex, 1);
	world.text[0] = '\0';
	take_waited(samples, 900, TID, 1700);
	take_waited(samples, 1000, TID, 1800);
	assert_reported("");
	take_wait(samples, 2000, TID, SYS_futex, 1);
	take_wait(samples, 3000, TID, SYS_read, 1); /* the end of the first is lost */
	take_waited(samples, 3000, TID, 3500);
	assert_reported("3500 io in 2, 500 ns\n");
	rls_samples_free(samples);
}

static void waits_end_with_the_recording(void **state)
{
	struct rls_samples *samples = begin();

	(void)state;
	take_wait(samples, 1000, TID, SYS_clock_nanosleep, 1);
	world.text[0] = '\0';
	rls_samples_finish(samples, 9000);
	assert_reported("9000 sleep in 2, 8000 ns\n");
	rls_samples_free(samples);
	samples = begin();
	take_wait(samples, 1000, TID, SYS_clock_nanosleep, 1);
	world.text[0] = '\0';
	rls_samples_finish(samples, 999); /* no time goes backwards */
	assert_reported("999 sleep in 2, 0 ns\n");
	rls_samples_free(samples);
}

static void hostile_records_are_no_samples(void **state)
{
	struct rls_samples *samples = begin();
	struct rls_wire_stack stack = stack_at(1, LOOP, 3);

	(void)state;
	assert_int_equal(rls_samples_add(samples, &stack.header, sizeof(stack.header)), 0);
	assert_int_equal(rls_samples_add(samples, &stack.header, bytes_of(&stack) - 1), 0);
	stack.end = RLS_STACK_END_MAX;
	assert_int_equal(rls_samples_add(samples, &stack.header, bytes_of(&stack)), 0);
	stack.end = 0;
	stack.frames = RLS_WALK_FRAMES_MAX + 1;
	assert_int_equal(rls_samples_add(samples, &stack.header, sizeof(stack)), 0);
	stack.header.kind = RLS_WIRE_WAITED;
	assert_int_equal(rls_samples_add(samples, &stack.header, sizeof(stack.header)), 0);
	assert_reported("");
	rls_samples_finish(samples, 9);
	assert_reported("");
	rls_samples_free(samples);
}

static void what_cannot_be_kept_is_reported(void **state)
{
	struct rls_samples *samples = begin();
	struct rls_wire_stack stack = stack_at(1, LOOP, 1);

	(void)state;
	world.fail_with = -ENOSPC;
	assert_int_equal(rls_samples_add(samples, &stack.header, bytes_of(&stack)), -ENOSPC);
	rls_samples_free(samples);
}

static void who_ends_is_read_of_first(void **state)
{
	struct rls_samples *samples = begin();

	(void)state;
	rls_samples_catch_up(samples);
	assert_int_equal(world.consumed, 1);
	rls_samples_catch_up(NULL);
	assert_int_equal(rls_samples_began(NULL, PID, 1), 0);
	assert_int_equal(rls_samples_forked(NULL, PID, PID + 1, 1), 0);
	assert_int_equal(world.consumed, 1);
	rls_samples_free(samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(running_python_is_the_innermost_line),
		cmocka_unit_test(code_below_python_has_a_frame_of_its_own),
		cmocka_unit_test(frames_without_a_name_are_left_out_and_counted),
		cmocka_unit_test(a_few_that_lack_something_are_not_worth_a_warning),
		cmocka_unit_test(ends_of_walks_are_counted_by_cause),
		cmocka_unit_test(open_waits_count_from_the_beginning),
		cmocka_unit_test(waits_get_their_frames_when_the_interpreter_is_found),
		cmocka_unit_test(a_wait_is_reported_when_it_is_over),
		cmocka_unit_test(ends_of_other_waits_end_none),
		cmocka_unit_test(waits_end_with_the_recording),
		cmocka_unit_test(hostile_records_are_no_samples),
		cmocka_unit_test(what_cannot_be_kept_is_reported),
		cmocka_unit_test(who_ends_is_read_of_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
