/* The clock of everything that is recorded: CLOCK_MONOTONIC, which bpf_ktime_get_ns() reads too. */
#ifndef RLS_MONOTONIC_H
#define RLS_MONOTONIC_H

#include <stdint.h>
#include <time.h>

static inline uint64_t rls_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

#endif
