#include "userspace/record/budget/site_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"

/* Sites that by themselves would together cost less than this share of the budget are never worth
 * switching; what is in windows must be so much cheaper to get out of them, for to go back and forth
 * costs too. */
#define CHEAP_SHARE 0.06
#define CHEAPER 0.5
/* A call shorter than so many hits' cost is measured worse than not at all. */
#define SHORT_CALL_HITS 2.0
/* What demoted sites may take of the time, all together. */
#define DEMOTED_SHARE_MAX 0.004
#define CALLS_TO_JUDGE 200

struct thread {
	struct thread *next;
	uint64_t entered_ns; /* 0: the last event was no entry */
	uint32_t site;
	uint16_t depth;
};

static void free_thread(struct thread *thread)
{
	free(thread);
}

static void each_thread(struct rls_site_value *use, void (*visit)(struct thread *thread))
{
	for (size_t i = 0; i < use->threads.capacity; i++) {
		if (use->threads.entries[i].value)
			visit(use->threads.entries[i].value);
	}
}

void rls_site_value_clear(struct rls_site_value *use)
{
	each_thread(use, free_thread);
	rls_index_map_free(&use->threads);
	free(use->sites);
	*use = (struct rls_site_value){0};
}

static int need_site(struct rls_site_value *use, size_t site)
{
	size_t room = use->room ? use->room : 1024;
	void *grown;

	if (site < use->count)
		return 0;
	if (site >= RLS_SITES_COUNTED)
		return -ERANGE;
	while (room <= site)
		room *= 2;
	grown = realloc(use->sites, room * sizeof(*use->sites));
	if (!grown)
		return -ENOMEM;
	use->sites = grown;
	use->room = room;
	memset(use->sites + use->count, 0, (site + 1 - use->count) * sizeof(*use->sites));
	use->count = site + 1;
	return 0;
}

static struct thread *find_thread(struct rls_site_value *use, uint32_t tid)
{
	struct thread *thread = rls_index_map_get(&use->threads, tid, 0);

	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (thread && rls_index_map_put(&use->threads, tid, 0, thread)) {
		free(thread);
		return NULL;
	}
	return thread;
}

int rls_site_value_add(struct rls_site_value *use, const struct rls_wire_category *record)
{
	struct thread *thread = find_thread(use, record->header.tid);
	uint64_t time_ns = record->header.time_ns;
	int r = thread ? need_site(use, record->site) : -ENOMEM;

	if (r)
		return r == -ERANGE ? 0 : r;
	if (thread->entered_ns && time_ns > thread->entered_ns) {
		use->sites[thread->site].calls++;
		use->sites[thread->site].time_ns += time_ns - thread->entered_ns;
	}
	thread->entered_ns = record->depth > thread->depth ? time_ns : 0;
	thread->depth = record->depth;
	thread->site = record->site;
	return 0;
}

static void forget_call(struct thread *thread)
{
	thread->entered_ns = 0;
	thread->depth = 0;
}

void rls_site_value_cut(struct rls_site_value *use, uint64_t stretch_ns)
{
	each_thread(use, forget_call);
	use->traced_ns += stretch_ns;
}

void rls_site_value_pass(struct rls_site_value *use, uint64_t closed_ns)
{
	use->closed_ns += closed_ns;
	for (size_t i = 0; i < use->count; i++) {
		if (use->sites[i].duty != RLS_DUTY_ALWAYS)
			use->sites[i].away_ns += closed_ns;
	}
}

int rls_site_value_hits(struct rls_site_value *use, const uint64_t *hits, size_t count)
{
	int r = count ? need_site(use, count - 1) : 0;

	for (size_t i = 0; !r && i < count; i++)
		use->sites[i].hits = hits[i];
	return r;
}

static uint64_t part_of(uint64_t value, double keep)
{
	return (uint64_t)((double)value * keep);
}

void rls_site_value_age(struct rls_site_value *use, double keep)
{
	use->traced_ns = part_of(use->traced_ns, keep);
	use->closed_ns = part_of(use->closed_ns, keep);
	for (size_t i = 0; i < use->count; i++) {
		use->sites[i].hits = part_of(use->sites[i].hits, keep);
		use->sites[i].away_ns = part_of(use->sites[i].away_ns, keep);
		use->sites[i].calls = part_of(use->sites[i].calls, keep);
		use->sites[i].time_ns = part_of(use->sites[i].time_ns, keep);
	}
}

int rls_site_value_more(struct rls_site_value *use, size_t site, const struct rls_site_count *more)
{
	int r = need_site(use, site);

	if (r)
		return r == -ERANGE ? 0 : r;
	use->sites[site].hits += more->hits;
	use->sites[site].calls += more->calls;
	use->sites[site].time_ns += more->time_ns;
	return 0;
}

/* ---- sorting ---- */

struct ranked {
	uint32_t site;
	double rate; /* what it would cost per time, were it on alone */
	double taken; /* share of the traced time in its calls */
	enum rls_duty before;
};

static int compare_rates(const void *a, const void *b)
{
	double left = ((const struct ranked *)a)->rate, right = ((const struct ranked *)b)->rate;

	return (left > right) - (left < right);
}

static bool is_short(const struct rls_site_count *site, double hit_ns)
{
	return site->calls >= CALLS_TO_JUDGE &&
	       (double)site->time_ns <
		       SHORT_CALL_HITS * rls_site_hit_ns(site, hit_ns) * (double)site->calls;
}

/* For how long its probes have been on. */
static double live_ns(const struct rls_site_value *use, const struct rls_site_count *site)
{
	uint64_t kept_ns = use->closed_ns > site->away_ns ? use->closed_ns - site->away_ns : 0;

	return (double)(use->traced_ns + kept_ns);
}

static size_t site_value_rank(const struct rls_site_value *use, double hit_ns,
			      struct ranked *ranked)
{
	size_t count = 0;

	for (uint32_t i = 0; i < use->count; i++) {
		const struct rls_site_count *site = &use->sites[i];

		if (!site->hits)
			continue;
		ranked[count++] = (struct ranked){
			.site = i,
			.rate = RLS_SPARSE_HIT * rls_site_hit_ns(site, hit_ns) *
				(double)site->hits / live_ns(use, site),
			.taken = (double)site->time_ns / (double)use->traced_ns,
		};
	}
	qsort(ranked, count, sizeof(*ranked), compare_rates);
	return count;
}

/* The most expensive first. */
static void demote_short(struct rls_site_value *use, const struct ranked *ranked, size_t count,
			 double hit_ns, double taken)
{
	for (size_t i = count; i-- > 0;) {
		struct rls_site_count *site = &use->sites[ranked[i].site];

		if (site->duty != RLS_DUTY_WINDOWS || !is_short(site, hit_ns) ||
		    taken + ranked[i].taken > DEMOTED_SHARE_MAX)
			continue;
		site->duty = RLS_DUTY_NEVER;
		site->given_up_share = ranked[i].taken;
		taken += ranked[i].taken;
	}
}

static double cheap_rate(const struct rls_site_count *site, double share)
{
	return CHEAP_SHARE * share * (site->duty == RLS_DUTY_WINDOWS ? CHEAPER : 1);
}

void rls_site_value_sort(struct rls_site_value *use, double hit_ns, double share, bool demote,
			 struct rls_site_sorting *out)
{
	_cleanup_free_ struct ranked *ranked = calloc(use->count + 1, sizeof(*ranked));
	struct rls_site_sorting sorting = {0};
	double kept = 0, demoted = 0;
	size_t count = ranked && use->traced_ns ? site_value_rank(use, hit_ns, ranked) : 0;

	for (size_t i = 0; i < count; i++) {
		struct rls_site_count *site = &use->sites[ranked[i].site];

		ranked[i].before = site->duty;
		if (site->duty == RLS_DUTY_NEVER) {
			demoted += site->given_up_share;
			continue;
		}
		kept += ranked[i].rate;
		site->duty = kept <= cheap_rate(site, share) ? RLS_DUTY_ALWAYS : RLS_DUTY_WINDOWS;
	}
	if (demote)
		demote_short(use, ranked, count, hit_ns, demoted);
	for (size_t i = 0; i < count; i++) {
		const struct rls_site_count *site = &use->sites[ranked[i].site];
		enum rls_duty duty = site->duty;

		sorting.always += duty == RLS_DUTY_ALWAYS;
		sorting.windowed += duty == RLS_DUTY_WINDOWS;
		sorting.never += duty == RLS_DUTY_NEVER;
		sorting.changed += duty != ranked[i].before;
		if (duty == RLS_DUTY_NEVER)
			sorting.demoted_share += site->given_up_share;
	}
	*out = sorting;
}

int rls_site_value_calm(struct rls_site_value *use, const uint64_t *hits, size_t count,
			uint64_t span_ns, double hit_ns, double share, double times, size_t *moved)
{
	_cleanup_free_ struct ranked *ranked = calloc(count + 1, sizeof(*ranked));
	size_t busy = 0, windowed = 0;
	double kept = 0, all = 0;
	int r = count ? need_site(use, count - 1) : 0;

	if (!ranked || r)
		return ranked ? r : -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (hits[i] && use->sites[i].duty == RLS_DUTY_ALWAYS)
			ranked[busy++] = (struct ranked){
				.site = i,
				.rate = RLS_SPARSE_HIT * rls_site_hit_ns(&use->sites[i], hit_ns) *
					(double)hits[i] / (double)span_ns,
			};
	}
	qsort(ranked, busy, sizeof(*ranked), compare_rates);
	for (size_t i = 0; i < busy; i++)
		all += ranked[i].rate;
	for (size_t i = 0; i < busy && all > times * CHEAP_SHARE * share; i++) {
		kept += ranked[i].rate;
		if (kept <= CHEAP_SHARE * share)
			continue;
		use->sites[ranked[i].site].duty = RLS_DUTY_WINDOWS;
		windowed++;
	}
	*moved = windowed;
	return 0;
}
