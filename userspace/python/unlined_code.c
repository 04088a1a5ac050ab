#include "userspace/python/unlined_code.h"

#include <errno.h>
#include <stdlib.h>

#define UNIT_BYTES 2

/* ---- jumps ---- */

enum jump_kind {
	NO_JUMP,
	FORWARD_JUMP, /* by so many units from the next instruction */
	ABSOLUTE_JUMP, /* to unit */
	PREFIX, /* the higher bits of the next instruction's argument */
};

#define EXTENDED_ARG 144

/* Jumps that go forward, or may. */
static enum jump_kind jump_kind_3_10(uint8_t opcode)
{
	switch (opcode) {
	case 93: /* FOR_ITER */
	case 110: /* JUMP_FORWARD */
	case 122: /* SETUP_FINALLY */
		return FORWARD_JUMP;
	case 111: /* JUMP_IF_FALSE_OR_POP */
	case 112: /* JUMP_IF_TRUE_OR_POP */
	case 114: /* POP_JUMP_IF_FALSE */
	case 115: /* POP_JUMP_IF_TRUE */
	case 121: /* JUMP_IF_NOT_EXC_MATCH */
		return ABSOLUTE_JUMP;
	case EXTENDED_ARG:
		return PREFIX;
	default:
		return NO_JUMP;
	}
}

static enum jump_kind jump_kind_3_11(uint8_t opcode)
{
	switch (opcode) {
	case 93: /* FOR_ITER */
	case 110: /* JUMP_FORWARD */
	case 111: /* JUMP_IF_FALSE_OR_POP */
	case 112: /* JUMP_IF_TRUE_OR_POP */
	case 114: /* POP_JUMP_FORWARD_IF_FALSE */
	case 115: /* POP_JUMP_FORWARD_IF_TRUE */
	case 123: /* SEND */
	case 128: /* POP_JUMP_FORWARD_IF_NOT_NONE */
	case 129: /* POP_JUMP_FORWARD_IF_NONE */
		return FORWARD_JUMP;
	case 34: /* EXTENDED_ARG_QUICK */
	case EXTENDED_ARG:
		return PREFIX;
	default:
		return NO_JUMP;
	}
}

static enum jump_kind jump_kind_of(unsigned int minor, uint8_t opcode)
{
	return minor == 10   ? jump_kind_3_10(opcode)
	       : minor == 11 ? jump_kind_3_11(opcode)
			     : NO_JUMP;
}

/* Where the instruction at byte offset `at` jumps to, 0: nowhere. *prefix: the argument's higher
 * bits so far. Inline caches of 3.11 are taken for instructions too: that they look like a jump to
 * one certain place is unlikely, and the place's line is then one of the same function. */
static uint64_t jump_target(const struct rls_bytecode *bytecode, size_t at, uint32_t *prefix)
{
	uint8_t opcode = bytecode->code[at];
	uint32_t argument = *prefix << 8 | bytecode->code[at + 1];

	*prefix = 0;
	switch (jump_kind_of(bytecode->minor, opcode)) {
	case FORWARD_JUMP:
		return at + UNIT_BYTES + UNIT_BYTES * (uint64_t)argument;
	case ABSOLUTE_JUMP:
		return UNIT_BYTES * (uint64_t)argument;
	case PREFIX:
		*prefix = argument;
		return 0;
	case NO_JUMP:
		return 0;
	}
	return 0;
}

/* ---- ranges ---- */

/* The last range that begins at or before `at` and holds it. */
static struct rls_line_range *unlined_at(const struct rls_unlined *unlined, uint64_t at)
{
	size_t from = 0, to = unlined->count;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (unlined->items[middle].begin <= at)
			from = middle + 1;
		else
			to = middle;
	}
	return from && at < unlined->items[from - 1].end ? &unlined->items[from - 1] : NULL;
}

/* Every range without a line, with the line of what comes before it. */
static int collect(struct rls_line_cursor lines, struct rls_unlined *into)
{
	struct rls_line_range range;
	int32_t before = 0;

	while (rls_line_cursor_next(&lines, &range)) {
		if (range.line) {
			before = range.line;
		} else if (range.begin < range.end) {
			range.line = before;
			if (rls_list_push(into, range))
				return -ENOMEM;
		}
	}
	return 0;
}

/* The last jump from before a range stands. */
static void follow_jumps(const struct rls_bytecode *bytecode, struct rls_line_cursor lines,
			 struct rls_unlined *unlined)
{
	struct rls_line_range from = {0};
	uint32_t prefix = 0;

	for (size_t at = 0; at + UNIT_BYTES <= bytecode->bytes; at += UNIT_BYTES) {
		uint64_t target = jump_target(bytecode, at, &prefix);
		struct rls_line_range *range;

		while (from.end <= at)
			if (!rls_line_cursor_next(&lines, &from))
				return;
		range = target > at ? unlined_at(unlined, target) : NULL;
		if (range && range->begin == target && from.line)
			range->line = from.line;
	}
}

int rls_unlined_read(const struct rls_bytecode *bytecode, struct rls_line_cursor lines,
		     struct rls_unlined *out)
{
	struct rls_unlined unlined = {0};

	if (collect(lines, &unlined)) {
		rls_unlined_release(&unlined);
		return -ENOMEM;
	}
	follow_jumps(bytecode, lines, &unlined);
	*out = unlined;
	return 0;
}

void rls_unlined_release(struct rls_unlined *unlined)
{
	free(unlined->items);
	*unlined = (struct rls_unlined){0};
}

int32_t rls_unlined_line(const struct rls_unlined *unlined, uint32_t at)
{
	const struct rls_line_range *range = unlined_at(unlined, at);

	return range ? range->line : 0;
}
