#include "userspace/record/budget/closed_time.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/base/log.h"

/* Closed time that costs more of the budget than this has sites on that should not be; looked at
 * so often, and at once when so many times the budget for that has gone. */
#define CALM_SHARE 0.8
#define CALM_EVERY_NS 200000000ULL
#define CALM_AT_ONCE 2.0
/* And so often whether hits cost so many times what sites that stay on may, as the first stretch may have
 * been too short to meet all that the target does. */
#define CALM_SLOWLY_NS 4000000000ULL
#define CALM_SLOWLY_TIMES 1.3

static int closed_time_record(const struct rls_closed_time *closed,
			      struct rls_closed_time_known *known, uint64_t time_ns, size_t sites)
{
	known->at_ns = time_ns;
	known->spent_ns = closed->budget->spent_ns;
	return rls_kernel_site_hits(closed->kernel, known->hits, rls_sites_counted(sites));
}

int rls_closed_time_begin(struct rls_closed_time *closed, uint64_t time_ns, size_t sites)
{
	int r = closed_time_record(closed, &closed->recent, time_ns, sites);

	if (!r)
		closed->earlier = closed->recent;
	return r;
}

/* A site that was never hit before is on. The target may have gone over to something else since. */
static int closed_time_calm(const struct rls_closed_time *closed,
			    struct rls_closed_time_known *known, double times, uint64_t time_ns,
			    size_t sites, size_t *moved)
{
	_cleanup_free_ uint64_t *hits = calloc(sites + 1, sizeof(*hits));
	uint64_t since_ns = time_ns - known->at_ns;
	int r;

	sites = rls_sites_counted(sites);
	r = hits ? rls_kernel_site_hits(closed->kernel, hits, sites) : -ENOMEM;
	for (size_t i = 0; !r && i < sites; i++)
		hits[i] -= known->hits[i];
	if (!r)
		r = rls_site_value_calm(closed->use, hits, sites, since_ns, closed->hit_ns,
					closed->budget->share, times, moved);
	if (r || !*moved)
		return r ? r : closed_time_record(closed, known, time_ns, sites);
	rls_debug(
		"%zu more sites go into windows: the last %.0f ms of closed time have cost %.2f %%",
		*moved, (double)since_ns / 1e6,
		100 * (closed->budget->spent_ns - known->spent_ns) / (double)since_ns);
	return 0;
}

int rls_closed_time_watch(struct rls_closed_time *closed, uint64_t time_ns, size_t sites,
			  size_t *moved)
{
	const struct rls_token_bucket *budget = closed->budget;
	struct rls_closed_time_known *recent = &closed->recent;
	double spent_ns = budget->spent_ns - recent->spent_ns;
	double at_once_ns = CALM_AT_ONCE * budget->share * (double)CALM_EVERY_NS;
	uint64_t passed_ns;

	*moved = 0;
	if (time_ns <= recent->at_ns)
		return 0;
	passed_ns = time_ns - recent->at_ns;
	if (passed_ns < CALM_EVERY_NS && spent_ns < at_once_ns)
		return 0;
	if (spent_ns > CALM_SHARE * budget->share * (double)passed_ns)
		return closed_time_calm(closed, recent, 1, time_ns, sites, moved);
	if (time_ns - closed->earlier.at_ns > CALM_SLOWLY_NS)
		return closed_time_calm(closed, &closed->earlier, CALM_SLOWLY_TIMES, time_ns, sites,
					moved);
	return closed_time_record(closed, recent, time_ns, sites);
}
