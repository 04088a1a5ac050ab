/* Hit costs: what a hit costs on this machine, as the kernel side uses it. */
#ifndef RLS_HIT_COSTS_H
#define RLS_HIT_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/machine_code/site.h"

/* What one hit costs, in ns: silent, by [class of the site][0 entry, 1 return probe]; and
 * what emitting an event adds. */
struct rls_hit_costs {
	uint32_t ns[RLS_SITE_CLASS_MAX][2];
	uint32_t event_ns;
	uint32_t edge_ns; /* each operation edge that a hit reads, up to RLS_EDGES_COLD */
	uint32_t later_edge_ns; /* and each after those */
	uint32_t before_ns[2]; /* how much of a hit's cost is over when its time is taken */
};

#endif
