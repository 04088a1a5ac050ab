#include "analysis/memory/report_rows.h"

#include <math.h>

#include "analysis/memory/leak.h"
#include "analysis/memory/memory_totals.h"

static void larger(uint64_t *into, uint64_t more)
{
	if (more > *into)
		*into = more;
}

void rls_memory_line_add(void *into, const void *more)
{
	struct rls_memory_line_row *row = into;
	const struct rls_memory_line_row *other = more;

	/* No part was less than nothing when another one had its peak. */
	larger(&row->peak_bytes, other->peak_bytes);
	rls_live_curve_add(&row->curve, &other->curve);
	rls_lifetimes_add(&row->lifetimes, &other->lifetimes);
}

static void set_unknown(struct rls_memory_line_row *row)
{
	row->freed_bytes = row->growth_bytes = row->live_bytes = RLS_COUNT_UNKNOWN;
	row->peak_bytes = row->bytes_at_process_peak = RLS_COUNT_UNKNOWN;
	row->temporary_bytes = row->median_lifetime_ns = RLS_COUNT_UNKNOWN;
	row->survivors = row->observed = RLS_COUNT_UNKNOWN;
	row->leak_score = row->growth_bytes_per_s = NAN;
}

/* A trace without ages, of a recording that was cut off, says of all blocks whether they live. */
static struct rls_trials trials_of(const struct rls_memory_line_row *row)
{
	struct rls_trials trials = rls_lifetimes_trials(&row->lifetimes);

	if (row->ageless_allocs > row->ageless_frees)
		rls_add_bounded(&trials.survivors, row->ageless_allocs - row->ageless_frees);
	rls_add_bounded(&trials.observed, row->ageless_allocs);
	return trials;
}

void rls_memory_line_derive(void *item)
{
	struct rls_memory_line_row *row = item;
	struct rls_trials trials;
	struct rls_leak leak;

	row->error_bytes = rls_round_bounded(sqrt(row->variance_bytes2));
	if (!rls_memory_follows(row->source, row->method)) {
		set_unknown(row);
		return;
	}
	larger(&row->peak_bytes, rls_live_curve_max(&row->curve));
	larger(&row->peak_bytes, row->bytes_at_process_peak);
	larger(&row->peak_bytes, row->live_bytes);
	row->median_lifetime_ns =
		row->ageless_frees ? RLS_COUNT_UNKNOWN : rls_lifetimes_median_ns(&row->lifetimes);
	trials = trials_of(row);
	leak = rls_leak_of(&row->curve, &trials);
	row->survivors = trials.survivors;
	row->observed = trials.observed;
	row->leak_score = leak.score;
	row->growth_bytes_per_s = leak.growth_bytes_per_s;
}
