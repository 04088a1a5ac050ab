/* Closed time: watches what sites cost while no window is open, and finds those that should not be
 * on then.
 *
 * A site that was never hit stays on, as it costs nothing. The target may begin to call it: then
 * closed time costs more than its share of the budget, and the sites that are hit go into windows.
 * One thread.
 */
#ifndef RLS_CLOSED_TIME_H
#define RLS_CLOSED_TIME_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/maps.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/budget/site_value.h"
#include "userspace/record/budget/token_bucket.h"

/* What was known of closed time at an instant. */
struct rls_closed_time_known {
	uint64_t hits[RLS_SITES_COUNTED];
	uint64_t at_ns;
	double spent_ns; /* of the budget */
};

struct rls_closed_time {
	struct rls_kernel *kernel; /* all of these borrowed, they stay */
	struct rls_site_value *use;
	const struct rls_token_bucket *budget;
	double hit_ns; /* what a hit costs about */
	struct rls_closed_time_known recent, earlier; /* a moment ago, and some seconds ago */
};

/* Closed time begins, or sites were moved in it. 0 or -errno. */
int rls_closed_time_begin(struct rls_closed_time *closed, uint64_t time_ns, size_t sites);

/* To be called often while no window is open. *moved: of how many sites the duty has become
 * windows; the caller takes their probes off and calls begin. 0 or -errno. */
int rls_closed_time_watch(struct rls_closed_time *closed, uint64_t time_ns, size_t sites,
			  size_t *moved);

/* How many of so many sites the kernel side counts: later ones are hit uncounted. */
static inline size_t rls_sites_counted(size_t sites)
{
	return sites < RLS_SITES_COUNTED ? sites : RLS_SITES_COUNTED;
}

#endif
