#include "userspace/record/budget/range_duty.h"

#include <string.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/base/log.h"
#include "userspace/record/budget/site_value.h"

/* Whose ranges there are is known after so long. */
#define WATCH_NS 10000000000ULL
/* Of the budget, what the sites may cost to stay on. */
#define KEPT_SHARE 0.1
#define HITS_A_RANGE 2

static void leave_windows(struct rls_range_duty *duty, struct rls_kernel *kernel)
{
	int r = rls_kernel_window_ranges(kernel, false);

	if (r)
		rls_warning("ranges (record_function, NVTX) are not seen any more: %s",
			    strerror(-r));
	duty->windowed_ns = 0;
}

void rls_range_duty_restart(struct rls_range_duty *duty, struct rls_kernel *kernel,
			    uint64_t time_ns)
{
	uint64_t others;

	rls_kernel_ranges_begun(kernel, &duty->own, &others);
	duty->since_ns = time_ns;
	if (duty->windowed_ns)
		leave_windows(duty, kernel);
}

/* Somebody's first has begun in a window. */
static void end_windows(struct rls_range_duty *duty, struct rls_kernel *kernel, uint64_t time_ns)
{
	rls_warning("ranges of the program's own (record_function) begin now: in the last %.0f s "
		    "they were watched in "
		    "windows only, so earlier ones may be missing",
		    (double)(time_ns - duty->windowed_ns) / 1e9);
	leave_windows(duty, kernel);
}

int rls_range_duty_tick(struct rls_range_duty *duty, struct rls_kernel *kernel, double hit_ns,
			double share, uint64_t time_ns)
{
	uint64_t own, others, watched_ns = time_ns - duty->since_ns;
	double cost_ns;
	int r;

	if (!duty->windowed_ns && watched_ns < WATCH_NS)
		return 0;
	rls_kernel_ranges_begun(kernel, &own, &others);
	if (duty->windowed_ns) {
		if (others)
			end_windows(duty, kernel, time_ns);
		return 0;
	}
	cost_ns = HITS_A_RANGE * RLS_SPARSE_HIT * hit_ns * (double)(own - duty->own);
	duty->own = own;
	duty->since_ns = time_ns;
	if (others || cost_ns <= KEPT_SHARE * share * (double)watched_ns)
		return 0;
	r = rls_kernel_window_ranges(kernel, true);
	if (r)
		return r;
	duty->windowed_ns = time_ns;
	rls_warning(
		"PyTorch's own ranges are many: ranges (record_function) are watched in windows "
		"only from here on, and the first of the program's own may be missed");
	return 0;
}
