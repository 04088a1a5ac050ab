#include "userspace/attach/calibration/disturb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS 256

typedef uint64_t (*step)(uint64_t state, uint8_t *bytes, uint64_t mask);

/* Each number makes another function: other constants, other branches, other addresses. */
#define ODD(n, salt) ((((n) + (salt)) * 2654435761U) | 1)
#define STEP(n)                                                                        \
	static __attribute__((noinline)) uint64_t step_##n(uint64_t state, uint8_t *bytes, \
							   uint64_t mask)                  \
	{                                                                              \
		uint64_t x = state * ODD(0x##n, 1) + ODD(0x##n, 2);                    \
                                                                                       \
		if (x >> (20 + 0x##n % 32) & 1)                                        \
			x += bytes[(x >> 20) & mask];                                  \
		else                                                                   \
			x ^= ODD(0x##n, 3) + (x >> 7);                                 \
		if (x >> (10 + 0x##n % 16) & 1)                                        \
			x = x * ODD(0x##n, 4) + bytes[(x >> 17) & mask];               \
		if (x >> 40 & (0x##n % 8))                                             \
			bytes[(x >> 13) & mask] = (uint8_t)x;                          \
		else                                                                   \
			x -= bytes[(x >> 27) & mask];                                  \
		return x ^ x >> 29;                                                    \
	}


#define SIXTEEN(do, n)                                                                 \
	do(n##0) do(n##1) do(n##2) do(n##3) do(n##4) do(n##5) do(n##6) do(n##7) do(n##8) do(n##9) do(n##a) do(n##b) \
		do(n##c) do(n##d) do(n##e) do(n##f)
#define ALL(do)                                                                        \
	SIXTEEN(do, 0) SIXTEEN(do, 1) SIXTEEN(do, 2) SIXTEEN(do, 3) SIXTEEN(do, 4)     \
	SIXTEEN(do, 5) SIXTEEN(do, 6) SIXTEEN(do, 7) SIXTEEN(do, 8) SIXTEEN(do, 9)     \
	SIXTEEN(do, a) SIXTEEN(do, b) SIXTEEN(do, c) SIXTEEN(do, d) SIXTEEN(do, e)     \
	SIXTEEN(do, f)
#define NAME(n) step_##n,

ALL(STEP)

static const step steps[FUNCTIONS] = { ALL(NAME) };

int rls_disturb_init(struct rls_disturb *disturb, size_t size_bytes)
{
	uint8_t *bytes = aligned_alloc(4096, size_bytes);

	if (!bytes)
		return -ENOMEM;
	memset(bytes, 1, size_bytes);
	*disturb = (struct rls_disturb){ bytes, size_bytes - 1, 88172645463325252ULL };
	return 0;
}

void rls_disturb_clear(struct rls_disturb *disturb)
{
	free(disturb->bytes);
	*disturb = (struct rls_disturb){ 0 };
}

void rls_disturb_run(struct rls_disturb *disturb, unsigned int count)
{
	uint64_t state = disturb->seed;

	for (unsigned int i = 0; i < count; i++)
		state = steps[(state >> 32) % FUNCTIONS](state + i, disturb->bytes, disturb->mask);
	disturb->seed = state;
}
