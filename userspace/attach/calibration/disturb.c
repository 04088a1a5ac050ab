#include "userspace/attach/calibration/disturb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS 256

typedef uint64_t (*step)(uint64_t state, uint8_t *bytes, uint64_t mask);

/* Each number makes another function: other constants, other branches, other addresses. */
#define ODD(n, salt) ((((n) + (salt)) * 2654435761U) | 1)
#define STEP(n)                                                                                    \
	static __attribute__((noinline))                                                           \
	uint64_t step_##n(uint64_t state, uint8_t *bytes, uint64_t mask)                           \
	{                                                                                          \
		uint64_t x = state * ODD(0x##n, 1) + ODD(0x##n, 2);                                \
                                                                                                   \
		if (x >> (20 + 0x##n % 32) & 1)                                                    \
			x += bytes[(x >> 20) & mask];                                              \
		else                                                                               \
			x ^= ODD(0x##n, 3) + (x >> 7);                                             \
		if (x >> (10 + 0x##n % 16) & 1)                                                    \
			x = x * ODD(0x##n, 4) + bytes[(x >> 17) & mask];                           \
		if (x >> 40 & (0x##n % 8))                                                         \
			bytes[(x >> 13) & mask] = (uint8_t)x;                                      \
		else                                                                               \
			x -= bytes[(x >> 27) & mask];                                              \
		return x ^ x >> 29;                                                                \
	}

/* clang-format off */
#define SIXTEEN(each, n)                                                                           \
	each(n##0) each(n##1) each(n##2) each(n##3) each(n##4) each(n##5) each(n##6) each(n##7)    \
	each(n##8) each(n##9) each(n##a) each(n##b) each(n##c) each(n##d) each(n##e) each(n##f)
#define ALL(each)                                                                                  \
	SIXTEEN(each, 0) SIXTEEN(each, 1) SIXTEEN(each, 2) SIXTEEN(each, 3) SIXTEEN(each, 4)       \
	SIXTEEN(each, 5) SIXTEEN(each, 6) SIXTEEN(each, 7) SIXTEEN(each, 8) SIXTEEN(each, 9)       \
	SIXTEEN(each, a) SIXTEEN(each, b) SIXTEEN(each, c) SIXTEEN(each, d) SIXTEEN(each, e)       \
	SIXTEEN(each, f)
/* clang-format on */
#define NAME(n) step_##n,

ALL(STEP)

static const step steps[FUNCTIONS] = {ALL(NAME)};

int rls_disturb_init(struct rls_disturb *disturb, size_t size_bytes)
{
	uint8_t *bytes = aligned_alloc(4096, size_bytes);

	if (!bytes)
		return -ENOMEM;
	memset(bytes, 1, size_bytes);
	*disturb = (struct rls_disturb){bytes, size_bytes - 1, 88172645463325252ULL};
	return 0;
}

void rls_disturb_clear(struct rls_disturb *disturb)
{
	free(disturb->bytes);
	*disturb = (struct rls_disturb){0};
}

void rls_disturb_run(struct rls_disturb *disturb, unsigned int count)
{
	uint64_t state = disturb->seed;

	for (unsigned int i = 0; i < count; i++)
		state = steps[(state >> 32) % FUNCTIONS](state + i, disturb->bytes, disturb->mask);
	disturb->seed = state;
}
