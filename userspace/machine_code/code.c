#include "userspace/machine_code/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "analysis/base/search.h"
#include "userspace/machine_code/epilogue.h"

enum {
	INSTRUCTION_BYTES_MAX = 15,
	EXTENT_BYTES_MAX = 1 << 20,
};

int rls_addresses_add(struct rls_addresses *addresses, uint64_t address)
{
	if (rls_grow(&addresses->items, &addresses->capacity, addresses->count))
		return -ENOMEM;
	addresses->items[addresses->count++] = address;
	return 0;
}

static int compare_addresses(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

void rls_addresses_sort(struct rls_addresses *addresses)
{
	if (addresses->count)
		qsort(addresses->items, addresses->count, sizeof(*addresses->items),
		      compare_addresses);
}

bool rls_addresses_any(const struct rls_addresses *addresses, uint64_t first, uint64_t last)
{
	size_t low = rls_first_not(addresses->count, i, addresses->items[i] < first);

	return low < addresses->count && addresses->items[low] <= last;
}

void rls_addresses_clear(struct rls_addresses *addresses)
{
	free(addresses->items);
	*addresses = (struct rls_addresses){0};
}

int rls_ways_out_add(struct rls_ways_out *ways, struct rls_way_out way)
{
	if (rls_grow(&ways->items, &ways->capacity, ways->count))
		return -ENOMEM;
	ways->items[ways->count++] = way;
	return 0;
}

void rls_ways_out_clear(struct rls_ways_out *ways)
{
	free(ways->items);
	*ways = (struct rls_ways_out){0};
}

/* A jump table's jump reads its target just computed (`add %rdx,%rax; jmp *%rax`), or
 * straight from the table (`jmp *table(,%rax,8)`, which looks like a tail call here), or says
 * notrack. Taking a tail call for a table would lose an exit, the other way round only
 * costs precision; so anything else is an exit. */
static bool is_jump_table(const struct rls_instruction *jump, const uint8_t *previous,
			  size_t previous_length)
{
	const uint8_t add_rm_r = 0x01, add_r_rm = 0x03;

	if (jump->notrack)
		return true;
	return previous_length == 3 && (previous[0] & 0xf8) == 0x48 &&
	       (previous[1] == add_rm_r || previous[1] == add_r_rm) && previous[2] >= 0xc0;
}

static int note_direct(struct rls_code *code, const struct rls_instruction *instruction)
{
	bool is_call = instruction->flow == RLS_FLOW_CALL;

	code->calls |= is_call;
	code->restarts |= !is_call && instruction->target == code->start;
	if (instruction->target >= code->start && instruction->target < code->end)
		return rls_addresses_add(&code->targets, instruction->target);
	if (is_call)
		return 0;
	return rls_addresses_add(&code->exits, instruction->target);
}

/* By the check before it where there is one, as it seems: what jumps there is not known yet. */
static int note_return(struct rls_code *code, uint64_t vaddr, const struct rls_epilogue *epilogue)
{
	struct rls_way_out way = {.ret_vaddr = vaddr, .vaddr = vaddr};

	if (epilogue->check_vaddr) {
		way.vaddr = epilogue->check_vaddr;
		way.slot_bytes = epilogue->slot_bytes;
	}
	return rls_ways_out_add(&code->returns, way);
}

static int code_note(struct rls_code *code, const struct rls_instruction *instruction,
		     const uint8_t *previous, size_t previous_length,
		     const struct rls_epilogue *epilogue)
{
	switch (instruction->flow) {
	case RLS_FLOW_JUMP:
	case RLS_FLOW_BRANCH:
	case RLS_FLOW_CALL:
		return note_direct(code, instruction);
	case RLS_FLOW_JUMP_INDIRECT:
		if (!is_jump_table(instruction, previous, previous_length))
			code->indirect_exit = true;
		return 0;
	case RLS_FLOW_CALL_INDIRECT:
		code->calls = true;
		code->indirect_calls |= !instruction->target;
		return 0;
	case RLS_FLOW_STOP:
		code->calls = true;
		return 0;
	case RLS_FLOW_RETURN:
		if (instruction->probeable)
			return note_return(code, instruction->vaddr, epilogue);
		code->indirect_exit = true;
		return 0;
	default:
		return 0;
	}
}

static int read_instructions(struct rls_code *code, const uint8_t *bytes)
{
	uint64_t size = code->end - code->start, at = 0;
	struct rls_instruction instruction = {0};
	struct rls_epilogue epilogue = {0};

	while (at < size) {
		size_t previous_length = instruction.length;
		int err;

		/* Bytes that are no instruction end the reading: what follows may be wrong. */
		if (rls_decode(bytes + at, size - at, code->start + at, &instruction) < 0)
			return 0;
		rls_epilogue_read(&epilogue, &instruction, bytes + at);
		err = code_note(code, &instruction, bytes + at - previous_length, previous_length,
				&epilogue);
		if (err < 0)
			return err;
		at += instruction.length;
	}
	code->complete = true;
	return 0;
}

/* Back to the ret where a way there leads past the check, or may. */
static void classify_returns(struct rls_code *code)
{
	for (size_t i = 0; i < code->returns.count; i++) {
		struct rls_way_out *way = &code->returns.items[i];

		if (code->complete &&
		    !rls_addresses_any(&code->targets, way->vaddr + 1, way->ret_vaddr))
			continue;
		way->vaddr = way->ret_vaddr;
		way->slot_bytes = 0;
	}
}

int rls_code_read(const struct rls_elf *elf, uint64_t start, uint64_t size_bytes,
		  uint64_t *bytes_left, struct rls_code *out)
{
	uint64_t left = rls_elf_bytes_left(elf, start);
	uint64_t size = size_bytes < left ? size_bytes : left;
	struct rls_code code = {.start = start};
	const uint8_t *bytes;
	int err;

	if (size > EXTENT_BYTES_MAX)
		size = EXTENT_BYTES_MAX;
	bytes = size ? rls_elf_bytes(elf, start, size) : NULL;
	if (!bytes)
		return -EFAULT;
	if (size > *bytes_left)
		return -EFBIG;
	*bytes_left -= size;
	code.end = start + size;
	err = read_instructions(&code, bytes);
	if (err < 0) {
		rls_code_clear(&code);
		return err;
	}
	if (size < size_bytes)
		code.complete = false;
	rls_addresses_sort(&code.targets);
	rls_addresses_sort(&code.exits);
	classify_returns(&code);
	*out = code;
	return 0;
}

void rls_code_clear(struct rls_code *code)
{
	rls_addresses_clear(&code->targets);
	rls_ways_out_clear(&code->returns);
	rls_addresses_clear(&code->exits);
	*code = (struct rls_code){0};
}

int rls_code_decode(const struct rls_elf *elf, uint64_t vaddr, struct rls_instruction *out)
{
	size_t left = rls_elf_bytes_left(elf, vaddr);
	const uint8_t *bytes;

	if (left > INSTRUCTION_BYTES_MAX)
		left = INSTRUCTION_BYTES_MAX;
	bytes = left ? rls_elf_bytes(elf, vaddr, left) : NULL;
	if (!bytes)
		return -EFAULT;
	return rls_decode(bytes, left, vaddr, out);
}
