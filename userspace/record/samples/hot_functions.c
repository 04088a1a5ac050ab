#include "userspace/record/samples/hot_functions.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"

/* One sample, and the function it fell into as far as known. */
struct hit {
	uint64_t vaddr;
	uint64_t function;
	const char *name;
};

struct hits {
	struct hit *items;          /* ascending by vaddr */
	size_t count;
};

static int compare_addresses(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static size_t first_at(const struct hits *hits, uint64_t vaddr)
{
	size_t low = 0, high = hits->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (hits->items[middle].vaddr < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int name_hits(const struct rls_elf_symbol *symbol, void *context)
{
	const struct hits *hits = context;

	if (!symbol->defined || !symbol->function)
		return 0;
	for (size_t i = first_at(hits, symbol->vaddr); i < hits->count; i++) {
		struct hit *hit = &hits->items[i];

		if (hit->vaddr - symbol->vaddr >= symbol->size_bytes)
			break;
		if (!hit->name) {
			hit->name = symbol->name;
			hit->function = symbol->vaddr;
		}
	}
	return 0;
}

/* Stripped functions still have an extent, for unwinding. */
static void place_hits(struct rls_elf *elf, const struct hits *hits)
{
	for (size_t i = 0; i < hits->count; i++) {
		struct hit *hit = &hits->items[i];
		const struct rls_elf_extent *extent;

		if (hit->name)
			continue;
		extent = rls_elf_extent_at(elf, hit->vaddr);
		hit->function = extent ? extent->vaddr : hit->vaddr;
	}
}

int rls_hot_functions_add(struct rls_elf *elf, const char *file, uint64_t *vaddrs, size_t count,
			  struct rls_hot_function **functions, size_t *function_count)
{
	_cleanup_free_ struct hit *items = calloc(count, sizeof(*items));
	struct hits hits = { items, count };
	struct rls_hot_function *grown;
	size_t total = *function_count;

	if (!count)
		return 0;
	/* Every hit a function of its own is the most there can be. */
	grown = reallocarray(*functions, total + count, sizeof(*grown));
	if (grown)
		*functions = grown;
	if (!items || !grown)
		return -ENOMEM;
	qsort(vaddrs, count, sizeof(*vaddrs), compare_addresses);
	for (size_t i = 0; i < count; i++)
		items[i].vaddr = vaddrs[i];
	rls_elf_each_symbol(elf, name_hits, &hits);
	place_hits(elf, &hits);
	for (size_t i = 0; i < count; i++) {
		if (i && items[i].function == items[i - 1].function)
			grown[total - 1].samples++;
		else
			grown[total++] = (struct rls_hot_function){ file, items[i].name,
								    items[i].function, 1 };
	}
	*function_count = total;
	return 0;
}

static int compare_samples(const void *a, const void *b)
{
	const struct rls_hot_function *left = a, *right = b;

	return (left->samples < right->samples) - (left->samples > right->samples);
}

void rls_hot_functions_sort(struct rls_hot_function *functions, size_t count)
{
	if (count)
		qsort(functions, count, sizeof(*functions), compare_samples);
}
