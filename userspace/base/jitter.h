/* Random numbers that keep us out of step with loops of a target. Not for secrets.
 * xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled"). */
#ifndef RLS_JITTER_H
#define RLS_JITTER_H

#include <stdint.h>

/* *state: never 0. The upper bits are the better ones. */
static inline uint64_t rls_random_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dULL;
}

/* From least up to below most, evenly. */
static inline uint64_t rls_random_between(uint64_t *state, uint64_t least, uint64_t most)
{
	return least + (rls_random_next(state) >> 32) % (most - least);
}

#endif
