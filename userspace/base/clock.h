/* Clocks. Everything is recorded on CLOCK_MONOTONIC, which bpf_ktime_get_ns() reads too. The kernel gives the start of
 * processes on CLOCK_BOOTTIME, which also runs while the machine sleeps. */
#ifndef RLS_CLOCK_H
#define RLS_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t rls_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static inline uint64_t rls_monotonic_ns(void)
{
	return rls_clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t rls_since_boot_ns(void)
{
	return rls_clock_ns(CLOCK_BOOTTIME);
}

static inline struct timespec rls_monotonic_timespec(uint64_t time_ns)
{
	return (struct timespec){.tv_sec = (time_t)(time_ns / 1000000000),
				 .tv_nsec = (long)(time_ns % 1000000000)};
}

/* One that is waited for until a time of this clock. */
static inline void rls_monotonic_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
}

#endif
