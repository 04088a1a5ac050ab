/* The stack of a waiting interpreter, walked from outside: slot, frames, names and lines are
 * those that the interpreter itself tells (nested.py), for each one that is installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/discover/child.h"
#include "userspace/process/mappings.h"
#include "userspace/python/code_object.h"
#include "userspace/python/interpreter.h"
#include "userspace/python/python_frames.h"

#define DEPTH_MAX 64
#define PROGRAM                                                                                    \
	"print('ready', flush=True)\n"                                                             \
	"exec(compile(open('nested.py').read(), 'nested.py', 'exec'))\n"

static const char *const interpreters[] = {INTERPRETERS};

struct walk {
	const struct rls_space *space;
	const struct rls_frame_layout *layout;
	uint64_t frame;
};

static uint64_t pointer_at(const struct rls_space *space, uint64_t address)
{
	uint64_t value;

	assert_true(rls_space_read(space, address, &value, sizeof(value)));
	return value;
}

/* The main thread is the oldest, the last in the list. */
static uint64_t main_thread(const struct rls_space *space, const struct rls_python *python,
			    const struct rls_frame_layout *layout)
{
	uint64_t interpreter = pointer_at(space, python->runtime + layout->runtime_interpreters);
	uint64_t state = pointer_at(space, interpreter + layout->interpreter_threads), next;

	while ((next = pointer_at(space, state + layout->thread_next)))
		state = next;
	return state;
}

static bool is_shim(const struct walk *walk)
{
	uint8_t owner;

	if (walk->layout->frame_owner == RLS_FRAMES_NO_OFFSET)
		return false;
	assert_true(
		rls_space_read(walk->space, walk->frame + walk->layout->frame_owner, &owner, 1));
	return owner >= walk->layout->owner_of_shims;
}

/* Code object and instruction offset of the next frame; false at the stack's end. */
static bool next_frame(struct walk *walk, uint64_t *code, int32_t *at)
{
	const struct rls_frame_layout *layout = walk->layout;
	uint64_t instruction;

	while (walk->frame && is_shim(walk))
		walk->frame = pointer_at(walk->space, walk->frame + layout->frame_back);
	if (!walk->frame)
		return false;
	*code = pointer_at(walk->space, walk->frame + layout->frame_code) & ~3ULL;
	instruction = pointer_at(walk->space, walk->frame + layout->frame_instruction);
	*at = layout->index_unit_bytes ? (int32_t)instruction * layout->index_unit_bytes
				       : (int32_t)(instruction - *code - layout->code_start);
	walk->frame = pointer_at(walk->space, walk->frame + layout->frame_back);
	return true;
}

static void check_frame(const struct walk *walk, uint64_t code_type, uint64_t address, int32_t at,
			const char *expected)
{
	struct rls_code_object code;
	char line[4096];

	assert_int_equal(rls_code_object_read(walk->space, walk->layout, code_type, address, &code),
			 0);
	snprintf(line, sizeof(line), "%d\t%s\t%s", rls_code_object_line(&code, at), code.function,
		 code.file);
	assert_string_equal(line, expected);
	rls_code_object_release(&code);
}

static void check(struct child *child, char lines[][4096], size_t count, unsigned int *minor)
{
	struct rls_mappings mappings;
	_cleanup_live_space_ struct rls_live_space live;
	struct rls_python python;
	struct walk walk = {.space = &live.space};
	uint64_t state, address;
	uint32_t slot;
	size_t depth = 0;
	int32_t at;

	rls_live_space_open(&live, child->pid);
	assert_int_equal(rls_mappings_read(child->pid, &mappings), 0);
	assert_int_equal(rls_python_find(child->pid, &mappings, &python), 0);
	*minor = python.minor;
	walk.layout = rls_frame_layout_of(&python);
	assert_non_null(walk.layout);
	state = main_thread(&live.space, &python, walk.layout);
	assert_int_equal(rls_frame_slot_find(child->pid, &python, walk.layout, &slot), 0);
	assert_int_equal(pointer_at(&live.space,
				    pointer_at(&live.space, state + walk.layout->thread_id) + slot),
			 state);
	walk.frame = pointer_at(&live.space, state + walk.layout->thread_frame);
	if (walk.layout->c_frame_frame != RLS_FRAMES_NO_OFFSET)
		walk.frame = pointer_at(&live.space, walk.frame + walk.layout->c_frame_frame);
	for (; next_frame(&walk, &address, &at); depth++) {
		assert_true(depth < count);
		check_frame(&walk, python.code_type, address, at, lines[depth]);
	}
	assert_int_equal(depth, count);
	rls_mappings_release(&mappings);
}

static void the_stack_is_the_interpreters_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
		static char lines[DEPTH_MAX][4096];
		struct child child;
		unsigned int minor;
		size_t count = 0;

		assert_true(child_start(&child, interpreters[i], ".", PROGRAM));
		while (child_line(&child, lines[count], sizeof(lines[0])) &&
		       strcmp(lines[count], "ready"))
			assert_true(++count < DEPTH_MAX);
		assert_true(count > 25);
		check(&child, lines, count, &minor);
		child_stop(&child);
		print_message("3.%u: %zu frames\n", minor, count);
	}
}

static size_t read_nothing(const struct rls_space *space, uint64_t address, void *buffer,
			   size_t length)
{
	(void)space, (void)address, (void)buffer, (void)length;
	return 0;
}

/* Answers every read with the same bytes. */
struct constant_space {
	struct rls_space space;
	uint8_t byte;
};

static size_t read_constant(const struct rls_space *space, uint64_t address, void *buffer,
			    size_t length)
{
	(void)address;
	memset(buffer, ((const struct constant_space *)space)->byte, length);
	return length;
}

static void what_is_no_code_object_is_refused(void **state)
{
	struct rls_python python = {.major = 3, .minor = 12, .runtime = 1};
	const struct rls_frame_layout *layout = rls_frame_layout_of(&python);
	struct rls_space nothing = {.read = read_nothing};
	struct constant_space constant = {.space = {.read = read_constant}};
	struct rls_code_object code;

	(void)state;
	assert_int_equal(rls_code_object_read(&nothing, layout, 0, 64, &code), -14 /* EFAULT */);
	for (int byte = 0; byte < 256; byte++) {
		constant.byte = (uint8_t)byte;
		assert_int_equal(rls_code_object_read(&constant.space, layout, 1, 64, &code),
				 -22 /* EINVAL */);
		if (!rls_code_object_read(&constant.space, layout, 0, 64, &code))
			rls_code_object_release(&code);
	}
}

static void interpreters_without_a_layout_have_none(void **state)
{
	struct rls_python python = {.major = 3, .minor = 15, .runtime = 1};

	(void)state;
	assert_null(rls_frame_layout_of(&python));
	python.minor = 12;
	assert_non_null(rls_frame_layout_of(&python));
	python.free_threaded = true;
	assert_null(rls_frame_layout_of(&python));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_stack_is_the_interpreters_own),
		cmocka_unit_test(what_is_no_code_object_is_refused),
		cmocka_unit_test(interpreters_without_a_layout_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
