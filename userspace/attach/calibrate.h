/* Calibration: what one probe hit costs, here and now.
 *
 * Small functions of our own, one per site class, are called with and without the real
 * probes on them: the difference per call is the cost. Medians over batches, so that a
 * preemption spoils one batch and not the figure. The times of the events themselves tell
 * how a pair's cost is divided between what is inside the call and what is outside. Takes some 0.1 s. The loop is hot: in a
 * target whose caches are busy a hit costs somewhat more, which the stated error allows for.
 */
#ifndef RLS_CALIBRATE_H
#define RLS_CALIBRATE_H

#include "userspace/attach/kernel.h"

struct rls_calibrated {
	const char *name;       /* "emulated.entry", "return", "event" */
	double value_ns;
	double error_ns;        /* half width */
};

#define RLS_CALIBRATED_MAX (RLS_SITE_CLASS_MAX + 2)

struct rls_calibration {
	struct rls_calibrated figures[RLS_CALIBRATED_MAX];
	size_t count;
	struct rls_hit_costs costs;     /* for rls_kernel_set_costs */
};

/* Uses the kernel's own programs, with this process tracked for a moment: before any
 * target is. Takes the handler of the kernel's records for itself. 0 or -errno. */
int rls_calibrate(struct rls_kernel *kernel, struct rls_calibration *out);

#endif
