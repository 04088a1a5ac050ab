/* Other people's ranges: heard whole, or only that they begin. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/base/grow.h"
#include "bpf/wire.h"
#include "userspace/attach/cookie.h"
#include "userspace/attach/kernel/kernel_private.h"

static int attach_range(struct rls_kernel *kernel, struct rls_links *links, const char *path,
			uint64_t offset, uint64_t cookie)
{
	return rls_kernel_attach_one(kernel, links, kernel->skeleton->progs.on_range_multi,
				     kernel->skeleton->progs.on_range, path, offset, 0, cookie);
}

static int attach_edge(struct rls_kernel *kernel, struct rls_range_edges *edges,
		       const struct rls_range_edge *edge)
{
	return attach_range(kernel, &edges->links, edge->file.path, edge->offset, edge->cookie);
}

static int add_edge(struct rls_kernel *kernel, struct rls_range_edges *edges, const char *path,
		    uint64_t offset, uint64_t cookie)
{
	struct rls_range_edge edge = { .offset = offset, .cookie = cookie };
	int r = rls_grow(&edges->items, &edges->room, edges->count);

	if (!r)
		r = rls_held_file_open(&edge.file, path);
	if (r)
		return r;
	edges->items[edges->count++] = edge;
	return edges->unheard ? 0 : attach_edge(kernel, edges, &edge);
}

int rls_kernel_attach_ranges(struct rls_kernel *kernel, const char *path,
			     const struct rls_range_site *sites, size_t count)
{
	uint32_t cost_ns = kernel->costs.ns[RLS_SITE_EMULATED][0];
	int r = 0;

	for (size_t i = 0; !r && i < count; i++) {
		uint64_t cookie = RLS_RANGE_COOKIE(sites[i].kind, sites[i].name_argument,
						   sites[i].token_argument, rls_cookie_cost(cost_ns));

		if (sites[i].kind == RLS_RANGE_POP)
			r = add_edge(kernel, &kernel->range_ends, path, sites[i].file_offset, cookie);
		else if (sites[i].kind == RLS_RANGE_PUSH_STD_STRING)
			r = add_edge(kernel, &kernel->range_begins, path, sites[i].file_offset, cookie);
		else
			r = attach_range(kernel, &kernel->links, path, sites[i].file_offset, cookie);
	}
	return r;
}

void rls_kernel_ranges_begun(const struct rls_kernel *kernel, uint64_t *own, uint64_t *others)
{
	*own = __atomic_load_n(&kernel->skeleton->bss->ranges_begun[1], __ATOMIC_RELAXED);
	*others = __atomic_load_n(&kernel->skeleton->bss->ranges_begun[0], __ATOMIC_RELAXED);
}

static int hear(struct rls_kernel *kernel, struct rls_range_edges *edges, bool heard)
{
	int r = 0;

	if (heard == !edges->unheard)
		return 0;
	if (!heard) {
		rls_links_clear(&edges->links, 0);
		edges->unheard = true;
		return 0;
	}
	for (size_t i = 0; !r && i < edges->count; i++)
		r = attach_edge(kernel, edges, &edges->items[i]);
	if (r)
		rls_links_clear(&edges->links, 0);
	edges->unheard = r != 0;
	return r;
}

int rls_kernel_hear_range_begins(struct rls_kernel *kernel, bool heard)
{
	return hear(kernel, &kernel->range_begins, heard);
}

int rls_kernel_hear_range_ends(struct rls_kernel *kernel, bool heard)
{
	bool *unheard = &kernel->skeleton->bss->range_ends_unheard;
	int r;

	/* As what begins while some ends are unheard would never end. */
	if (!heard)
		__atomic_store_n(unheard, true, __ATOMIC_SEQ_CST);
	r = hear(kernel, &kernel->range_ends, heard);
	if (!r && heard)
		__atomic_store_n(unheard, false, __ATOMIC_SEQ_CST);
	return r;
}

int rls_kernel_open_ranges(struct rls_kernel *kernel)
{
	int r;

	if (!kernel->ranges_windowed)
		return 0;
	r = hear(kernel, &kernel->range_ends, true);
	return r ? r : hear(kernel, &kernel->range_begins, true);
}

void rls_kernel_close_ranges(struct rls_kernel *kernel, struct rls_links *gone)
{
	if (!kernel->ranges_windowed)
		return;
	rls_links_gather(&kernel->range_begins.links, gone);
	rls_links_gather(&kernel->range_ends.links, gone);
	kernel->range_begins.unheard = kernel->range_ends.unheard = true;
}

int rls_kernel_window_ranges(struct rls_kernel *kernel, bool windowed)
{
	int r = windowed ? 0 : rls_kernel_open_ranges(kernel);

	if (!r)
		kernel->ranges_windowed = windowed;
	return r;
}

static void leave(struct rls_kernel *kernel, struct rls_range_edges *edges)
{
	rls_links_gather(&edges->links, &kernel->links);
	for (size_t i = 0; i < edges->count; i++)
		rls_held_file_close(&edges->items[i].file);
	free(edges->items);
	edges->items = NULL;
	edges->count = edges->room = 0;
}

void rls_kernel_leave_range_edges(struct rls_kernel *kernel)
{
	leave(kernel, &kernel->range_begins);
	leave(kernel, &kernel->range_ends);
}
