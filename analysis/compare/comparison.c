#include "analysis/compare/comparison.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const metric_names[] = {
	[RLS_COMPARE_CORRECTED] = "corrected",
	[RLS_COMPARE_WALL] = "wall",
	[RLS_COMPARE_CPU] = "cpu",
	[RLS_COMPARE_RAN] = "ran",
};
_Static_assert(sizeof(metric_names) / sizeof(*metric_names) == RLS_COMPARE_METRIC_MAX,
	       "a name each");

static const char *const normalise_names[] = {
	[RLS_COMPARE_NORMALISE_AUTO] = "auto",
	[RLS_COMPARE_NORMALISE_SPEED] = "speed",
	[RLS_COMPARE_NORMALISE_NONE] = "none",
};
_Static_assert(sizeof(normalise_names) / sizeof(*normalise_names) == RLS_COMPARE_NORMALISE_MAX,
	       "a name each");

static const char *const unit_names[] = {
	[RLS_COMPARE_PER_CALL] = "call",
	[RLS_COMPARE_PER_INNER_CALL] = "inner call",
	[RLS_COMPARE_PER_SECOND] = "second",
};
_Static_assert(sizeof(unit_names) / sizeof(*unit_names) == RLS_COMPARE_UNIT_MAX, "a name each");

static int find_name(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++) {
		if (!strcmp(name, names[i]))
			return i;
	}
	return -EINVAL;
}

const char *rls_compare_metric_name(enum rls_compare_metric metric)
{
	return metric_names[metric];
}

int rls_compare_metric_parse(const char *name, enum rls_compare_metric *out)
{
	int found = find_name(metric_names, RLS_COMPARE_METRIC_MAX, name);

	if (found < 0)
		return found;
	*out = found;
	return 0;
}

int rls_compare_normalise_parse(const char *name, enum rls_compare_normalise *out)
{
	int found = find_name(normalise_names, RLS_COMPARE_NORMALISE_MAX, name);

	if (found < 0)
		return found;
	*out = found;
	return 0;
}

const char *rls_compare_unit_name(enum rls_compare_unit unit)
{
	return unit_names[unit];
}

const char *rls_compare_row_category(const struct rls_compare_row *row)
{
	return row->category == RLS_COMPARE_TOTAL ? "total" : rls_category_name(row->category);
}

/* --- rows --------------------------------------------------------------------------- */

void rls_comparison_free(struct rls_comparison *comparison)
{
	free(comparison->rows);
	*comparison = (struct rls_comparison){0};
}
