#include "userspace/record/budget/controller_totals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/attach/kernel/kernel_totals.h"

double rls_controller_totals_burden(struct rls_controller_totals *totals, struct rls_kernel *kernel)
{
	const volatile uint64_t *burden = rls_kernel_burden(kernel);
	double worst_ns = 0;

	for (size_t i = 0; i < RLS_BURDENS; i++) {
		uint64_t sum_ns = burden[i];

		worst_ns = fmax(worst_ns, (double)(sum_ns - totals->burden[i]));
		totals->burden[i] = sum_ns;
	}
	return worst_ns;
}

int rls_controller_totals_sites(struct rls_controller_totals *totals, struct rls_kernel *kernel,
				const uint64_t *hits, size_t sites, struct rls_site_value *value)
{
	_cleanup_free_ struct rls_wire_calls *calls = calloc(sites + 1, sizeof(*calls));
	int r = calls ? rls_kernel_site_calls(kernel, calls, sites) : -ENOMEM;

	if (r)
		return r;
	for (size_t i = 0; !r && i < sites; i++) {
		const struct rls_site_count more = {
			.hits = hits[i] - totals->hits[i],
			.calls = calls[i].calls - totals->calls[i].calls,
			.time_ns = calls[i].time_ns - totals->calls[i].time_ns,
		};

		totals->hits[i] = hits[i];
		totals->calls[i] = calls[i];
		r = rls_site_value_more(value, i, &more);
	}
	return r;
}
