/* Busy-waiting for a known time, measured and returned in nanoseconds of CLOCK_MONOTONIC. */
#ifndef TRUTH_SPIN_H
#define TRUTH_SPIN_H

#include <stdint.h>
#include <time.h>

static inline uint64_t truth_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t truth_spin(uint64_t wanted_ns)
{
	uint64_t start_ns = truth_now_ns(), now_ns = start_ns;

	while (now_ns - start_ns < wanted_ns)
		now_ns = truth_now_ns();
	return now_ns - start_ns;
}

#endif
