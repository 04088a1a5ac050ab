/* What rows have beside their figures: names of enums, and figures that follow from others. */
#include "analysis/report/rows.h"

#include <math.h>
#include <string.h>

#include "analysis/event/bounded.h"

/* Half width of a 95 % interval, in standard deviations. */
#define INTERVAL_95 1.96

static const char *const resource_names[] = {
	[RLS_RESOURCE_CPU] = "cpu",
	[RLS_RESOURCE_GPU] = "gpu",
	[RLS_RESOURCE_CPU_GPU] = "cpu+gpu",
};
_Static_assert(sizeof(resource_names) / sizeof(*resource_names) == RLS_RESOURCE_MAX, "a name each");

static const char *const method_names[] = {
	[RLS_METHOD_TRACED] = "traced",
	[RLS_METHOD_SAMPLED] = "sampled",
	[RLS_METHOD_SCALED] = "scaled",
};
_Static_assert(sizeof(method_names) / sizeof(*method_names) == RLS_METHOD_MAX, "a name each");

const char *rls_resource_name(enum rls_resource resource)
{
	return (unsigned int)resource < RLS_RESOURCE_MAX ? resource_names[resource] : "";
}

const char *rls_method_name(enum rls_method method)
{
	return (unsigned int)method < RLS_METHOD_MAX ? method_names[method] : "";
}

bool rls_report_role_category(const char *role, enum rls_category *out)
{
	enum rls_category category;

	if (!strcmp(role, "cuda")) {
		*out = RLS_CATEGORY_CUDA_API;
		return true;
	}
	if (rls_category_parse(role, &category) || category < RLS_CATEGORY_SIMULATOR ||
	    category == RLS_CATEGORY_CUDA_API)
		return false;
	*out = category;
	return true;
}

const char *rls_breakdown_row_category(const struct rls_breakdown_row *row)
{
	return row->resource == RLS_RESOURCE_GPU ? "" : rls_category_name(row->category);
}

uint64_t rls_interval_95_ns(double variance_ns2, double few_ns)
{
	return rls_round_bounded(INTERVAL_95 * hypot(sqrt(variance_ns2), few_ns));
}

void rls_sampled_times_derive(struct rls_sampled_times *times)
{
	times->error_ns = rls_interval_95_ns(times->variance_ns2, times->few_ns);
}

void rls_sampled_times_add(struct rls_sampled_times *into, const struct rls_sampled_times *more)
{
	/* Every figure but the error, which follows from the variance. */
	uint64_t *to = (uint64_t *)into;
	const uint64_t *from = (const uint64_t *)more;

	for (size_t i = 0; i < offsetof(struct rls_sampled_times, error_ns) / sizeof(*to); i++)
		rls_add_bounded(&to[i], from[i]);
	into->variance_ns2 += more->variance_ns2;
	into->few_ns = fmax(into->few_ns, more->few_ns);
	rls_sampled_times_derive(into);
}

void rls_row_error_add(struct rls_row_error *into, const struct rls_row_error *more)
{
	rls_add_bounded(&into->shared_ns, more->shared_ns);
	into->moved_ns += more->moved_ns;
	into->split_ns2 += more->split_ns2;
	rls_add_bounded(&into->divided_ns, more->divided_ns);
}

uint64_t rls_row_error_ns(const struct rls_row_error *error, enum rls_error_of of, uint64_t wall_ns)
{
	uint64_t ns = error->shared_ns;

	rls_add_bounded(&ns, rls_round_bounded(error->moved_ns));
	/* What hits cost and what samples saw have nothing to do with each other. */
	if (of == RLS_ERROR_OF_ROWS)
		ns = rls_round_bounded(hypot((double)ns, sqrt(error->split_ns2)));
	if (ns > wall_ns)
		ns = wall_ns;
	if (of != RLS_ERROR_OF_ALL)
		rls_add_bounded(&ns, error->divided_ns);
	return ns;
}
