#include "userspace/plan/choice.h"

#include <errno.h>

#include "userspace/machine_code/decoder.h"

/* What the walk has come across; a length of 0 means none. */
struct candidates {
	struct rls_instruction emulated;
	struct rls_instruction first; /* the first probeable one, whatever its class */
	struct rls_instruction landing; /* endbr64 at start */
};

static bool moves_stack(const struct rls_elf *elf, const struct rls_instruction *instruction)
{
	const uint8_t *bytes = rls_elf_bytes(elf, instruction->vaddr, instruction->length);

	return !bytes || rls_decode_moves_stack(bytes, instruction->length);
}

static bool is_taken(const struct rls_addresses *taken, uint64_t vaddr)
{
	return taken && rls_addresses_any(taken, vaddr, vaddr);
}

static int skip_landing(const struct rls_elf *elf, uint64_t *at, struct candidates *candidates)
{
	struct rls_instruction instruction;
	int err = rls_code_decode(elf, *at, &instruction);

	if (err < 0)
		return err;
	if (instruction.endbr) {
		candidates->landing = instruction;
		*at += instruction.length;
	}
	return 0;
}

/* An optimised nop5 is a call, which writes below rsp: a leaf function may keep data
 * there, but not before its first instruction. */
static bool may_be_chosen(const struct rls_instruction *instruction, uint64_t begin)
{
	return instruction->probeable &&
	       (instruction->site_class != RLS_SITE_NOP5 || instruction->vaddr == begin);
}

static void walk(const struct rls_elf *elf, uint64_t begin, uint64_t end,
		 const struct rls_addresses *taken, struct candidates *candidates)
{
	uint64_t at = begin;

	for (int i = 0; i < RLS_CHOICE_INSTRUCTIONS && at < end; i++) {
		struct rls_instruction instruction;

		if (is_taken(taken, at) || rls_code_decode(elf, at, &instruction) < 0 ||
		    instruction.flow == RLS_FLOW_STOP)
			return;
		if (may_be_chosen(&instruction, begin)) {
			if (instruction.site_class == RLS_SITE_EMULATED) {
				candidates->emulated = instruction;
				return;
			}
			if (!candidates->first.length)
				candidates->first = instruction;
		}
		if (instruction.flow != RLS_FLOW_NEXT || moves_stack(elf, &instruction))
			return;
		at += instruction.length;
	}
}

static bool is_reached_through(const struct rls_code *code, uint64_t start,
			       const struct rls_instruction *instruction)
{
	if (instruction->vaddr == start)
		return true;
	return code && code->complete &&
	       !rls_addresses_any(&code->targets, start + 1, instruction->vaddr);
}

int rls_choose_site(const struct rls_elf *elf, const struct rls_code *code, uint64_t start,
		    const struct rls_addresses *taken, struct rls_instruction *out)
{
	struct candidates candidates = {0};
	const struct rls_instruction *order[] = {&candidates.emulated, &candidates.first,
						 &candidates.landing};
	uint64_t begin = start, end;
	int err = skip_landing(elf, &begin, &candidates);

	if (err < 0)
		return err;
	end = code && code->complete ? code->end : begin + 1;
	if (end > start + RLS_CHOICE_BYTES)
		end = start + RLS_CHOICE_BYTES;
	walk(elf, begin, end, taken, &candidates);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (order[i]->length && is_reached_through(code, start, order[i])) {
			*out = *order[i];
			return 0;
		}
	}
	return -ENOENT;
}

bool rls_choice_keeps_arguments(const struct rls_elf *elf, uint64_t from, uint64_t to)
{
	while (from < to) {
		struct rls_instruction instruction;
		const uint8_t *bytes;

		if (rls_code_decode(elf, from, &instruction) < 0)
			return false;
		bytes = rls_elf_bytes(elf, from, instruction.length);
		if (!bytes || rls_decode_writes_argument(bytes, instruction.length))
			return false;
		from += instruction.length;
	}
	return from == to;
}
