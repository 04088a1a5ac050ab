/* Sites that go on and off within an overhead budget (groups.h). */
#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "analysis/cleanup.h"
#include "userspace/attach/kernel_private.h"

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
	if (kernel->booking && closed)
		rls_kernel_flush_books(kernel);
}

int rls_kernel_regroup(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	pass_edge(kernel, true, edge_ns);
	return rls_groups_regroup(&kernel->groups, &kernel->costs);
}

int rls_kernel_open_window(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	int r = rls_groups_open(&kernel->groups, &kernel->costs);

	if (r)
		rls_groups_close(&kernel->groups);
	else
		pass_edge(kernel, false, edge_ns);
	return r;
}

void rls_kernel_close_window(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	pass_edge(kernel, true, edge_ns);
	rls_groups_close(&kernel->groups);
}

uint32_t rls_kernel_site_cost_ns(const struct rls_kernel *kernel, uint32_t site)
{
	uint32_t silent_ns = rls_groups_cost_ns(&kernel->groups, site, &kernel->costs);

	return silent_ns ? silent_ns + kernel->costs.event_ns : 0;
}

int rls_kernel_site_hits(const struct rls_kernel *kernel, uint64_t *hits, size_t count)
{
	int cpus = libbpf_num_possible_cpus();
	_cleanup_free_ uint64_t *each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;

	if (!each)
		return -ENOMEM;
	for (uint32_t site = 0; site < count; site++) {
		int r = bpf_map__lookup_elem(kernel->skeleton->maps.site_hits, &site, sizeof(site),
					     each, (size_t)cpus * sizeof(*each), 0);

		if (r)
			return r;
		hits[site] = 0;
		for (int cpu = 0; cpu < cpus; cpu++)
			hits[site] += each[cpu];
	}
	return 0;
}
