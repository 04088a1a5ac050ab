#include "analysis/estimate/roleless_code.h"

#include <math.h>

#include "analysis/timeline/timeline.h"

#define SIGMAS 1.96

/* Native code's in what was traced as Python. */
struct share {
	double of, error; /* half width */
};

static struct share share_of(const uint64_t *weights, double draws)
{
	double all = (double)rls_category_samples_sum(weights), about;
	struct share share = {0};

	if (!weights[RLS_CATEGORY_NATIVE])
		return share;
	share.of = (double)weights[RLS_CATEGORY_NATIVE] / all;
	about = (share.of * draws + 1) / (draws + 2);
	share.error = SIGMAS * sqrt(about * (1 - about) / (draws + 1));
	return share;
}

static uint64_t part_of(uint64_t ns, double share)
{
	uint64_t some = (uint64_t)llround((double)ns * share);

	return some < ns ? some : ns;
}

static void move_part(struct rls_scope *scope, enum rls_part part, struct share running,
		      struct share waiting)
{
	struct rls_cell *python = &scope->cells[RLS_CATEGORY_PYTHON],
			*native = &scope->cells[RLS_CATEGORY_NATIVE];
	uint64_t waited_ns = python->off_cpu_ns[part], ran_ns = python->wall_ns[part] - waited_ns;
	uint64_t off_ns = part_of(waited_ns, waiting.of), on_ns = part_of(ran_ns, running.of);
	double error_ns = hypot(running.error * (double)ran_ns, waiting.error * (double)waited_ns);

	python->wall_ns[part] -= on_ns + off_ns;
	python->off_cpu_ns[part] -= off_ns;
	python->sampled_error_ns[part] += error_ns;
	native->wall_ns[part] += on_ns + off_ns;
	native->off_cpu_ns[part] += off_ns;
	native->sampled_error_ns[part] += error_ns;
	native->roleless_ran_ns += on_ns;
}

/* Probes are hit where Python calls what has a role, or comes back: their cost stays, as far as there is
 * time for it. What other threads' hits did to waits goes with the waits. */
static void move_costs(struct rls_scope *scope, uint64_t off_ns, uint64_t induced_ns)
{
	struct rls_cell *python = &scope->cells[RLS_CATEGORY_PYTHON],
			*native = &scope->cells[RLS_CATEGORY_NATIVE];
	uint64_t wall_ns = python->wall_ns[RLS_PART_CPU], excess_ns = 0;
	double left = off_ns ? (double)python->off_cpu_ns[RLS_PART_CPU] / (double)off_ns : 1;
	uint64_t stays_ns = part_of(induced_ns, left);

	python->induced_wait_ns = stays_ns;
	native->induced_wait_ns += induced_ns - stays_ns;
	if (python->subtracted_ns > wall_ns)
		excess_ns = python->subtracted_ns - wall_ns;
	python->subtracted_ns -= excess_ns;
	native->subtracted_ns += excess_ns;
}

static void divide_scope(struct rls_scope *scope)
{
	struct rls_cell *python = &scope->cells[RLS_CATEGORY_PYTHON];
	uint64_t off_ns = python->off_cpu_ns[RLS_PART_CPU],
		 induced_ns = rls_cell_induced_wait_ns(python);
	const struct rls_sample_pair *samples = scope->python;
	struct share running = share_of(samples->running.count,
					(double)rls_category_samples_sum(samples->running.count)),
		     waiting = share_of(samples->waiting.ns,
					rls_category_samples_waits(&samples->waiting));

	if (running.of <= 0 && waiting.of <= 0)
		return;
	for (int part = 0; part < RLS_PART_MAX; part++)
		move_part(scope, part, running, waiting);
	move_costs(scope, off_ns, induced_ns);
}

void rls_roleless_code_divide(struct rls_thread *thread)
{
	for (struct rls_scope *scope = thread->scopes; scope; scope = scope->next) {
		if (scope->python)
			divide_scope(scope);
	}
}
