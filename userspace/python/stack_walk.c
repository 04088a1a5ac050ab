#include "userspace/python/stack_walk.h"

#include <stdbool.h>
#include <string.h>

#include "userspace/python/state_in_use.h"

#define POINTER_BITS (~3ULL) /* 3.14 keeps what kind of reference it is in the lowest */
#define OBJECT_TYPE 8 /* where every object has its type */
/* No known layout reaches so far; what goes beyond is not believed. */
#define FRAME_BYTES_MAX 256
#define CODE_BYTES_MAX 256

/* What is read of a frame, and of its code object, at once. */
struct walked {
	uint8_t frame[FRAME_BYTES_MAX];
	uint8_t code[CODE_BYTES_MAX];
};

static bool read_word(const struct rls_space *space, uint64_t address, uint64_t *out)
{
	return rls_space_read(space, address, out, sizeof(*out));
}

static uint64_t word_in(const uint8_t *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static size_t largest(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t frame_bytes(const struct rls_wire_interpreter *interpreter)
{
	size_t last = largest(largest(interpreter->frame_back, interpreter->frame_code),
			      interpreter->frame_instruction);

	if (interpreter->frame_owner != RLS_STACK_NO_OFFSET && interpreter->frame_owner > last)
		last = interpreter->frame_owner;
	return last + sizeof(uint64_t);
}

static size_t pointers_of(const struct rls_wire_interpreter *interpreter)
{
	return (interpreter->code_pointers_more & (RLS_CODE_POINTERS - 1)) + 1U;
}

static size_t code_bytes(const struct rls_wire_interpreter *interpreter)
{
	return largest(interpreter->code_first_line + sizeof(uint32_t),
		       interpreter->code_file + pointers_of(interpreter) * sizeof(uint64_t));
}

/* ---- where C enters, in interpreters that keep a C frame for each entry: as bpf/shared/python_entry.bpf.h has it ---- */

static bool is_flag(const struct rls_space *space, uint64_t address, uint8_t least)
{
	uint8_t byte;

	return rls_space_read(space, address, &byte, sizeof(byte)) && byte >= least;
}

static bool is_shim(const struct rls_space *space, const struct rls_wire_interpreter *interpreter,
		    uint64_t frame)
{
	return interpreter->frame_owner != RLS_STACK_NO_OFFSET &&
	       is_flag(space, frame + interpreter->frame_owner, interpreter->owner_of_shims);
}

static bool is_entry(const struct rls_space *space, const struct rls_wire_interpreter *interpreter,
		     uint64_t frame)
{
	if (!interpreter->frame_is_entry)
		return is_shim(space, interpreter, frame);
	return is_flag(space, frame + interpreter->frame_is_entry, 1);
}

static bool has_code(const struct rls_space *space, const struct rls_wire_interpreter *interpreter,
		     uint64_t frame)
{
	uint64_t code, type;

	return is_shim(space, interpreter, frame) || !interpreter->code_type ||
	       (read_word(space, frame + interpreter->frame_code, &code) &&
		read_word(space, (code & POINTER_BITS) + OBJECT_TYPE, &type) &&
		type == interpreter->code_type);
}

/* Whether the thread's C frame is its own: a thread that lost its CPU while it entered has what another call left. */
static bool is_filled_in(const struct rls_space *space,
			 const struct rls_wire_interpreter *interpreter, uint64_t c_frame)
{
	uint64_t frame, back, caller;
	bool entered = false;

	if (!read_word(space, c_frame + interpreter->c_frame_frame, &frame) ||
	    !read_word(space, c_frame + interpreter->c_frame_back, &back))
		return false;
	if (!back) /* the first one, which nobody entered by */
		return !frame;
	if (!read_word(space, back + interpreter->c_frame_frame, &caller) || !frame ||
	    !has_code(space, interpreter, frame))
		return false;
	for (int step = 0; step < RLS_WALK_FRAMES_MAX; step++) {
		if (entered)
			return frame == caller;
		if (!frame)
			return false;
		entered = is_entry(space, interpreter, frame);
		if (!read_word(space, frame + interpreter->frame_back, &frame))
			return false;
	}
	return true;
}

/* ---- the walk ---- */

/* The thread's innermost frame; 0: none, and *end says why. */
static uint64_t innermost_frame(const struct rls_space *space,
				const struct rls_wire_interpreter *interpreter,
				uint64_t thread_pointer, uint64_t stack_pointer, uint8_t *end)
{
	uint64_t state, frame;

	*end = RLS_STACK_NO_STATE;
	if (!thread_pointer || !read_word(space, thread_pointer + interpreter->slot, &state))
		return 0;
	state = rls_state_in_use(space, interpreter, thread_pointer, stack_pointer, state);
	if (!state)
		return 0;
	*end = RLS_STACK_FAULT;
	if (!read_word(space, state + interpreter->thread_frame, &frame))
		return 0;
	if (interpreter->c_frame_frame != RLS_STACK_NO_OFFSET) {
		if (!frame)
			return 0;
		*end = RLS_STACK_ENTERING;
		if (!is_filled_in(space, interpreter, frame))
			return 0;
		*end = RLS_STACK_FAULT;
		if (!read_word(space, frame + interpreter->c_frame_frame, &frame))
			return 0;
	}
	*end = RLS_STACK_WHOLE;
	return frame;
}

/* 1: *out is filled in; 0: no frame of Python's own; -1: it is not one, or not all could be read. */
static int read_frame(const struct rls_space *space, const struct rls_wire_interpreter *interpreter,
		      uint64_t address, struct walked *walked, struct rls_wire_frame *out)
{
	uint64_t pointers[RLS_CODE_POINTERS] = {0}, code, instruction;
	uint32_t first_line;

	if (!rls_space_read(space, address, walked->frame, frame_bytes(interpreter)))
		return -1;
	if (interpreter->frame_owner != RLS_STACK_NO_OFFSET &&
	    walked->frame[interpreter->frame_owner] >= interpreter->owner_of_shims)
		return 0;
	code = word_in(walked->frame, interpreter->frame_code) & POINTER_BITS;
	instruction = word_in(walked->frame, interpreter->frame_instruction);
	if (!rls_space_read(space, code, walked->code, code_bytes(interpreter)) ||
	    (interpreter->code_type &&
	     word_in(walked->code, OBJECT_TYPE) != interpreter->code_type))
		return -1;
	memcpy(&first_line, walked->code + interpreter->code_first_line, sizeof(first_line));
	memcpy(pointers, walked->code + interpreter->code_file,
	       pointers_of(interpreter) * sizeof(pointers[0]));
	out->code = code;
	out->identity = rls_code_identity(first_line, pointers);
	if (interpreter->index_unit_bytes)
		out->at = (uint32_t)((int32_t)instruction * interpreter->index_unit_bytes);
	else
		out->at = (uint32_t)(instruction - code - interpreter->code_start);
	return 1;
}

void rls_stack_walk(const struct rls_space *space, const struct rls_wire_interpreter *interpreter,
		    uint64_t thread_pointer, struct rls_wire_stack *stack)
{
	struct walked walked;
	uint64_t frame;

	stack->frames = 0;
	stack->end = RLS_STACK_FAULT;
	if (frame_bytes(interpreter) > sizeof(walked.frame) ||
	    code_bytes(interpreter) > sizeof(walked.code))
		return;
	frame = innermost_frame(space, interpreter, thread_pointer, stack->stack_pointer,
				&stack->end);
	for (int step = 0; frame; step++) {
		int found;

		if (step == RLS_WALK_FRAMES_MAX) {
			stack->end = RLS_STACK_TOO_DEEP;
			return;
		}
		found = read_frame(space, interpreter, frame, &walked,
				   &stack->frame[stack->frames]);
		if (found < 0) {
			stack->end = RLS_STACK_FAULT;
			return;
		}
		stack->frames = (uint16_t)(stack->frames + found);
		frame = word_in(walked.frame, interpreter->frame_back);
	}
}
