/* Calibration: what one probe hit costs, here and now.
 *
 * Small functions of our own (micro_target.h), with probes and without, by turns: twice, in a hot loop, and
 * with other work between two calls (disturb.h), because that is how hits come in a training job and they cost twice as
 * much then. The cold figure is used; what a program's own hits cost depends on how much else it
 * does between them, and the stated error says so. The times of the events themselves tell how a pair's cost is divided between
 * what is inside the call and what is outside.
 *
 * In rounds, each of all paths, spread over the time that there is. A shared machine has spells in which all takes 1.2 to
 * 2 times as long, tens of milliseconds or some seconds at a time. What the work without probes takes tells them: medians
 * are of the quieter half of the rounds.
 */
#ifndef RLS_CALIBRATE_H
#define RLS_CALIBRATE_H

#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/calibration/micro_target.h"

struct rls_calibrated {
	double value_ns;        /* with other work between the calls */
	double error_ns;        /* half width of its 95 % interval */
	double hot_ns;          /* in a loop of nothing else */
	double hot_error_ns;
};

struct rls_calibration {
	struct rls_calibrated paths[RLS_PATH_MAX];
	double inside_ns;       /* from an entry's event to its return's, hot */
};

/* Uses the kernel's own programs, with this process tracked for a moment: before any
 * target is. Takes the handler of the kernel's records for itself. rounds: 15..99; each
 * takes some 50 ms. 0 or -errno. */
int rls_calibrate(struct rls_kernel *kernel, unsigned int rounds, struct rls_calibration *out);

/* What an entry at an emulated site and its return cost now, as a share of what a calibration says; infinite where
 * that says nothing. */
struct rls_calibration_look {
	double hot_share;
	double cold_share;      /* to some 10 %; no number where the machine is too busy to tell */
};

/* In some 0.1 s of CPU time, measured the same way. 0 or -errno. */
int rls_calibrate_look(struct rls_kernel *kernel, const struct rls_calibration *calibration,
		       struct rls_calibration_look *out);

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
