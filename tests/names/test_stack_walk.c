/* Walking a waiting thread's stack in memory that is the test's: whole stacks, and such as a hostile
 * or a running process may show. Real interpreters are walked by the root tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/python/stack_walk.h"

#define BASE 0x10000ULL
#define THREAD BASE
#define STATE (BASE + 0x1000)
#define C_FRAME (BASE + 0x1800)
#define FRAMES (BASE + 0x2000) /* 0x100 bytes each */
#define CODES (BASE + 0x20000)
#define CODE_TYPE 0x777000ULL
#define SLOT 0x310

/* In parts: an interpreter with C frames and shims has all that the others have. */
static const struct rls_wire_interpreter layout = {
	.slot = SLOT,
	.thread_frame = 56,
	.c_frame_frame = RLS_STACK_NO_OFFSET,
	.frame_back = 8,
	.frame_code = 0,
	.frame_instruction = 56,
	.frame_owner = 70,
	.owner_of_shims = 3,
	.code_file = 112,
	.code_pointers_more = 3,
	.code_first_line = 68,
	.code_start = 192,
	.code_type = CODE_TYPE,
};

static struct {
	struct rls_space space;
	uint8_t bytes[0x40000];
} memory;

static size_t read_memory(const struct rls_space *space, uint64_t address, void *buffer,
			  size_t length)
{
	(void)space;
	if (address < BASE || address >= BASE + sizeof(memory.bytes))
		return 0;
	if (length > BASE + sizeof(memory.bytes) - address)
		length = BASE + sizeof(memory.bytes) - address;
	memcpy(buffer, memory.bytes + (address - BASE), length);
	return length;
}

static void put(uint64_t address, uint64_t word)
{
	memcpy(memory.bytes + (address - BASE), &word, sizeof(word));
}

static uint64_t frame_at(unsigned int i)
{
	return FRAMES + 0x100ULL * i;
}

static uint64_t code_at(unsigned int i)
{
	return CODES + 0x100ULL * i;
}

/* `depth` frames, the innermost first; each at the instruction with its number. */
static void lay_out(unsigned int depth)
{
	memset(&memory, 0, sizeof(memory));
	memory.space.read = read_memory;
	put(THREAD + SLOT, STATE);
	put(STATE + 56, depth ? frame_at(0) : 0);
	for (unsigned int i = 0; i < depth; i++) {
		put(frame_at(i), code_at(i));
		put(frame_at(i) + 8, i + 1 < depth ? frame_at(i + 1) : 0);
		put(frame_at(i) + 56, code_at(i) + 192 + i);
		put(code_at(i) + 8, CODE_TYPE);
		put(code_at(i) + 68, 100 + i);
	}
}

static struct rls_wire_stack walk(const struct rls_wire_interpreter *interpreter,
				  uint64_t thread_pointer)
{
	struct rls_wire_stack stack = {.frames = 7};

	rls_stack_walk(&memory.space, interpreter, thread_pointer, &stack);
	return stack;
}

static void each_frame_has_its_code_and_place(void **state)
{
	const uint64_t none[RLS_CODE_POINTERS] = {0};
	struct rls_wire_stack stack;

	(void)state;
	lay_out(3);
	stack = walk(&layout, THREAD);
	assert_int_equal(stack.end, RLS_STACK_WHOLE);
	assert_int_equal(stack.frames, 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(stack.frame[i].code, code_at(i));
		assert_int_equal(stack.frame[i].at, i);
		assert_int_equal(stack.frame[i].identity, rls_code_identity(100 + i, none));
	}
}

static void shims_and_bits_of_pointers_are_no_frames(void **state)
{
	struct rls_wire_stack stack;

	(void)state;
	lay_out(3);
	memory.bytes[frame_at(1) + 70 - BASE] = 3;
	put(frame_at(1), 1); /* nothing of it is read */
	put(frame_at(2), code_at(2) | 1);
	stack = walk(&layout, THREAD);
	assert_int_equal(stack.end, RLS_STACK_WHOLE);
	assert_int_equal(stack.frames, 2);
	assert_int_equal(stack.frame[1].code, code_at(2));
}

static void a_c_frame_leads_to_the_innermost(void **state)
{
	struct rls_wire_interpreter interpreter = layout;
	struct rls_wire_stack stack;

	(void)state;
	interpreter.c_frame_frame = 16;
	interpreter.c_frame_back = 24;
	interpreter.frame_is_entry = 72;
	lay_out(3);
	put(STATE + 56, C_FRAME);
	put(C_FRAME + 16, frame_at(0));
	put(C_FRAME + 24, C_FRAME + 0x100);
	put(C_FRAME + 0x100 + 16, frame_at(2)); /* where C entered from */
	put(frame_at(1) + 72, 1);
	stack = walk(&interpreter, THREAD);
	assert_int_equal(stack.end, RLS_STACK_WHOLE);
	assert_int_equal(stack.frames, 3);
	put(C_FRAME + 0x100 + 16,
	    frame_at(1)); /* what is left of another call enters from elsewhere */
	stack = walk(&interpreter, THREAD);
	assert_int_equal(stack.end, RLS_STACK_ENTERING);
	assert_int_equal(stack.frames, 0);
	put(C_FRAME + 24, 0); /* the first one, which nobody entered by */
	assert_int_equal(walk(&interpreter, THREAD).end, RLS_STACK_ENTERING);
	put(C_FRAME + 16, 0);
	assert_int_equal(walk(&interpreter, THREAD).end, RLS_STACK_WHOLE);
	put(STATE + 56, 0);
	assert_int_equal(walk(&interpreter, THREAD).end, RLS_STACK_FAULT);
}

static void instructions_may_be_indices(void **state)
{
	struct rls_wire_interpreter interpreter = layout;
	struct rls_wire_stack stack;

	(void)state;
	interpreter.index_unit_bytes = 2;
	lay_out(2);
	put(frame_at(0) + 56, (uint32_t)-1);
	put(frame_at(1) + 56, 0xdead00000010ULL); /* the index has 4 bytes */
	stack = walk(&interpreter, THREAD);
	assert_int_equal((int32_t)stack.frame[0].at, -2);
	assert_int_equal(stack.frame[1].at, 32);
}

static void threads_without_python_have_no_frames(void **state)
{
	(void)state;
	lay_out(0);
	assert_int_equal(walk(&layout, THREAD).end, RLS_STACK_WHOLE);
	assert_int_equal(walk(&layout, THREAD).frames, 0);
	assert_int_equal(walk(&layout, 0).end, RLS_STACK_NO_STATE);
	assert_int_equal(walk(&layout, 0x500).end, RLS_STACK_NO_STATE);
	put(THREAD + SLOT, 0);
	assert_int_equal(walk(&layout, THREAD).end, RLS_STACK_NO_STATE);
	put(THREAD + SLOT, 0x500);
	assert_int_equal(walk(&layout, THREAD).end, RLS_STACK_FAULT);
}

static void what_is_no_code_object_ends_the_walk(void **state)
{
	struct rls_wire_stack stack;

	(void)state;
	lay_out(4);
	put(code_at(2) + 8, CODE_TYPE + 8);
	stack = walk(&layout, THREAD);
	assert_int_equal(stack.end, RLS_STACK_FAULT);
	assert_int_equal(stack.frames, 2);
	lay_out(4);
	put(frame_at(0) + 8, BASE + sizeof(memory.bytes) - 16); /* not all of a frame is there */
	stack = walk(&layout, THREAD);
	assert_int_equal(stack.end, RLS_STACK_FAULT);
	assert_int_equal(stack.frames, 1);
}

static void circles_end(void **state)
{
	struct rls_wire_stack stack;

	(void)state;
	lay_out(2);
	put(frame_at(1) + 8, frame_at(0));
	stack = walk(&layout, THREAD);
	assert_int_equal(stack.end, RLS_STACK_TOO_DEEP);
	assert_int_equal(stack.frames, RLS_WALK_FRAMES_MAX);
	memory.bytes[frame_at(0) + 70 - BASE] = memory.bytes[frame_at(1) + 70 - BASE] = 3;
	stack = walk(&layout, THREAD); /* of shims alone */
	assert_int_equal(stack.end, RLS_STACK_TOO_DEEP);
	assert_int_equal(stack.frames, 0);
}

static void offsets_that_no_layout_has_are_refused(void **state)
{
	struct rls_wire_interpreter interpreter = layout;

	(void)state;
	lay_out(2);
	interpreter.frame_back = 4000;
	assert_int_equal(walk(&interpreter, THREAD).end, RLS_STACK_FAULT);
	interpreter = layout;
	interpreter.code_file = 4000;
	assert_int_equal(walk(&interpreter, THREAD).end, RLS_STACK_FAULT);
	assert_int_equal(walk(&interpreter, THREAD).frames, 0);
}

/* ---- subinterpreters: a thread's slot has its first state all the time ---- */

#define LISTED (BASE + 0x400) /* the newest interpreter, the main one */
#define INTERPRETER (BASE + 0x500) /* 0x40 bytes each: the main one, another */
#define OTHER_STATE (BASE + 0x1400)
#define OTHERS_CODE 5 /* of the one frame that the other state has */
#define STACK (BASE + 0x30000)
#define C_STACK 80 /* where a state has an address of the C stack */

static struct rls_wire_interpreter with_subinterpreter(uint8_t c_stack)
{
	struct rls_wire_interpreter interpreter = layout;

	interpreter.interpreters = LISTED;
	interpreter.interpreter_threads = 8;
	interpreter.thread_next = 8;
	interpreter.thread_interpreter = 16;
	interpreter.thread_c_stack = c_stack;
	lay_out(3);
	put(LISTED, INTERPRETER + 0x40);
	put(LISTED + 8, INTERPRETER);
	put(INTERPRETER + 0x40, INTERPRETER);
	put(INTERPRETER + 8, STATE);
	put(INTERPRETER + 0x48, OTHER_STATE);
	put(STATE + 16, INTERPRETER);
	put(OTHER_STATE + 16, INTERPRETER + 0x40);
	put(OTHER_STATE + 56, frame_at(OTHERS_CODE));
	put(frame_at(OTHERS_CODE), code_at(OTHERS_CODE));
	put(frame_at(OTHERS_CODE) + 56, code_at(OTHERS_CODE) + 192);
	put(code_at(OTHERS_CODE) + 8, CODE_TYPE);
	return interpreter;
}

/* The code of the innermost frame of a thread with this stack pointer. */
static uint64_t innermost_code(const struct rls_wire_interpreter *interpreter,
			       uint64_t stack_pointer)
{
	struct rls_wire_stack stack = {.stack_pointer = stack_pointer};

	rls_stack_walk(&memory.space, interpreter, THREAD, &stack);
	assert_int_equal(stack.end, RLS_STACK_WHOLE);
	assert_true(stack.frames);
	return stack.frame[0].code;
}

static void the_c_stack_shows_which_state_is_in_use(void **state)
{
	const struct rls_wire_interpreter interpreter = with_subinterpreter(C_STACK);

	(void)state;
	assert_int_equal(innermost_code(&interpreter, STACK), code_at(0));
	put(STATE + C_STACK, STACK + 0x200);
	put(OTHER_STATE + C_STACK, STACK + 0x100); /* entered later */
	assert_int_equal(innermost_code(&interpreter, STACK), code_at(OTHERS_CODE));
	assert_int_equal(innermost_code(&interpreter, 0), code_at(0));
	put(OTHER_STATE + C_STACK, STACK + 0x300); /* entered before */
	assert_int_equal(innermost_code(&interpreter, STACK), code_at(0));
	put(OTHER_STATE + C_STACK, STACK - 8); /* another thread's */
	assert_int_equal(innermost_code(&interpreter, STACK), code_at(0));
}

static void a_thread_ends_its_stack(void **state)
{
	struct rls_wire_interpreter interpreter = with_subinterpreter(C_STACK);
	struct rls_wire_stack stack = {.stack_pointer = BASE + 0x100};
	const uint64_t thread = BASE + 0x800;

	(void)state;
	interpreter.slot = 0x40;
	put(thread + 0x40, STATE);
	put(OTHER_STATE + C_STACK, thread + 8);
	rls_stack_walk(&memory.space, &interpreter, thread, &stack);
	assert_int_equal(stack.frame[0].code, code_at(0));
	put(OTHER_STATE + C_STACK, thread - 8);
	rls_stack_walk(&memory.space, &interpreter, thread, &stack);
	assert_int_equal(stack.frame[0].code, code_at(OTHERS_CODE));
	put(thread + 0x40, 0); /* it has no state of its own */
	rls_stack_walk(&memory.space, &interpreter, thread, &stack);
	assert_int_equal(stack.frame[0].code, code_at(OTHERS_CODE));
}

static void a_frame_on_the_stack_shows_which_state_is_in_use(void **state)
{
	const struct rls_wire_interpreter interpreter = with_subinterpreter(0);

	(void)state;
	put(STACK + 0x40, frame_at(0));
	assert_int_equal(innermost_code(&interpreter, STACK), code_at(0));
	put(STACK + 0x3ff8, frame_at(OTHERS_CODE));
	assert_int_equal(innermost_code(&interpreter, STACK), code_at(OTHERS_CODE));
	assert_int_equal(innermost_code(&interpreter, STACK - 0x40),
			 code_at(0)); /* too far above */
	put(OTHER_STATE + 56, 0); /* it runs nothing; the stack has a 0 */
	assert_int_equal(innermost_code(&interpreter, STACK), code_at(0));
}

static void lists_of_states_may_be_hostile(void **state)
{
	const struct rls_wire_interpreter interpreter = with_subinterpreter(C_STACK);

	(void)state;
	put(OTHER_STATE + 8, OTHER_STATE);
	assert_int_equal(innermost_code(&interpreter, STACK), code_at(0));
	put(OTHER_STATE + 8, 0x500);
	assert_int_equal(innermost_code(&interpreter, STACK), code_at(0));
	put(INTERPRETER + 0x40, INTERPRETER + 0x40);
	put(INTERPRETER + 0x48, 0);
	assert_int_equal(innermost_code(&interpreter, STACK), code_at(0));
	put(LISTED, 0x500);
	assert_int_equal(innermost_code(&interpreter, STACK), code_at(0));
	/* At the end of memory: nothing above is a stack. */
	assert_int_equal(innermost_code(&interpreter, BASE + sizeof(memory.bytes)), code_at(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_frame_has_its_code_and_place),
		cmocka_unit_test(shims_and_bits_of_pointers_are_no_frames),
		cmocka_unit_test(a_c_frame_leads_to_the_innermost),
		cmocka_unit_test(instructions_may_be_indices),
		cmocka_unit_test(threads_without_python_have_no_frames),
		cmocka_unit_test(what_is_no_code_object_ends_the_walk),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(offsets_that_no_layout_has_are_refused),
		cmocka_unit_test(the_c_stack_shows_which_state_is_in_use),
		cmocka_unit_test(a_thread_ends_its_stack),
		cmocka_unit_test(a_frame_on_the_stack_shows_which_state_is_in_use),
		cmocka_unit_test(lists_of_states_may_be_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
