/* Site value: what each site costs and how much it explains, and from both its duty. Pure.
 *
 * A site's calls are the entries that changed a thread's category; its time is what threads spent
 * in such calls until the next change. Its hits, from the kernel side, include those that changed
 * nothing, and returns.
 *
 * Sites are sorted by what their hits cost and explain:
 *
 *     negligible cost                         ─▶ always on
 *     calls as short as a few probes          ─▶ never, the most expensive first, as long as all
 *                                                their time together is a small share of the whole
 *     all others                              ─▶ in windows
 *
 * A site's cost is its hits, over the time in which its probes were on: all windows, and for a
 * site that is always on also the time between windows.
 */
#ifndef RLS_SITE_VALUE_H
#define RLS_SITE_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "bpf/wire/record.h"
#include "userspace/attach/kernel/kernel_windows.h"

/* Where hits are rare, nothing that one needs is in the caches any more: so many times what the
 * calibration says was seen of them in training jobs, and of those right
 * after another. */
#define RLS_SPARSE_HIT 9.0
#define RLS_FOLLOWING_HIT 2.7

/* So many hits in a row, the first of which finds all cold: in hits as the calibration has them. */
static inline double rls_cold_hits(double hits)
{
	return RLS_SPARSE_HIT - RLS_FOLLOWING_HIT + RLS_FOLLOWING_HIT * hits;
}

struct rls_site_count {
	uint64_t hits;
	uint64_t calls;
	uint64_t time_ns;
	uint64_t away_ns; /* of the closed time, for which its probes were off */
	double hit_ns; /* what a hit costs; 0: as others */
	double given_up_share; /* of the traced time in its calls, when it became `never` */
	enum rls_duty duty;
};

/* What a hit of the site costs; hit_ns: what one does on the average. */
static inline double rls_site_hit_ns(const struct rls_site_count *site, double hit_ns)
{
	return site->hit_ns > 0 ? site->hit_ns : hit_ns;
}

struct rls_site_value {
	struct rls_site_count *sites; /* by id */
	size_t count, room;
	struct rls_index_map threads; /* tid → struct thread of site_value.c */
	uint64_t traced_ns; /* for how long all that was counted, as long as it takes untraced */
	uint64_t closed_ns; /* and for how long beside only what is always on */
};

void rls_site_value_clear(struct rls_site_value *use);

/* A category record of a traced stretch. 0 or -ENOMEM. */
int rls_site_value_add(struct rls_site_value *use, const struct rls_wire_category *record);

/* A stretch of tracing has ended, which would have been so long without: calls under way will not be
 * seen to end. */
void rls_site_value_cut(struct rls_site_value *use, uint64_t stretch_ns);

/* So much closed time has passed. */
void rls_site_value_pass(struct rls_site_value *use, uint64_t closed_ns);

/* What sites have been hit so far, all in all. 0 or -ENOMEM. */
int rls_site_value_hits(struct rls_site_value *use, const uint64_t *hits, size_t count);

/* For sums that are made elsewhere: what was known counts for so much of itself, and more is new of
 * a site. 0 or -ENOMEM. */
void rls_site_value_age(struct rls_site_value *use, double keep);
int rls_site_value_more(struct rls_site_value *use, size_t site, const struct rls_site_count *more);

/* Sites that are always on have been hit so often in the last span_ns. If they cost more than so
 * many times the negligible cost, the most expensive ones go into windows, until the rest costs
 * no more than that once. *moved: how many. 0 or -ENOMEM. */
int rls_site_value_calm(struct rls_site_value *use, const uint64_t *hits, size_t count,
			uint64_t span_ns, double hit_ns, double share, double times, size_t *moved);

/* What was sorted out last. */
struct rls_site_sorting {
	size_t always, windowed, never; /* sites that were hit, by duty */
	size_t changed; /* of them have another duty than before */
	double demoted_share; /* of the traced time: what calls to `never` sites took */
};

/* Sets each site's duty. hit_ns: what a hit costs; share: the budget's; demote: some may be
 * given up for good. What has been never stays so. */
void rls_site_value_sort(struct rls_site_value *use, double hit_ns, double share, bool demote,
			 struct rls_site_sorting *out);

#endif
