#include "userspace/python/evaluation.h"

#include <errno.h>

#include "userspace/machine_code/code.h"

#define BYTES_MAX (4U << 20) /* read in all; the largest loop known has 100 KB */

bool rls_evaluation_holds(const struct rls_evaluation *evaluation, uint64_t vaddr)
{
	for (size_t i = 0; i < evaluation->count; i++) {
		if (vaddr - evaluation->parts[i].vaddr < evaluation->parts[i].size_bytes)
			return true;
	}
	return false;
}

static void add_jumped_into(struct rls_elf *elf, const struct rls_code *code,
			    struct rls_evaluation *evaluation)
{
	for (size_t i = 0; i < code->exits.count; i++) {
		uint64_t target = code->exits.items[i];
		const struct rls_elf_extent *extent = rls_elf_extent_at(elf, target);

		if (extent && extent->vaddr != target &&
		    evaluation->count < RLS_EVALUATION_PARTS_MAX &&
		    !rls_evaluation_holds(evaluation, target))
			evaluation->parts[evaluation->count++] = *extent;
	}
}

int rls_evaluation_find(struct rls_elf *elf, uint64_t vaddr, uint64_t size_bytes,
			struct rls_evaluation *out)
{
	struct rls_evaluation found = {.parts = {{vaddr, size_bytes}}, .count = 1};
	uint64_t bytes_left = BYTES_MAX;

	for (size_t i = 0; i < found.count; i++) {
		struct rls_code code;
		int r = rls_code_read(elf, found.parts[i].vaddr, found.parts[i].size_bytes,
				      &bytes_left, &code);

		if (r == -ENOMEM)
			return r;
		if (r)
			continue;
		add_jumped_into(elf, &code, &found);
		rls_code_clear(&code);
	}
	*out = found;
	return 0;
}
