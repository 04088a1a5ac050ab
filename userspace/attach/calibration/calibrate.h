/* Calibration: what one probe hit costs, here and now.
 *
 * It calls small functions of our own (micro_target.h) alternately with and without probes: in a hot loop, and with
 * other work between two calls (disturb.h). The second is what happens in a training job, and hits then cost twice as
 * much. That cold figure is used. What a program's own hits cost depends on what it does between them, and the error
 * says so. The times of the events show which part of a pair's cost lies inside the call.
 *
 * It works in rounds of all paths, spread over the available time. A shared machine is 1.2 to 2 times as slow at times,
 * for tens of milliseconds or some seconds. The time of the work without probes shows that, and medians are taken of
 * the quieter half of the rounds.
 */
#ifndef RLS_CALIBRATE_H
#define RLS_CALIBRATE_H

#include "userspace/attach/calibration/micro_target.h"
#include "userspace/attach/kernel/kernel.h"

struct rls_calibrated {
	double value_ns; /* with other work between the calls */
	double error_ns; /* half width of its 95 % interval */
	double hot_ns; /* in a loop of nothing else */
	double hot_error_ns;
};

struct rls_calibration {
	struct rls_calibrated paths[RLS_PATH_MAX];
	double inside_ns; /* from an entry's event to its return's, hot */
};

/* How long it may take. A round takes some 50 ms on an idle CPU. */
struct rls_calibration_effort {
	unsigned int rounds; /* at most, up to 99 */
	unsigned int enough; /* after as many it ends where its time is over */
	uint64_t time_ns;
	uint64_t
		most_ns; /* after that it ends with what it has, or with -ETIME where that says nothing */
};

/* Uses the kernel's own programs, with this process tracked for a moment: before any
 * target is. Takes the handler of the kernel's records for itself. Where the machine is too busy to see what
 * a path costs among other work, that is estimated by the hot loop, with a wide error. 0 or -errno. */
int rls_calibrate(struct rls_kernel *kernel, const struct rls_calibration_effort *effort,
		  struct rls_calibration *out);

/* Of machines seen so far, with an error of all of it: for one on which nothing can be measured. */
void rls_calibration_default(struct rls_calibration *out);

/* What an entry at an emulated site and its return cost now, as a share of what a calibration says; infinite where
 * that says nothing. */
struct rls_calibration_check {
	double hot_share;
	double cold_share; /* to some 10 %; no number where the machine is too busy to tell */
};

/* In some 0.1 s of CPU time, measured the same way. 0 or -errno. */
int rls_calibrate_check(struct rls_kernel *kernel, const struct rls_calibration *calibration,
			struct rls_calibration_check *out);

/* For rls_kernel_set_costs. */
struct rls_hit_costs rls_calibration_costs(const struct rls_calibration *calibration);

/* The mean hit of a call from Python that changes the category. Its error is the distance to
 * what it costs hot, or to the most that one was seen to cost in a training job if that is
 * farther: how little one figure can say of all programs. */
struct rls_calibrated rls_calibration_mean_hit(const struct rls_calibration *calibration);

/* How much more one is said to cost than amid hot code. */
double rls_calibrated_excess(const struct rls_calibrated *hit);

/* Those of the count values whose rounds' plain_ns are not above their median come to the front, in their
 * order; how many these are. */
size_t rls_quieter_half(double *values, const double *plain_ns, size_t count);

/* Median of the values, which are sorted, and the half width of its 95 % interval (by order
 * statistics, no distribution assumed). count > 0. */
void rls_median_interval(double *values, size_t count, double *median, double *half_width);

#endif
