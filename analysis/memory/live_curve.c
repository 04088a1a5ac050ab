#include "analysis/memory/live_curve.h"

#include "analysis/event/bounded.h"

/* Of the first points; the longest recording doubles it some 40 times. */
#define FIRST_PERIOD_NS (1ull << 20)

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void halve(struct rls_live_curve *curve)
{
	curve->count /= 2;
	for (uint32_t i = 0; i < curve->count; i++)
		curve->least[i] = smaller(curve->least[2 * i], curve->least[2 * i + 1]);
	curve->period_ns *= 2;
}

/* Ends every period that ends at this instant or before. */
static void advance(struct rls_live_curve *curve, uint64_t time_ns)
{
	uint64_t passed_ns = time_ns > curve->start_ns ? time_ns - curve->start_ns : 0;

	if (!curve->period_ns)
		curve->period_ns = FIRST_PERIOD_NS;
	while ((curve->count + 1) * curve->period_ns <= passed_ns) {
		if (curve->count == RLS_LIVE_CURVE_POINTS) {
			halve(curve);
			continue;
		}
		curve->least[curve->count++] = curve->low_bytes;
		curve->low_bytes = curve->now_bytes;
	}
}

void rls_live_curve_set(struct rls_live_curve *curve, uint64_t time_ns, uint64_t bytes)
{
	advance(curve, time_ns);
	curve->now_bytes = bytes;
	curve->low_bytes = smaller(curve->low_bytes, bytes);
}

void rls_live_curve_finish(struct rls_live_curve *curve, uint64_t end_ns)
{
	advance(curve, end_ns);
}

void rls_live_curve_add(struct rls_live_curve *into, const struct rls_live_curve *more)
{
	if (into->start_ns != more->start_ns || into->period_ns != more->period_ns ||
	    into->count != more->count) {
		if (more->start_ns > into->start_ns)
			*into = *more;
		return;
	}
	for (uint32_t i = 0; i < into->count; i++)
		rls_add_bounded(&into->least[i], more->least[i]);
	rls_add_bounded(&into->now_bytes, more->now_bytes);
}

uint64_t rls_live_curve_max(const struct rls_live_curve *curve)
{
	uint64_t max = curve->now_bytes;

	for (uint32_t i = 0; i < curve->count; i++) {
		if (curve->least[i] > max)
			max = curve->least[i];
	}
	return max;
}
