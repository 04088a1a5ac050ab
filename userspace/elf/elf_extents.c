/* Function extents from .eh_frame, by way of the sorted table in .eh_frame_hdr. */
#include <stdlib.h>

#include "analysis/base/search.h"
#include "userspace/elf/elf_eh_frame.h"

/* The length of code that the FDE at vaddr covers; 0 when it cannot be read. */
static uint64_t read_fde_range(const struct rls_elf *elf, uint64_t vaddr, struct eh_cie *cie)
{
	struct eh_fde fde;

	return eh_read_fde(elf, vaddr, cie, &fde) ? fde.size_bytes : 0;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct rls_elf_extent *left = a, *right = b;

	return (left->vaddr > right->vaddr) - (left->vaddr < right->vaddr);
}

/* Each byte is of the last extent that begins before it. So it is in real files, where none
 * overlap; in a hostile one the work on all extents would be the square of the file. */
static size_t make_disjoint(struct rls_elf_extent *extents, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct rls_elf_extent *last = kept ? &extents[kept - 1] : NULL;

		if (last && last->vaddr == extents[i].vaddr)
			continue;
		if (last && extents[i].vaddr - last->vaddr < last->size_bytes)
			last->size_bytes = extents[i].vaddr - last->vaddr;
		extents[kept++] = extents[i];
	}
	return kept;
}

static void read_extents(struct rls_elf *elf)
{
	struct elf_table table = eh_search_table(elf);
	struct eh_cie cie = {0};
	bool sorted = true;
	size_t count = 0;

	if (!table.count)
		return;
	elf->extents = calloc(table.count, sizeof(*elf->extents));
	if (!elf->extents)
		return;
	for (size_t i = 0; i < table.count; i++) {
		struct rls_elf_extent extent;
		uint64_t fde;

		eh_search_entry(elf, &table, i, &extent.vaddr, &fde);
		extent.size_bytes = read_fde_range(elf, fde, &cie);
		if (!extent.size_bytes || extent.size_bytes > rls_elf_bytes_left(elf, extent.vaddr))
			continue;
		if (count && extent.vaddr < elf->extents[count - 1].vaddr)
			sorted = false;
		elf->extents[count++] = extent;
	}
	if (!sorted)
		qsort(elf->extents, count, sizeof(*elf->extents), by_vaddr);
	elf->extent_count = make_disjoint(elf->extents, count);
}

size_t rls_elf_extents(struct rls_elf *elf, const struct rls_elf_extent **out)
{
	if (!elf->extents_read) {
		elf->extents_read = true;
		read_extents(elf);
	}
	*out = elf->extents;
	return elf->extent_count;
}

const struct rls_elf_extent *rls_elf_extent_at(struct rls_elf *elf, uint64_t vaddr)
{
	const struct rls_elf_extent *extents;
	size_t low = rls_first_not(rls_elf_extents(elf, &extents), i, extents[i].vaddr <= vaddr);

	if (!low || vaddr - extents[low - 1].vaddr >= extents[low - 1].size_bytes)
		return NULL;
	return &extents[low - 1];
}
