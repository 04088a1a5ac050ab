/* Range duty: whether the sites of other libraries' ranges (record_function, NVTX) are probed
 * always or in windows only.
 *
 * The program's own ranges are operations, so their sites stay enabled. PyTorch's optimizers begin
 * ranges too, two a step, which are no operations; each hit is cold and costs 6 to 8 us. If all
 * ranges of 10 s are PyTorch's and cost too much of the budget, their sites are enabled in windows
 * only, as other expensive sites are. This ends when a range of the program's own begins in a
 * window.
 */
#ifndef RLS_RANGE_DUTY_H
#define RLS_RANGE_DUTY_H

#include <stdint.h>

struct rls_kernel;

/* All zero but for since_ns. */
struct rls_range_duty {
	uint64_t since_ns; /* all are watched since then */
	uint64_t own; /* of PyTorch's own, those that had begun by then */
	uint64_t windowed_ns; /* in windows only since then; 0: always */
};

/* A new process may have ranges: all are watched for a while again. */
void rls_range_duty_restart(struct rls_range_duty *duty, struct rls_kernel *kernel,
			    uint64_t time_ns);

/* Called often. hit_ns: what a hit costs on the average; share: the budget's. 0 or -errno. */
int rls_range_duty_tick(struct rls_range_duty *duty, struct rls_kernel *kernel, double hit_ns,
			double share, uint64_t time_ns);

#endif
