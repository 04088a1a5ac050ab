#include "userspace/plan/layer_sites.h"

#include <errno.h>

#include "userspace/machine_code/code.h"
#include "userspace/machine_code/decoder.h"
#include "userspace/plan/choice.h"
#include "userspace/plan/exits.h"

#define CODE_BYTES_MAX 65536 /* that may be read of a function to see where it jumps */

static int add_layer_site(struct rls_elf *elf, const struct rls_instruction *instruction,
			  struct rls_layer_site site, struct rls_layer_sites *sites)
{
	if (!instruction->probeable || sites->count == RLS_LAYER_SITES_MAX ||
	    rls_elf_file_offset(elf, instruction->vaddr, &site.file_offset) < 0)
		return -ENOENT;
	site.site_class = instruction->site_class;
	sites->items[sites->count++] = site;
	return 0;
}

/* The function's first instruction, if nothing less expensive will do. */
static int find_begin(struct rls_elf *elf, const struct rls_code *code,
		      struct rls_layer_sites *sites)
{
	struct rls_instruction instruction;

	if (rls_choose_site(elf, code, code->start, NULL, &instruction) ||
	    !rls_choice_keeps_arguments(elf, code->start, instruction.vaddr)) {
		if (rls_code_decode(elf, code->start, &instruction) < 0)
			return -ENOENT;
	}
	return add_layer_site(elf, &instruction, (struct rls_layer_site){0}, sites);
}

static int find_ends(struct rls_elf *elf, const struct rls_code *code, uint64_t *bytes_left,
		     struct rls_layer_sites *sites)
{
	struct rls_exits exits;
	int r = rls_exits_find(elf, code, bytes_left, &exits);

	if (r)
		return r;
	if (!exits.complete || !exits.returns.count)
		r = -ENOENT;
	for (size_t i = 0; !r && i < exits.returns.count; i++) {
		const struct rls_way_out *way = &exits.returns.items[i];
		struct rls_instruction instruction;

		r = rls_code_decode(elf, way->vaddr, &instruction) < 0
			    ? -ENOENT
			    : add_layer_site(elf, &instruction,
					     (struct rls_layer_site){.ends = true,
								     .slot_bytes = way->slot_bytes},
					     sites);
	}
	rls_exits_clear(&exits);
	return r;
}

int rls_layer_sites_find(struct rls_elf *elf, uint64_t vaddr, struct rls_layer_sites *out)
{
	const struct rls_elf_extent *extent = rls_elf_extent_at(elf, vaddr);
	struct rls_layer_sites sites = {0};
	uint64_t bytes_left = CODE_BYTES_MAX;
	struct rls_code code;
	int r;

	if (!extent || extent->vaddr != vaddr || !rls_elf_is_executable(elf, vaddr))
		return -ENOENT;
	r = rls_code_read(elf, vaddr, extent->size_bytes, &bytes_left, &code);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	r = find_begin(elf, &code, &sites);
	if (!r) {
		r = find_ends(elf, &code, &bytes_left, &sites);
		sites.all_ends = !r;
		r = r == -ENOMEM ? r : 0;
	}
	rls_code_clear(&code);
	if (!r)
		*out = sites;
	return r;
}
