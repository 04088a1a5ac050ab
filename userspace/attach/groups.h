/* Groups: the sites of files, each on always, in windows only, or never.
 *
 *     all on ─▶ regroup: some on always, some in windows ─▶ open ─▶ close ─▶ open ─▶ …
 *
 * Removing probes takes time in proportion to their number and delays the target, and most
 * functions of a library are never called. So only sites that are hit often are enabled and
 * disabled; all others stay. This needs uprobe_multi links: perf events go one by one.
 *
 * The borders of a window are exact although its probes go live one by one: the kernel side
 * rejects hits on windowed sites until all are live. Private to attach/.
 */
#ifndef RLS_GROUPS_H
#define RLS_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "userspace/attach/links.h"
#include "userspace/attach/switching.h"

/* When a site is probed, from the next rls_kernel_regroup on. Only where options.windows was set
 * and probes can be taken off together (rls_kernel_has_windows). */
enum rls_duty {
	RLS_DUTY_ALWAYS, /* as every site begins */
	RLS_DUTY_WINDOWS,
	RLS_DUTY_NEVER,
};

struct rls_group_file;

struct rls_groups {
	struct rls_group_file **files;
	size_t count, room;
	uint8_t *duties; /* enum rls_duty by site id */
	size_t duty_room;
	const struct rls_kernel_switching
		*switching; /* whose begin is called while much is put on; NULL: nobody's */
};

/* So many sites are to be added, and will go off together. */
void rls_groups_expect(size_t sites);

/* Attaches the sites, on always until they are regrouped; request as for rls_links_attach. */
int rls_groups_add(struct rls_groups *groups, const struct rls_link_request *request,
		   size_t *attached);

/* Takes effect with the next regroup. Ids that no site has are ignored. */
int rls_groups_set_duty(struct rls_groups *groups, uint32_t site, enum rls_duty duty);

/* Enables anew what is always on, in files whose sites have changed duty. Afterwards windowed
 * sites are disabled, and so is `more`. Programs are those of the request that added the sites.
 * 0 or -errno. */
int rls_groups_regroup(struct rls_groups *groups, const struct rls_hit_costs *costs,
		       struct rls_links *more);

/* What a hit of the site costs, silent, its return probe's included by half; 0 for no such site. */
uint32_t rls_groups_cost_ns(const struct rls_groups *groups, uint32_t site,
			    const struct rls_hit_costs *costs);

int rls_groups_open(struct rls_groups *groups, const struct rls_hit_costs *costs);
/* more: links that go off in the same time; none are left of it. */
void rls_groups_close(struct rls_groups *groups, struct rls_links *more);

/* Takes off the return probes of the sites added with this first_id, for good. 0 or -ENOMEM. */
int rls_groups_drop_returns(struct rls_groups *groups, uint32_t first_id);

/* Detaches and forgets the sites added with this first_id. */
void rls_groups_remove(struct rls_groups *groups, uint32_t first_id);

/* Detaches and forgets everything. */
void rls_groups_clear(struct rls_groups *groups);

#endif
