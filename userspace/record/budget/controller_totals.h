/* Controller totals: what the kernel side has summed up since the controller last read it, where it
 * keeps totals (bpf/totals.bpf.h) and sends no records of hits. One thread.
 */
#ifndef RLS_CONTROLLER_TOTALS_H
#define RLS_CONTROLLER_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/totals.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/budget/site_value.h"

/* As read last. Zeroed: nothing was read yet. */
struct rls_controller_totals {
	uint64_t burden[RLS_BURDENS];
	uint64_t hits[RLS_SITES_COUNTED];
	struct rls_wire_calls calls[RLS_SITES_COUNTED];
};

/* What the most burdened thread has paid since the last call. Two threads may share a sum: then
 * too much is taken to be one's, rather than too little. */
double rls_controller_totals_burden(struct rls_controller_totals *totals,
				    struct rls_kernel *kernel);

/* Adds to the sites' values what is new since the last call. hits: of so many sites, as the kernel
 * side counts them now; at most RLS_SITES_COUNTED. 0 or -errno. */
int rls_controller_totals_sites(struct rls_controller_totals *totals, struct rls_kernel *kernel,
				const uint64_t *hits, size_t sites, struct rls_site_value *value);

#endif
