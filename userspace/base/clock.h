/* Clocks. Everything is recorded on the host's CLOCK_MONOTONIC, which bpf_ktime_get_ns() reads too. In a time namespace
 * our own clocks are ahead of the host's, and are set back to them. The kernel gives the start of processes on
 * CLOCK_BOOTTIME, which also runs while the machine sleeps, as our own namespace has it. */
#ifndef RLS_CLOCK_H
#define RLS_CLOCK_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

/* How far a time namespace's clocks are ahead of the host's. */
struct rls_clocks_ahead {
	int64_t monotonic_ns, boottime_ns;
};

/* Of our own namespace; 0 before rls_clock_join_host. */
extern struct rls_clocks_ahead rls_clocks_ahead;

/* Finds it out: to be called once, before any time is taken. 0; -ENODATA: we are in a time namespace that nobody knows
 * the offsets of; -errno. */
int rls_clock_join_host(void);

/* The text of /proc/PID/timens_offsets: 0, or -EINVAL. */
int rls_clocks_ahead_parse(FILE *file, struct rls_clocks_ahead *out);

static inline uint64_t rls_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static inline uint64_t rls_monotonic_ns(void)
{
	return rls_clock_ns(CLOCK_MONOTONIC) - (uint64_t)rls_clocks_ahead.monotonic_ns;
}

static inline uint64_t rls_since_boot_ns(void)
{
	return rls_clock_ns(CLOCK_BOOTTIME);
}

/* The same time on the host's clock, for all processes of this boot. */
static inline uint64_t rls_host_since_boot_ns(void)
{
	return rls_since_boot_ns() - (uint64_t)rls_clocks_ahead.boottime_ns;
}

/* The CPU time of all threads that a process has had; 0: there is no such process. */
uint64_t rls_process_cpu_ns(pid_t pid);

#endif
