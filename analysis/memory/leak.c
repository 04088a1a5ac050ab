#include "analysis/memory/leak.h"

#include <math.h>

#include "analysis/memory/trend.h"

/* Fewer values say nothing about a trend. */
#define VALUES_MIN 8
/* Of the slope of the half: a part that rises so much still rises, with few values and noise. */
#define STILL_SHARE 0.25

/* The values from the first block on: what was before says nothing about how the line goes on. */
struct active_part {
	const uint64_t *values;
	uint32_t count;
};

static struct active_part active_part_of(const struct rls_live_curve *curve)
{
	uint32_t first = 0;

	while (first < curve->count && !curve->least[first])
		first++;
	return (struct active_part){curve->least + first, curve->count - first};
}

/* Of the last 1 / divisor. Few values are taken as they are. */
static struct rls_trend trend_of_last(const struct active_part *part, uint32_t divisor)
{
	uint32_t count = part->count / divisor;

	if (count < VALUES_MIN)
		count = part->count < VALUES_MIN ? part->count : VALUES_MIN;
	return rls_trend_of(part->values + part->count - count, count);
}

static double per_second(const struct rls_live_curve *curve, double per_step)
{
	return curve->period_ns ? per_step * 1e9 / (double)curve->period_ns : 0;
}

/* The confidence that the curve rises, and has not stopped to. */
static double rising(const struct active_part *active)
{
	struct rls_trend half = trend_of_last(active, 2);
	double least = rls_normal_share(half.z);

	if (active->count < VALUES_MIN)
		return 0.5;
	for (uint32_t divisor = 4; divisor <= 8 && active->count / divisor >= VALUES_MIN;
	     divisor *= 2) {
		struct rls_trend part = trend_of_last(active, divisor);
		double share = rls_normal_share(part.z);

		if (part.slope >= STILL_SHARE * half.slope)
			continue;
		/* Most pairs are level or fall, whatever a few early values do to z. */
		if (part.slope <= 0 && share > 0.5)
			share = 0.5;
		least = share < least ? share : least;
	}
	return half.slope > 0 ? least : least / 2;
}

double rls_growth_bytes_per_s(const struct rls_live_curve *curve)
{
	struct active_part active = active_part_of(curve);

	return per_second(curve, trend_of_last(&active, 2).slope);
}

struct rls_leak rls_leak_of(const struct rls_live_curve *curve, const struct rls_trials *trials)
{
	double likelihood = ((double)trials->survivors + 1) / ((double)trials->observed + 2);
	struct active_part active = active_part_of(curve);

	return (struct rls_leak){
		.score = likelihood * rising(&active),
		.growth_bytes_per_s = rls_growth_bytes_per_s(curve),
	};
}

double rls_limit_in_s(uint64_t now_bytes, uint64_t limit_bytes, double bytes_per_s)
{
	if (now_bytes >= limit_bytes)
		return 0;
	return bytes_per_s > 0 ? (double)(limit_bytes - now_bytes) / bytes_per_s : NAN;
}
