#include "cupti_bridge/clock.h"

#include <errno.h>
#include <time.h>

#define READINGS 4

static bool is_monotonic_lent;

static uint64_t read_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint64_t rls_clock_now_ns(void)
{
	return read_clock_ns(CLOCK_MONOTONIC);
}

uint64_t rls_clock_for_cupti(void)
{
	bool is_lent = __atomic_load_n(&is_monotonic_lent, __ATOMIC_RELAXED);

	return read_clock_ns(is_lent ? CLOCK_MONOTONIC : CLOCK_REALTIME);
}

void rls_clock_lend(bool is_lent)
{
	__atomic_store_n(&is_monotonic_lent, is_lent, __ATOMIC_RELAXED);
}

int rls_clock_read(int (*get_timestamp)(uint64_t *timestamp_ns), struct rls_clock_reading *reading)
{
	struct rls_clock_reading best = {.width_ns = UINT64_MAX};

	for (int i = 0; i < READINGS; i++) {
		uint64_t cupti_ns = 0, before = rls_clock_now_ns(), width;

		if (get_timestamp(&cupti_ns))
			return -EIO;
		width = rls_clock_now_ns() - before;
		if (width < best.width_ns)
			best = (struct rls_clock_reading){before + width / 2, cupti_ns, width};
	}
	*reading = best;
	return 0;
}

/* Ours was read between the two; halving rounds by one. */
bool rls_clock_is_ours(const struct rls_clock_reading *reading)
{
	uint64_t gap_ns = reading->cupti_ns > reading->clock_ns
				  ? reading->cupti_ns - reading->clock_ns
				  : reading->clock_ns - reading->cupti_ns;

	return gap_ns <= reading->width_ns / 2 + 1;
}
