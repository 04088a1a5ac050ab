#include "userspace/record/calibrate/anchor_sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"

/* Of all hits' cost; and where some part of the work has none that is so cheap. */
#define MARKS_SHARE 0.003
#define MARKS_SHARE_MAX 0.01
/* So many slots are such a part. */
#define PART_SLOTS (RLS_MARK_SLOTS / 32)
/* Rarer ones do not come often enough to be compared with themselves. */
#define MARKS_HZ_MIN 10.0
/* Of a site's hits, those that are the two ends of a call that is seen, and amid no other. */
#define EMITTING_SHARE 0.98

#define WORDS (RLS_MARK_SLOTS / 64)

struct candidate {
	uint32_t site;
	double cost_ns;
	bool taken;
};

struct choice {
	const struct rls_marks *marks;
	struct candidate *candidates;   /* the cheapest first */
	size_t count;
	double whole_ns, taken_ns;      /* what all hits cost, and those of the marks */
	uint64_t covered[WORDS];
	bool turned;                    /* some of them by operations */
	bool *chosen;
};

void rls_marks_clear(struct rls_marks *marks)
{
	free(marks->sites);
	*marks = (struct rls_marks){ 0 };
}

int rls_marks_add(struct rls_marks *marks, uint32_t site, size_t slot)
{
	size_t room = marks->room ? marks->room : 1024;
	void *grown;

	if (site >= RLS_SITES_COUNTED || slot >= RLS_MARK_SLOTS)
		return 0;
	while (room <= site)
		room *= 2;
	if (room > marks->room) {
		grown = reallocarray(marks->sites, room, sizeof(*marks->sites));
		if (!grown)
			return -ENOMEM;
		marks->sites = grown;
		marks->room = room;
	}
	if (site >= marks->count) {
		memset(marks->sites + marks->count, 0,
		       (site + 1 - marks->count) * sizeof(*marks->sites));
		marks->count = site + 1;
	}
	marks->sites[site].words[slot / 64] |= 1ULL << slot % 64;
	marks->sites[site].calls++;
	return 0;
}

/* ---- choosing ---- */

static int by_cost(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->cost_ns != b->cost_ns)
		return a->cost_ns < b->cost_ns ? -1 : 1;
	return (a->site > b->site) - (a->site < b->site);
}

/* Each of its calls is seen, whatever else is probed. */
static bool can_mark(const struct rls_site_count *site, uint64_t outermost, double seconds)
{
	uint64_t calls = outermost < site->calls ? outermost : site->calls;

	return site->hits && (double)calls >= MARKS_HZ_MIN * seconds &&
	       2 * (double)calls >= EMITTING_SHARE * (double)site->hits;
}

static void find_candidates(struct choice *choice, const struct rls_site_use *use, double hit_ns,
			    double seconds)
{
	for (uint32_t i = 0; i < use->count; i++) {
		const struct rls_site_count *site = &use->sites[i];
		double cost_ns = (double)site->hits * rls_site_hit_ns(site, hit_ns);

		choice->whole_ns += cost_ns;
		if (i < choice->marks->count &&
		    can_mark(site, choice->marks->sites[i].calls, seconds))
			choice->candidates[choice->count++] = (struct candidate){ i, cost_ns, false };
	}
	qsort(choice->candidates, choice->count, sizeof(*choice->candidates), by_cost);
}

/* Together with those taken, no more than that share of all hits' cost. */
static bool is_cheap(const struct choice *choice, const struct candidate *candidate, double share)
{
	return choice->taken_ns + candidate->cost_ns <= share * choice->whole_ns;
}

static int count_new(const struct choice *choice, const struct candidate *candidate)
{
	const struct rls_mark_slots *slots = &choice->marks->sites[candidate->site];
	int count = 0;

	for (int i = 0; i < WORDS; i++)
		count += __builtin_popcountll(slots->words[i] & ~choice->covered[i]);
	return count;
}

static void take(struct choice *choice, struct candidate *candidate)
{
	const struct rls_mark_slots *slots = &choice->marks->sites[candidate->site];

	for (int i = 0; i < WORDS; i++)
		choice->covered[i] |= slots->words[i];
	candidate->taken = true;
	choice->taken_ns += candidate->cost_ns;
	choice->chosen[candidate->site] = true;
}

/* The one that reaches most new slots for its price; NULL when none does. */
static struct candidate *find_best(const struct choice *choice)
{
	struct candidate *best = NULL;
	double most = 0;

	for (size_t i = 0; i < choice->count; i++) {
		struct candidate *candidate = &choice->candidates[i];
		int slots = candidate->taken ? 0 : count_new(choice, candidate);
		double share = slots < PART_SLOTS ? MARKS_SHARE : MARKS_SHARE_MAX;
		double worth = slots / candidate->cost_ns;

		if (!is_cheap(choice, candidate, share) || (choice->turned && slots < PART_SLOTS))
			continue;
		if (worth > most) {
			most = worth;
			best = candidate;
		}
	}
	return best;
}

/* Where operations tell pieces apart no mark is needed. */
static void leave_to_operations(struct choice *choice)
{
	for (int i = 0; i < WORDS; i++) {
		choice->covered[i] = choice->marks->turned[i];
		choice->turned |= choice->covered[i] != 0;
	}
}

/* Those that are good to have where there is nothing but marks to go by. */
static void take_more(struct choice *choice)
{
	/* A job all of whose sites are busy has to have one all the same. */
	if (choice->count && !is_cheap(choice, &choice->candidates[0], MARKS_SHARE_MAX))
		take(choice, &choice->candidates[0]);
	/* What is left is for more of the cheapest: more kinds of work told apart. */
	for (size_t i = 0; i < choice->count; i++) {
		if (!choice->candidates[i].taken &&
		    is_cheap(choice, &choice->candidates[i], MARKS_SHARE))
			take(choice, &choice->candidates[i]);
	}
}

int rls_marks_choose(const struct rls_marks *marks, const struct rls_site_use *use, double hit_ns,
		     double seconds, bool *chosen)
{
	_cleanup_free_ struct candidate *candidates = calloc(use->count + 1, sizeof(*candidates));
	struct choice choice = { .marks = marks, .candidates = candidates, .chosen = chosen };
	struct candidate *best;

	if (!candidates)
		return -ENOMEM;
	memset(chosen, 0, use->count * sizeof(*chosen));
	find_candidates(&choice, use, hit_ns, seconds);
	leave_to_operations(&choice);
	while ((best = find_best(&choice)))
		take(&choice, best);
	if (!choice.turned)
		take_more(&choice);
	return 0;
}
