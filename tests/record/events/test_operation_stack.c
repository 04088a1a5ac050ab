#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/record/events/operation_stack.h"

/* The names shown, outermost first, as text: "1 2 3". */
#define assert_stack(stack, expected)                                                              \
	do {                                                                                       \
		char shown_[8 * RLS_OPERATION_DEPTH_MAX];                                          \
		show(stack, shown_, sizeof(shown_));                                               \
		assert_string_equal(shown_, expected);                                             \
	} while (0)

static void show(const struct rls_operation_stack *stack, char *out, size_t room)
{
	struct rls_event event = {.kind = RLS_EVENT_OPERATION};
	size_t at = 0;

	rls_operation_stack_fill(stack, &event);
	out[0] = '\0';
	for (uint16_t i = 0; i < event.operation.depth; i++)
		at += (size_t)snprintf(out + at, room - at, "%s%u", i ? " " : "",
				       event.operation.stack[i]);
}

static uint16_t depth_of(const struct rls_operation_stack *stack)
{
	struct rls_event event = {.kind = RLS_EVENT_OPERATION};

	rls_operation_stack_fill(stack, &event);
	return event.operation.depth;
}

static void pushes_nest_and_pops_unnest(void **state)
{
	struct rls_operation_stack stack = {0};

	assert_stack(&stack, "");
	rls_operation_stack_push(&stack, 1, 10);
	rls_operation_stack_push(&stack, 2, 20);
	rls_operation_stack_push(&stack, 3, 30);
	assert_stack(&stack, "10 20 30");
	rls_operation_stack_pop(&stack, 2);
	assert_stack(&stack, "10 20");
	rls_operation_stack_push(&stack, 3, 31);
	assert_stack(&stack, "10 20 31");
	rls_operation_stack_pop(&stack, 0);
	assert_stack(&stack, "");
	rls_operation_stack_pop(&stack, 0);
	assert_stack(&stack, "");
}

static void a_push_says_how_deep_it_is(void **state)
{
	struct rls_operation_stack stack = {0};

	/* Edges may have been missed: depth is believed, not counted. */
	rls_operation_stack_push(&stack, 1, 10);
	rls_operation_stack_push(&stack, 2, 20);
	rls_operation_stack_push(&stack, 1, 11);
	assert_stack(&stack, "11");
	rls_operation_stack_push(&stack, 5, 50);
	assert_stack(&stack, "11 50");
	rls_operation_stack_push(&stack, 3, 30);
	assert_stack(&stack, "11 30");
	rls_operation_stack_pop(&stack, 4);
	assert_stack(&stack, "11 30");
	rls_operation_stack_pop(&stack, 2);
	assert_stack(&stack, "11");
}

static void hostile_depths_do_no_harm(void **state)
{
	struct rls_operation_stack stack = {0};

	rls_operation_stack_push(&stack, 0, 9);
	assert_stack(&stack, "");
	rls_operation_stack_push(&stack, 65535, 1);
	rls_operation_stack_push(&stack, 65535, 2);
	assert_stack(&stack, "2");
	rls_operation_stack_pop(&stack, 65535);
	assert_stack(&stack, "2");
	rls_operation_stack_push(&stack, 1, 3);
	assert_stack(&stack, "3");
	rls_operation_stack_push(&stack, 65535, 4);
	rls_operation_stack_push(&stack, 0, 5);
	assert_stack(&stack, "3 4");
	rls_operation_stack_pop(&stack, 1);
	assert_stack(&stack, "3");
}

static void annotations_beyond_64_are_not_distinguished(void **state)
{
	struct rls_operation_stack stack = {0};

	for (uint16_t depth = 1; depth <= 100; depth++)
		rls_operation_stack_push(&stack, depth, depth);
	assert_int_equal(depth_of(&stack), RLS_OPERATION_DEPTH_MAX);
	assert_int_equal(stack.entries[stack.count - 1].name, 64);
	for (uint16_t depth = 100; depth-- > 64;) {
		rls_operation_stack_pop(&stack, depth);
		assert_int_equal(depth_of(&stack), 64);
	}
	rls_operation_stack_pop(&stack, 63);
	assert_int_equal(depth_of(&stack), 63);
	rls_operation_stack_pop(&stack, 2);
	assert_stack(&stack, "1 2");
}

static void ranges_are_paired_by_token(void **state)
{
	struct rls_operation_stack stack = {0};

	rls_operation_stack_push_range(&stack, 1, 0xa);
	rls_operation_stack_push_range(&stack, 2, 0xb);
	rls_operation_stack_push_range(&stack, 3, 0xc);
	assert_false(rls_operation_stack_pop_range(&stack, 0xd));
	assert_true(rls_operation_stack_pop_range(&stack, 0xb));
	assert_stack(&stack, "1 3");
	assert_false(rls_operation_stack_pop_range(&stack, 0xb));
	/* The address is used again: what it named before is over. */
	rls_operation_stack_push_range(&stack, 4, 0xa);
	assert_stack(&stack, "3 4");
	assert_true(rls_operation_stack_pop_range(&stack, 0xa));
	assert_true(rls_operation_stack_pop_range(&stack, 0xc));
	assert_stack(&stack, "");
}

static void ranges_without_token_end_the_innermost_of_their_kind(void **state)
{
	struct rls_operation_stack stack = {0};

	assert_false(rls_operation_stack_pop_range(&stack, 0));
	rls_operation_stack_push_range(&stack, 1, 0);
	rls_operation_stack_push_range(&stack, 2, 0xa);
	rls_operation_stack_push_range(&stack, 3, 0);
	assert_true(rls_operation_stack_pop_range(&stack, 0));
	assert_stack(&stack, "1 2");
	/* Not the one above it, which is another source's. */
	assert_true(rls_operation_stack_pop_range(&stack, 0));
	assert_stack(&stack, "2");
	assert_false(rls_operation_stack_pop_range(&stack, 0));
	assert_stack(&stack, "2");
}

static void sources_nest_in_the_order_of_time(void **state)
{
	struct rls_operation_stack stack = {0};

	rls_operation_stack_push(&stack, 1, 1);
	rls_operation_stack_push_range(&stack, 2, 0);
	rls_operation_stack_push(&stack, 2, 3);
	rls_operation_stack_push_range(&stack, 4, 0xa);
	assert_stack(&stack, "1 2 3 4");
	rls_operation_stack_pop(&stack, 1);
	assert_stack(&stack, "1 2 4");
	assert_true(rls_operation_stack_pop_range(&stack, 0));
	assert_stack(&stack, "1 4");
	rls_operation_stack_clear_annotations(&stack);
	assert_stack(&stack, "4");
}

static void hidden_ranges_are_not_shown_and_end_no_other(void **state)
{
	struct rls_operation_stack stack = {0};

	rls_operation_stack_push_range(&stack, 1, 0);
	rls_operation_stack_push_hidden(&stack);
	rls_operation_stack_push(&stack, 1, 2);
	assert_stack(&stack, "1 2");
	assert_false(rls_operation_stack_pop_range(&stack, 0));
	assert_stack(&stack, "1 2");
	assert_true(rls_operation_stack_pop_range(&stack, 0));
	assert_stack(&stack, "2");
}

static void ranges_beyond_64_pair_all_the_same(void **state)
{
	struct rls_operation_stack stack = {0};

	for (uint32_t i = 1; i <= 70; i++)
		rls_operation_stack_push_range(&stack, i, 0);
	assert_int_equal(depth_of(&stack), 64);
	for (uint32_t i = 70; i > 64; i--) {
		assert_false(rls_operation_stack_pop_range(&stack, 0));
		assert_int_equal(depth_of(&stack), 64);
	}
	for (uint32_t i = 64; i > 0; i--) {
		assert_int_equal(stack.entries[stack.count - 1].name, i);
		assert_true(rls_operation_stack_pop_range(&stack, 0));
	}
	assert_stack(&stack, "");
	assert_false(rls_operation_stack_pop_range(&stack, 0));
}

static void room_made_below_does_not_confuse_pairs(void **state)
{
	struct rls_operation_stack stack = {0};

	rls_operation_stack_push_range(&stack, 7, 0);
	for (uint16_t depth = 1; depth <= 63; depth++)
		rls_operation_stack_push(&stack, depth, 100);
	rls_operation_stack_push_range(&stack, 8, 0); /* no room */
	rls_operation_stack_pop(&stack, 0);
	rls_operation_stack_push_range(&stack, 9, 0); /* room, but within one that is not kept */
	assert_stack(&stack, "7");
	assert_false(rls_operation_stack_pop_range(&stack, 0));
	assert_false(rls_operation_stack_pop_range(&stack, 0));
	assert_stack(&stack, "7");
	assert_true(rls_operation_stack_pop_range(&stack, 0));
	assert_stack(&stack, "");
}

/* Whatever comes: no more than 64 entries, and each call changes what is shown as it says. */
static void any_sequence_stays_in_bounds(void **state)
{
	struct rls_operation_stack stack = {0};

	srand(7);
	for (int i = 0; i < 200000; i++) {
		uint16_t depth = rand() % 8 ? (uint16_t)(rand() % 80) : (uint16_t)rand();
		uint64_t token = (uint64_t)(rand() % 6);
		uint16_t before = depth_of(&stack), after;

		switch (rand() % 6) {
		case 0:
		case 1:
			rls_operation_stack_push(&stack, depth, (rls_string_id)i);
			break;
		case 2:
			rls_operation_stack_pop(&stack, depth);
			assert_true(depth_of(&stack) <= before);
			break;
		case 3:
			rls_operation_stack_push_range(&stack, (rls_string_id)i, token);
			after = depth_of(&stack);
			assert_true(after == before || after == before + 1);
			break;
		case 4:
			after = before - rls_operation_stack_pop_range(&stack, token);
			assert_int_equal(depth_of(&stack), after);
			break;
		case 5:
			rls_operation_stack_push_hidden(&stack);
			assert_int_equal(depth_of(&stack), before);
			break;
		}
		assert_true(stack.count <= RLS_OPERATION_DEPTH_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushes_nest_and_pops_unnest),
		cmocka_unit_test(a_push_says_how_deep_it_is),
		cmocka_unit_test(hostile_depths_do_no_harm),
		cmocka_unit_test(annotations_beyond_64_are_not_distinguished),
		cmocka_unit_test(ranges_are_paired_by_token),
		cmocka_unit_test(ranges_without_token_end_the_innermost_of_their_kind),
		cmocka_unit_test(sources_nest_in_the_order_of_time),
		cmocka_unit_test(hidden_ranges_are_not_shown_and_end_no_other),
		cmocka_unit_test(ranges_beyond_64_pair_all_the_same),
		cmocka_unit_test(room_made_below_does_not_confuse_pairs),
		cmocka_unit_test(any_sequence_stays_in_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
