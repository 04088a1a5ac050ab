/* Clock: one for the CPU and the GPU. CUPTI uses CLOCK_MONOTONIC, as the kernel's records do.
 */
#ifndef RLS_CUPTI_CLOCK_H
#define RLS_CUPTI_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

uint64_t rls_clock_now_ns(void);

/* What CUPTI calls for the time, on any thread. It cannot be taken back, only be replaced, so
 * it gives CUPTI's own default, CLOCK_REALTIME, whenever it is not lent CLOCK_MONOTONIC. */
uint64_t rls_clock_for_cupti(void);
void rls_clock_lend(bool is_lent);

/* CUPTI's clock, read between two readings of ours. */
struct rls_clock_reading {
	uint64_t clock_ns; /* CLOCK_MONOTONIC, middle of the two */
	uint64_t cupti_ns;
	uint64_t width_ns; /* between the two */
};

/* Takes a few and returns the narrowest. -EIO when CUPTI gives no time. */
int rls_clock_read(int (*get_timestamp)(uint64_t *timestamp_ns), struct rls_clock_reading *reading);

/* Is CUPTI's time the one that we gave it? */
bool rls_clock_is_ours(const struct rls_clock_reading *reading);

#endif
