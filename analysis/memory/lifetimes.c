#include "analysis/memory/lifetimes.h"

#include <math.h>

#include "analysis/event/bounded.h"

/* Of the freed ages, and how much older a survivor is. */
#define USUAL_SHARE 0.95
#define USUAL_TIMES 3

#define PARTS 4 /* of an octave */

unsigned int rls_lifetime_class(uint64_t age_ns)
{
	unsigned int octave, class;

	if (age_ns >> RLS_LIFETIME_FIRST_OCTAVE == 0)
		return 0;
	octave = 63 - (unsigned int)__builtin_clzll(age_ns);
	class = 1 + PARTS * (octave - RLS_LIFETIME_FIRST_OCTAVE) +
		(unsigned int)(age_ns >> (octave - 2) & (PARTS - 1));
	return class < RLS_LIFETIME_CLASSES ? class : RLS_LIFETIME_CLASSES - 1;
}

/* Where a class begins; of RLS_LIFETIME_CLASSES, where the last one ends. */
static double edge(unsigned int class)
{
	if (!class)
		return 0;
	return ldexp(1 + (class - 1) % PARTS / (double)PARTS,
		     RLS_LIFETIME_FIRST_OCTAVE + (int)((class - 1) / PARTS));
}

void rls_lifetimes_add(struct rls_lifetimes *into, const struct rls_lifetimes *more)
{
	for (unsigned int i = 0; i < RLS_LIFETIME_CLASSES; i++) {
		rls_add_bounded(&into->freed[i], more->freed[i]);
		rls_add_bounded(&into->live[i], more->live[i]);
	}
}

/* How much of a class lies above an age. */
static double share_above(unsigned int class, double age_ns)
{
	double from = edge(class), to = edge(class + 1);

	if (age_ns <= from)
		return 1;
	return age_ns < to ? (to - age_ns) / (to - from) : 0;
}

static double count_above(const uint64_t counts[static RLS_LIFETIME_CLASSES], double age_ns)
{
	double sum = 0;

	for (unsigned int i = 0; i < RLS_LIFETIME_CLASSES; i++)
		sum += (double)counts[i] * share_above(i, age_ns);
	return sum;
}

/* The age below which this share of those blocks lies that are older than from_ns. */
static double quantile(const uint64_t counts[static RLS_LIFETIME_CLASSES], double from_ns,
		       double share)
{
	double left = share * count_above(counts, from_ns);

	for (unsigned int i = 0; i < RLS_LIFETIME_CLASSES; i++) {
		double part = share_above(i, from_ns);
		double here = (double)counts[i] * part;
		double width = (edge(i + 1) - edge(i)) * part;

		if (here > 0 && left <= here)
			return edge(i + 1) - width + width * left / here;
		left -= here;
	}
	return edge(RLS_LIFETIME_CLASSES);
}

uint64_t rls_lifetimes_median_ns(const struct rls_lifetimes *lifetimes)
{
	if (count_above(lifetimes->freed, 0) <= 0)
		return 0;
	return rls_round_bounded(quantile(lifetimes->freed, 0, 0.5));
}

struct rls_trials rls_lifetimes_trials(const struct rls_lifetimes *lifetimes)
{
	double freed = count_above(lifetimes->freed, RLS_TRIAL_NS);
	double old_ns = RLS_TRIAL_NS;
	struct rls_trials trials = {0};

	if (freed >= 1)
		old_ns = USUAL_TIMES * quantile(lifetimes->freed, RLS_TRIAL_NS, USUAL_SHARE);
	trials.survivors = rls_round_bounded(count_above(lifetimes->live, old_ns));
	trials.observed = rls_round_bounded(freed);
	rls_add_bounded(&trials.observed, trials.survivors);
	return trials;
}
