/* Where nobody has ranges of their own, the ends of PyTorch's are not probed.
 *
 * Each step of PyTorch's optimizers is in ranges of PyTorch's making, which are no operations: two that
 * begin and two that end a step, each hit 8 us amid cold code, 2 % of the update of a small PPO
 * (scripts/bench/README.md). That they begin must be seen, as the name tells whose they are; that they
 * end need not, until somebody's begins. That first one is lost: its end may not have been heard.
 */
#ifndef RLS_RANGE_HEARING_H
#define RLS_RANGE_HEARING_H

#include <stdbool.h>
#include <stdint.h>

struct rls_kernel;

/* All zero to begin with. */
struct rls_range_hearing {
	uint64_t since_ns;      /* the first tick's time */
	bool ends_unheard;
	bool settled;           /* somebody has ranges: ends stay probed */
};

/* Where a budget is to be held; at any pace. */
void rls_range_hearing_tick(struct rls_range_hearing *hearing, struct rls_kernel *kernel,
			    uint64_t time_ns);

#endif
