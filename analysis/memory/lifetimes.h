/* Lifetimes: how old the blocks of one place became, by classes of age.
 *
 * There are four classes to an octave, with edges at 4/4, 5/4, 6/4 and 7/4 of 2^k ns. Within a class
 * ages are taken to be evenly spread, so that a median from 1 µs on is within an eighth at worst.
 */
#ifndef RLS_LIFETIMES_H
#define RLS_LIFETIMES_H

#include <stdint.h>

#define RLS_LIFETIME_FIRST_OCTAVE 10 /* class 0 has everything below 2^10 ns */
#define RLS_LIFETIME_CLASSES 149 /* the last one has everything from 34 hours on */

/* A block is a trial of a leak once it is as old as this. So a line's own temporaries, such as
 * what a loss function needs for a moment, do not hide that the line keeps its result. */
#define RLS_TRIAL_NS 1000000000ull

struct rls_lifetimes {
	uint64_t freed[RLS_LIFETIME_CLASSES]; /* blocks, by their age then */
	uint64_t live[RLS_LIFETIME_CLASSES]; /* blocks at the end, by their age */
};

/* Of this age in ns. */
unsigned int rls_lifetime_class(uint64_t age_ns);

void rls_lifetimes_add(struct rls_lifetimes *into, const struct rls_lifetimes *more);

/* The median age of the freed blocks; 0 without any. */
uint64_t rls_lifetimes_median_ns(const struct rls_lifetimes *lifetimes);

struct rls_trials {
	uint64_t survivors;
	uint64_t observed;
};

/* Observed: the blocks that were freed at an age from RLS_TRIAL_NS on, and the survivors. Survivors:
 * blocks that are live and as old as RLS_TRIAL_NS and as three times the 95th percentile of those
 * ages, so that they were not merely born late. */
struct rls_trials rls_lifetimes_trials(const struct rls_lifetimes *lifetimes);

#endif
