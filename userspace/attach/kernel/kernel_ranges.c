/* Other people's ranges: their sites, always on or in windows only. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/base/grow.h"
#include "bpf/wire/cookie.h"
#include "userspace/attach/cookie.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/attach/kernel/kernel_state.h"

static int attach_range(struct rls_kernel *kernel, struct rls_links *links, const char *path,
			uint64_t offset, uint64_t cookie)
{
	return rls_kernel_attach_one(kernel, links, kernel->skeleton->progs.on_range_multi,
				     kernel->skeleton->progs.on_range, path, offset, 0, cookie);
}

static int attach_kept(struct rls_kernel *kernel, const struct rls_range_probe *probe)
{
	return attach_range(kernel, &kernel->ranges.links, probe->file.path, probe->offset,
			    probe->cookie);
}

/* One that may go off and on again. */
static int kernel_ranges_store(struct rls_kernel *kernel, const char *path, uint64_t offset,
			       uint64_t cookie)
{
	struct rls_range_probes *ranges = &kernel->ranges;
	struct rls_range_probe probe = {.offset = offset, .cookie = cookie};
	int r = rls_grow(&ranges->items, &ranges->room, ranges->count);

	if (!r)
		r = rls_held_file_open(&probe.file, path);
	if (r)
		return r;
	ranges->items[ranges->count++] = probe;
	return ranges->off ? 0 : attach_kept(kernel, &probe);
}

/* The API that PyTorch itself uses, and how ranges of all APIs end. */
static bool may_go_off(const struct rls_range_site *site)
{
	return site->kind == RLS_RANGE_POP || site->kind == RLS_RANGE_PUSH_STD_STRING;
}

int rls_kernel_attach_ranges(struct rls_kernel *kernel, const char *path,
			     const struct rls_range_site *sites, size_t count)
{
	uint32_t cost_ns = kernel->costs.ns[RLS_SITE_EMULATED][0];
	int r = 0;

	for (size_t i = 0; !r && i < count; i++) {
		uint64_t cookie =
			RLS_RANGE_COOKIE(sites[i].kind, sites[i].name_argument,
					 sites[i].token_argument, rls_cookie_cost(cost_ns));

		if (may_go_off(&sites[i]))
			r = kernel_ranges_store(kernel, path, sites[i].file_offset, cookie);
		else
			r = attach_range(kernel, &kernel->links, path, sites[i].file_offset,
					 cookie);
	}
	return r;
}

void rls_kernel_ranges_begun(const struct rls_kernel *kernel, uint64_t *own, uint64_t *others)
{
	*own = __atomic_load_n(&kernel->skeleton->bss->ranges_begun[1], __ATOMIC_RELAXED);
	*others = __atomic_load_n(&kernel->skeleton->bss->ranges_begun[0], __ATOMIC_RELAXED);
}

static int put_on(struct rls_kernel *kernel)
{
	struct rls_range_probes *ranges = &kernel->ranges;
	int r = 0;

	if (!ranges->off)
		return 0;
	for (size_t i = 0; !r && i < ranges->count; i++)
		r = attach_kept(kernel, &ranges->items[i]);
	if (r)
		rls_links_clear(&ranges->links, 0);
	ranges->off = r != 0;
	return r;
}

int rls_kernel_open_ranges(struct rls_kernel *kernel)
{
	return kernel->ranges.windowed ? put_on(kernel) : 0;
}

void rls_kernel_close_ranges(struct rls_kernel *kernel, struct rls_links *gone)
{
	if (!kernel->ranges.windowed)
		return;
	rls_links_gather(&kernel->ranges.links, gone);
	kernel->ranges.off = true;
}

int rls_kernel_window_ranges(struct rls_kernel *kernel, bool windowed)
{
	struct rls_range_probes *ranges = &kernel->ranges;
	int r = windowed ? 0 : put_on(kernel);

	if (r || ranges->windowed == windowed)
		return r;
	ranges->windowed = windowed;
	/* What begins in a window may end outside of any. */
	__atomic_store_n(&kernel->skeleton->bss->ranges_windowed, windowed, __ATOMIC_SEQ_CST);
	if (windowed) {
		rls_links_clear(&ranges->links, 0);
		ranges->off = true;
	}
	return 0;
}

void rls_kernel_leave_ranges(struct rls_kernel *kernel)
{
	struct rls_range_probes *ranges = &kernel->ranges;

	rls_links_gather(&ranges->links, &kernel->links);
	for (size_t i = 0; i < ranges->count; i++)
		rls_held_file_close(&ranges->items[i].file);
	free(ranges->items);
	*ranges = (struct rls_range_probes){0};
}
