/* Sites that go on and off within an overhead budget (groups.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/attach/kernel/kernel_state.h"
#include "userspace/attach/kernel/kernel_totals.h"
#include "userspace/attach/kernel/kernel_windows.h"

bool rls_kernel_has_windows(const struct rls_kernel *kernel)
{
	return kernel->windows;
}

int rls_kernel_set_duty(struct rls_kernel *kernel, uint32_t site, enum rls_duty duty)
{
	return rls_groups_set_duty(&kernel->groups, site, duty);
}

/* Odd while closed. */
static void pass_edge(struct rls_kernel *kernel, bool closed, uint64_t *edge_ns)
{
	uint32_t *edges = &kernel->skeleton->bss->window_edges;

	*edge_ns = rls_monotonic_ns();
	__atomic_store_n(&kernel->skeleton->bss->window_edge_ns, *edge_ns, __ATOMIC_RELEASE);
	__atomic_store_n(edges, ((*edges + 1) | 1) + !closed, __ATOMIC_RELEASE);
	/* Nobody's time is to lie across two edges. */
	if (kernel->totals_mode && closed)
		rls_kernel_flush_totals(kernel);
}

int rls_kernel_regroup(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	struct rls_links ranges = {0};
	int r;

	rls_kernel_begin_switching(kernel);
	pass_edge(kernel, true, edge_ns);
	rls_kernel_close_ranges(kernel, &ranges);
	r = rls_groups_regroup(&kernel->groups, &kernel->costs, &ranges);
	rls_kernel_end_switching(kernel);
	return r;
}

int rls_kernel_open_window(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	struct rls_links ranges = {0};
	int r;

	rls_kernel_begin_switching(kernel);
	r = rls_groups_open(&kernel->groups, &kernel->costs);
	if (!r)
		r = rls_kernel_open_ranges(kernel);
	if (r) {
		rls_kernel_close_ranges(kernel, &ranges);
		rls_groups_close(&kernel->groups, &ranges);
	} else {
		pass_edge(kernel, false, edge_ns);
	}
	rls_kernel_end_switching(kernel);
	return r;
}

void rls_kernel_close_window(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	struct rls_links ranges = {0};

	rls_kernel_begin_switching(kernel);
	pass_edge(kernel, true, edge_ns);
	rls_kernel_close_ranges(kernel, &ranges);
	rls_groups_close(&kernel->groups, &ranges);
	rls_kernel_end_switching(kernel);
}

uint32_t rls_kernel_site_cost_ns(const struct rls_kernel *kernel, uint32_t site)
{
	uint32_t silent_ns = rls_groups_cost_ns(&kernel->groups, site, &kernel->costs);

	return silent_ns ? silent_ns + kernel->costs.event_ns : 0;
}

void rls_kernel_stop_counting(struct rls_kernel *kernel)
{
	kernel->skeleton->bss->hits_uncounted = true;
}

int rls_kernel_site_hits(const struct rls_kernel *kernel, uint64_t *hits, size_t count)
{
	return rls_kernel_sum_sites(kernel->skeleton->maps.site_hits, 1, hits, count);
}
