/* Other people's ranges: heard whole, or only that they begin. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/grow.h"
#include "bpf/wire.h"
#include "userspace/attach/cookie.h"
#include "userspace/attach/kernel_private.h"

static int attach_range(struct rls_kernel *kernel, struct rls_links *links, const char *path,
			uint64_t offset, uint64_t cookie)
{
	return rls_kernel_attach_one(kernel, links, kernel->skeleton->progs.on_range_multi,
				     kernel->skeleton->progs.on_range, path, offset, 0, cookie);
}

static int attach_end(struct rls_kernel *kernel, const struct rls_range_end *end)
{
	return attach_range(kernel, &kernel->range_ends.links, end->file.path, end->offset, end->cookie);
}

static int add_end(struct rls_kernel *kernel, const char *path, uint64_t offset, uint64_t cookie)
{
	struct rls_range_ends *ends = &kernel->range_ends;
	struct rls_range_end end = { .offset = offset, .cookie = cookie };
	int r = rls_grow(&ends->items, &ends->room, ends->count);

	if (!r)
		r = rls_held_file_open(&end.file, path);
	if (r)
		return r;
	ends->items[ends->count++] = end;
	return kernel->skeleton->bss->range_ends_unheard ? 0 : attach_end(kernel, &end);
}

int rls_kernel_attach_ranges(struct rls_kernel *kernel, const char *path,
			     const struct rls_range_site *sites, size_t count)
{
	uint32_t cost_ns = kernel->costs.ns[RLS_SITE_EMULATED][0];
	int r = 0;

	for (size_t i = 0; !r && i < count; i++) {
		uint64_t cookie = RLS_RANGE_COOKIE(sites[i].kind, sites[i].name_argument,
						   sites[i].token_argument, rls_cookie_cost(cost_ns));

		r = sites[i].kind == RLS_RANGE_POP ?
			    add_end(kernel, path, sites[i].file_offset, cookie) :
			    attach_range(kernel, &kernel->links, path, sites[i].file_offset, cookie);
	}
	return r;
}

void rls_kernel_ranges_begun(const struct rls_kernel *kernel, uint64_t *own, uint64_t *others)
{
	*own = __atomic_load_n(&kernel->skeleton->bss->ranges_begun[1], __ATOMIC_RELAXED);
	*others = __atomic_load_n(&kernel->skeleton->bss->ranges_begun[0], __ATOMIC_RELAXED);
}

int rls_kernel_hear_range_ends(struct rls_kernel *kernel, bool heard)
{
	struct rls_range_ends *ends = &kernel->range_ends;
	int r = 0;

	if (!heard) {
		/* First, as what begins while some ends are unheard would never end. */
		__atomic_store_n(&kernel->skeleton->bss->range_ends_unheard, true, __ATOMIC_SEQ_CST);
		rls_links_clear(&ends->links, 0);
		return 0;
	}
	for (size_t i = 0; !r && i < ends->count; i++)
		r = attach_end(kernel, &ends->items[i]);
	if (r) {
		rls_links_clear(&ends->links, 0);
		return r;
	}
	__atomic_store_n(&kernel->skeleton->bss->range_ends_unheard, false, __ATOMIC_SEQ_CST);
	return 0;
}

void rls_kernel_leave_range_ends(struct rls_kernel *kernel)
{
	struct rls_range_ends *ends = &kernel->range_ends;

	if (rls_links_move(&ends->links, &kernel->links))
		rls_links_clear(&ends->links, 0);
	for (size_t i = 0; i < ends->count; i++)
		rls_held_file_close(&ends->items[i].file);
	free(ends->items);
	ends->items = NULL;
	ends->count = ends->room = 0;
}
