#include "userspace/plan/exits.h"

#include <errno.h>

struct search {
	struct rls_elf *elf;
	uint64_t *bytes_left;
	struct rls_exits exits;
	uint64_t extents[RLS_EXITS_EXTENTS]; /* starts of those met, read or not */
	size_t extent_count;
};

static bool is_met(const struct search *search, uint64_t start)
{
	for (size_t i = 0; i < search->extent_count; i++)
		if (search->extents[i] == start)
			return true;
	return false;
}

/* A jump through the PLT leaves for another library: its rets are not ours to probe. */
static bool is_stub(const struct rls_elf *elf, uint64_t vaddr)
{
	struct rls_instruction instruction;

	if (rls_code_decode(elf, vaddr, &instruction) < 0)
		return false;
	if (instruction.endbr && rls_code_decode(elf, vaddr + instruction.length, &instruction) < 0)
		return false;
	return instruction.flow == RLS_FLOW_JUMP_INDIRECT;
}

static void exits_reach(struct search *search, uint64_t target)
{
	const struct rls_elf_extent *extent = rls_elf_extent_at(search->elf, target);

	if (!extent || is_stub(search->elf, target)) {
		search->exits.complete = false;
		return;
	}
	if (is_met(search, extent->vaddr))
		return;
	if (search->extent_count == RLS_EXITS_EXTENTS) {
		search->exits.complete = false;
		return;
	}
	search->extents[search->extent_count++] = extent->vaddr;
}

static int exits_accept(struct search *search, const struct rls_code *code)
{
	struct rls_ways_out *returns = &search->exits.returns;

	if (!code->complete || code->indirect_exit)
		search->exits.complete = false;
	for (size_t i = 0; i < code->returns.count; i++) {
		if (returns->count == RLS_EXITS_RETURNS) {
			search->exits.complete = false;
			break;
		}
		if (rls_ways_out_add(returns, code->returns.items[i]) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < code->exits.count; i++) {
		if (rls_addresses_add(&search->exits.jumps, code->exits.items[i]) < 0)
			return -ENOMEM;
		exits_reach(search, code->exits.items[i]);
	}
	return 0;
}

static int exits_follow(struct search *search, uint64_t start)
{
	const struct rls_elf_extent *extent = rls_elf_extent_at(search->elf, start);
	struct rls_code code;
	int err = rls_code_read(search->elf, extent->vaddr, extent->size_bytes, search->bytes_left,
				&code);

	if (err == -EFAULT || err == -EFBIG) {
		search->exits.complete = false;
		return 0;
	}
	if (err < 0)
		return err;
	err = exits_accept(search, &code);
	rls_code_clear(&code);
	return err;
}

void rls_exits_clear(struct rls_exits *exits)
{
	rls_ways_out_clear(&exits->returns);
	rls_addresses_clear(&exits->jumps);
}

int rls_exits_find(struct rls_elf *elf, const struct rls_code *code, uint64_t *bytes_left,
		   struct rls_exits *out)
{
	struct search search = {
		.elf = elf, .bytes_left = bytes_left, .exits.complete = code != NULL};
	int err = 0;

	if (code) {
		search.extents[search.extent_count++] = code->start;
		err = exits_accept(&search, code);
	}
	/* extents grows under the loop: it is the work list. */
	for (size_t i = 1; err == 0 && i < search.extent_count; i++)
		err = exits_follow(&search, search.extents[i]);
	if (err < 0) {
		rls_exits_clear(&search.exits);
		return err;
	}
	rls_addresses_sort(&search.exits.jumps);
	*out = search.exits;
	return 0;
}
