#include "userspace/record/cost/calibration_cache.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "userspace/base/clock.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"

/* A recording waits for this: a second at most, unless the machine is so busy that five rounds take longer. */
static const struct rls_calibration_effort brief = {
	.rounds = 25, .enough = 5, .time_ns = 900000000, .most_ns = 3000000000};

/* A hot loop's figures vary so much from one minute to the next on a shared machine; beyond,
 * something has changed: the clock's speed, what the machine does for security. */
#define HOT_SHARE_MIN 0.75
#define HOT_SHARE_MAX 1.35

/* What hits cost amid other work, which is what is charged, is the memory's affair: a calibration of a slow hour says
 * up to 1.6 times what the hour after it does, while hot hits cost what they did. */
#define COLD_SHARE_MIN 0.8
#define COLD_SHARE_MAX 1.25

/* A burst of the machine's lasts for some tenths of a second: it spoils one check, seldom all. */
#define CHECKS 3
#define BETWEEN_CHECKS_NS 300000000

/* Figures of a busy moment are used for a while, as long as they seem to hold; the machine may
 * be quieter after that. */
#define UNSTEADY_SHARE 0.2
#define UNSTEADY_KEPT_S 600

static double now_s(void)
{
	return (double)rls_host_since_boot_ns() / 1e9;
}

static bool has_passed(const struct rls_calibration_file *file)
{
	return file->until_s > 0 && now_s() >= file->until_s;
}

static bool is_steady(const struct rls_calibration *calibration)
{
	const struct rls_calibrated *paths = calibration->paths;
	double error_ns =
		(paths[RLS_PATH_EMULATED_ENTRY].error_ns + paths[RLS_PATH_RETURN].error_ns) / 2 +
		paths[RLS_PATH_EVENT].error_ns;

	return error_ns <= UNSTEADY_SHARE * rls_calibration_mean_hit(calibration).value_ns;
}

/* scope: NULL where it is not known of which boot it is, so that it cannot be kept. */
static const char *keep(const struct rls_calibration_scope *scope,
			const struct rls_calibration_file *file)
{
	int r = scope ? rls_calibration_save(RLS_CALIBRATION_PATH, scope, file) : -ENOENT;

	if (r)
		rls_debug("the calibration is not kept in %s: %s", RLS_CALIBRATION_PATH,
			  strerror(-r));
	if (r)
		return "for this recording only";
	return file->until_s > 0 ? "kept for ten minutes, as the machine is busy"
				 : "kept for this boot";
}

/* A recording goes on without: with figures of other machines, and an error that says so. */
static void fall_back(int error, struct rls_calibration_file *file)
{
	rls_calibration_default(&file->calibration);
	file->source = RLS_CALIBRATED_NOT;
	file->failure = error;
	file->until_s = 0;
}

static void measure_briefly(struct rls_kernel *kernel, const struct rls_calibration_scope *scope,
			    struct rls_calibration_file *file)
{
	int r = rls_calibrate(kernel, &brief, &file->calibration);
	struct rls_calibrated hit = rls_calibration_mean_hit(&file->calibration);

	if (!r && !(hit.value_ns > 0 && hit.error_ns <= hit.value_ns))
		r = -EBUSY;
	if (r) {
		fall_back(r, file);
		return;
	}
	file->source = RLS_CALIBRATED_BY_RECORDING;
	file->until_s = is_steady(&file->calibration) ? 0 : now_s() + UNSTEADY_KEPT_S;
	file->kept = keep(scope, file);
}

void rls_calibration_cache_announce(const struct rls_calibration_file *file)
{
	struct rls_calibrated hit = rls_calibration_mean_hit(&file->calibration);

	if (file->failure)
		rls_warning("what a probe hit costs could not be measured (%s): a default is used, "
			    "which may be off by all of it",
			    rls_reason(file->failure));
	if (file->kept)
		rls_info("calibrated: a probe hit costs %.2f ± %.2f µs here, %s",
			 hit.value_ns / 1000, hit.error_ns / 1000, file->kept);
}

/* Asked for by the user, who then has it kept for good. */
static int measure_at_length(struct rls_kernel *kernel, const struct rls_calibration_effort *effort,
			     const struct rls_calibration_scope *scope,
			     struct rls_calibration_file *file)
{
	int r = rls_calibrate(kernel, effort, &file->calibration);

	if (r)
		return rls_error_r(r, "cannot measure what a probe costs: %s", rls_reason(r));
	if (!is_steady(&file->calibration))
		rls_warning("the machine is too busy for steady figures: calibrate again when it "
			    "is quieter");
	file->source = RLS_CALIBRATED_BY_COMMAND;
	file->until_s = 0;
	keep(scope, file);
	return 0;
}

static int calibration_cache_load(const struct rls_calibration_scope *scope,
				  struct rls_calibration_file *out)
{
	int r = rls_calibration_load(RLS_CALIBRATION_PATH, scope, out);

	if (r == -EPERM || r == -EINVAL || r == -ELOOP)
		rls_warning("%s is left aside: %s", RLS_CALIBRATION_PATH,
			    r == -EINVAL ? "it is no calibration" : "others could have written it");
	return r;
}

static bool agrees(const struct rls_calibration_check *now)
{
	if (!(now->hot_share >= HOT_SHARE_MIN && now->hot_share <= HOT_SHARE_MAX))
		return false;
	return isnan(now->cold_share) ||
	       (now->cold_share >= COLD_SHARE_MIN && now->cold_share <= COLD_SHARE_MAX);
}

/* *share: what hits cost now, of what the calibration says, by that check which is nearest to it; 0: none could be
 * taken. */
static bool calibration_cache_holds(struct rls_kernel *kernel,
				    const struct rls_calibration *calibration, double *share)
{
	const struct timespec between = {.tv_nsec = BETWEEN_CHECKS_NS};
	struct rls_calibration_check now;

	*share = 0;
	for (int i = 0; i < CHECKS; i++) {
		double seen;

		if (i)
			nanosleep(&between, NULL);
		if (rls_calibrate_check(kernel, calibration, &now))
			return false;
		rls_debug("a hit costs %.0f %% of what was calibrated, %.0f %% amid other work",
			  now.hot_share * 100, now.cold_share * 100);
		if (agrees(&now))
			return true;
		seen = isnan(now.cold_share) ? now.hot_share : now.cold_share;
		if (!i || fabs(seen - 1) < fabs(*share - 1))
			*share = seen;
	}
	return false;
}

/* ---- a command's own ---- */

/* A job's hits were seen to follow the calibration's from one hour to another, to within a tenth; but checks are brief, and
 * the job's own figure stands until it is found anew. */
static void check_workload(struct rls_kernel *kernel, struct rls_workload *own)
{
	double share, off;

	if (calibration_cache_holds(kernel, &own->calibration, &share))
		return;
	if (share > 0 && isfinite(share))
		rls_warning("hits seem to cost %.0f %% of what they did when this command was "
			    "calibrated: calibrate it again",
			    share * 100);
	else
		rls_warning("what hits cost now cannot be seen: calibrate this command again");
	off = isfinite(share) ? fmin(fabs(share - 1), 1) : 1;
	own->error = hypot(own->error, off * own->factor);
	for (size_t i = 0; i < own->operation_count; i++) {
		struct rls_operation_cost *cost = &own->operations[i];

		cost->error = hypot(cost->error, off * cost->factor);
	}
}

/* ---- this boot's, or a command's ---- */

void rls_calibration_cache_open(struct rls_kernel *kernel, const char *command,
				struct rls_calibration_file *out)
{
	struct rls_calibration_file file = {0};
	struct rls_calibration_scope scope;
	struct rls_workload *own = NULL;
	struct rls_hit_costs costs;
	bool has_scope = !rls_calibration_scope_init(&scope, rls_kernel_way(kernel));
	bool is_known = has_scope && !calibration_cache_load(&scope, &file);
	double share;

	if (is_known && command)
		own = rls_calibration_workload(&file, command);
	if (own) {
		check_workload(kernel, own);
		file.calibration = own->calibration;
		file.source = RLS_CALIBRATED_IN_JOB;
	} else if (!is_known || has_passed(&file) ||
		   !calibration_cache_holds(kernel, &file.calibration, &share)) {
		measure_briefly(kernel, has_scope ? &scope : NULL, &file);
	}
	costs = rls_calibration_costs(&file.calibration);
	rls_kernel_set_costs(kernel, &costs);
	*out = file;
}

int rls_calibration_cache_measure(struct rls_kernel *kernel,
				  const struct rls_calibration_effort *effort,
				  struct rls_calibration_file *out)
{
	struct rls_calibration_file file = {0};
	struct rls_calibration_scope scope;
	int r = rls_calibration_scope_init(&scope, rls_kernel_way(kernel));

	if (r)
		return rls_error_r(r, "cannot tell which boot this is: %s", strerror(-r));
	calibration_cache_load(&scope, &file);
	r = measure_at_length(kernel, effort, &scope, &file);
	if (r)
		rls_calibration_file_clear(&file);
	else
		*out = file;
	return r;
}
