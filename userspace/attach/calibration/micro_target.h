/* Micro-target: small functions of our own, one pair for each path through the kernel: one function with the real
 * probes, one without. Both are called alternately in the same way; the difference is the cost of the probes.
 */
#ifndef RLS_MICRO_TARGET_H
#define RLS_MICRO_TARGET_H

#include "userspace/attach/calibration/disturb.h"
#include "userspace/attach/kernel/kernel.h"

/* What is measured. A hit costs its site's entry or the return, plus the event when it emits
 * one, plus the edges that it reads from the thread's annotation record. */
enum rls_calibrated_path {
	RLS_PATH_NOP5_ENTRY, /* the first three: as enum rls_site_class */
	RLS_PATH_EMULATED_ENTRY,
	RLS_PATH_SINGLE_STEP_ENTRY,
	RLS_PATH_RETURN, /* a return probe, its share of the entry included */
	RLS_PATH_EVENT, /* what emitting adds */
	RLS_PATH_USDT, /* the annotation library's USDT site, nothing to read */
	RLS_PATH_EDGE, /* reading one operation edge */
	RLS_PATH_MAX,
};

const char *rls_path_name(enum rls_calibrated_path path); /* "emulated.entry", ... */

/* Of some calls in a row: the mean of one. */
struct rls_batch {
	double more_ns; /* with probes than without */
	double plain_ns; /* without */
};

/* A batch makes at most so many calls with probes; each call of RLS_PATH_EVENT makes two events. */
#define RLS_HOT_CALLS 200

/* The paths' whole calls: an entry and a return, and so many edges, where they have these. In a loop of nothing
 * else, and amid other work. */
struct rls_batch rls_micro_target_hot(enum rls_calibrated_path path);
struct rls_batch rls_micro_target_cold(enum rls_calibrated_path path, struct rls_disturb *disturb);

/* Tracks this process and its thread, that calls it, with all probes on; nothing else is to be tracked. 0 or -errno,
 * to be ended in both cases. */
int rls_micro_target_begin(struct rls_kernel *kernel);

/* mark: rls_kernel_mark() from before it began. 0 or -EIO. */
int rls_micro_target_end(struct rls_kernel *kernel, size_t mark);

#endif
