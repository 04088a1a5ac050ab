#include "userspace/record/memory/memory_windows.h"

#include <string.h>

#include "userspace/base/jitter.h"

/* The share holds on the average of so long: so much is there at first. */
#define CREDIT_SPAN_NS 10000000000.0
#define WINDOW_NS 50000000ULL
/* What the target is held up for by probes that go on and off once. */
#define SWITCH_NS 400000.0
#define INTERVAL_NS_MIN 200000000.0
#define INTERVAL_NS_MAX 60000000000.0
/* Sources that are followed leave the others at least so much of the share, or go into windows too. */
#define LEFT_SHARE 0.5
/* What little another source has cost since then is no reason: of so much more time. */
#define BLAMED_AFTER_NS 1000000000.0
/* A window may be the first to meet what is expensive. */
#define KEPT_COST 0.5
/* A hit costs more than its probe and its program take, by what it drives out of the caches. */
#define HIT_COST 1.25

static double sum_of(const struct rls_memory_windows *windows, bool windowed)
{
	double sum = 0;

	for (uint32_t i = 0; i < RLS_MEMORY_SOURCES; i++)
		if ((windows->windowed >> i & 1) == windowed)
			sum += (double)windows->source_ns[i];
	return sum;
}

/* Sum of what was spent since the latest step; of what is in windows alone into the window's. */
static void spend(struct rls_memory_windows *windows, uint64_t ran_ns,
		  const uint64_t source_ns[RLS_MEMORY_SOURCES])
{
	double most_ns = windows->share * CREDIT_SPAN_NS;

	windows->credit_ns += windows->share * (double)(ran_ns - windows->at_ns);
	if (windows->credit_ns > most_ns)
		windows->credit_ns = most_ns;
	for (uint32_t i = 0; i < RLS_MEMORY_SOURCES; i++) {
		double spent_ns = HIT_COST * (double)(source_ns[i] - windows->source_ns[i]);

		windows->credit_ns -= spent_ns;
		if (windows->windowed >> i & 1)
			windows->spent_ns += spent_ns;
	}
	memcpy(windows->source_ns, source_ns, sizeof(windows->source_ns));
	windows->at_ns = ran_ns;
}

/* When the next window opens: what it costs has been earned by then, beside what the followed sources cost. */
static void plan_next(struct rls_memory_windows *windows, double others_share)
{
	double share = windows->share - others_share, wait_ns;

	if (share < windows->share * LEFT_SHARE)
		share = windows->share * LEFT_SHARE;
	wait_ns = windows->window_ns / share *
		  (double)rls_random_between(&windows->random, 500, 1500) / 1000;
	if (windows->credit_ns < 0)
		wait_ns -= windows->credit_ns / share;
	if (wait_ns < INTERVAL_NS_MIN)
		wait_ns = INTERVAL_NS_MIN;
	if (wait_ns > INTERVAL_NS_MAX)
		wait_ns = INTERVAL_NS_MAX;
	windows->due_ns = windows->at_ns + (uint64_t)wait_ns;
}

static uint64_t since_narrowed_ns(const struct rls_memory_windows *windows, uint32_t source)
{
	return windows->source_ns[source] - windows->narrowed_source_ns[source];
}

/* The followed source that has cost the most since one last went into windows; false: it is not to blame. */
static bool most_expensive(const struct rls_memory_windows *windows, uint32_t *source)
{
	double blamed_ns = windows->share * LEFT_SHARE *
			   ((double)(windows->at_ns - windows->narrowed_ns) + BLAMED_AFTER_NS);
	bool any = false;

	for (uint32_t i = 0; i < RLS_MEMORY_SOURCES; i++) {
		if (windows->windowed >> i & 1 || !since_narrowed_ns(windows, i))
			continue;
		if (any && since_narrowed_ns(windows, i) <= since_narrowed_ns(windows, *source))
			continue;
		*source = i;
		any = true;
	}
	return any &&
	       (!windows->windowed || (double)since_narrowed_ns(windows, *source) >= blamed_ns);
}

static enum rls_memory_step narrow(struct rls_memory_windows *windows, uint32_t source)
{
	double lasted_ns = (double)(windows->at_ns - windows->narrowed_ns);
	double cost = (double)since_narrowed_ns(windows, source) / (lasted_ns + 1);

	windows->windowed |= 1U << source;
	windows->window_ns += SWITCH_NS + (cost < 1 ? cost : 1) * (double)WINDOW_NS;
	memcpy(windows->narrowed_source_ns, windows->source_ns, sizeof(windows->source_ns));
	windows->narrowed_ns = windows->turned_ns = windows->at_ns;
	windows->others_ns = sum_of(windows, false);
	plan_next(windows, 0);
	return RLS_MEMORY_STEP_NARROW;
}

static enum rls_memory_step close_window(struct rls_memory_windows *windows)
{
	double ran_ns = (double)(windows->at_ns - windows->turned_ns + 1);
	double kept_ns = KEPT_COST * windows->window_ns, others_ns = sum_of(windows, false);

	windows->window_ns = SWITCH_NS + windows->spent_ns;
	if (windows->window_ns < kept_ns)
		windows->window_ns = kept_ns;
	windows->credit_ns -= SWITCH_NS;
	windows->open = false;
	plan_next(windows, HIT_COST * (others_ns - windows->others_ns) / ran_ns);
	windows->turned_ns = windows->at_ns;
	windows->others_ns = others_ns;
	return RLS_MEMORY_STEP_CLOSE;
}

enum rls_memory_step rls_memory_windows_step(struct rls_memory_windows *windows, uint64_t time_ns,
					     uint64_t ran_ns,
					     const uint64_t source_ns[RLS_MEMORY_SOURCES],
					     uint32_t *source)
{
	if (windows->share < 0)
		return RLS_MEMORY_STEP_STAY;
	if (!windows->random) {
		windows->at_ns = windows->narrowed_ns = ran_ns;
		windows->credit_ns = windows->share * CREDIT_SPAN_NS;
		windows->random = time_ns | 1;
	}
	spend(windows, ran_ns, source_ns);
	if (windows->open)
		return time_ns - windows->opened_ns < WINDOW_NS ? RLS_MEMORY_STEP_STAY
								: close_window(windows);
	if (windows->credit_ns < 0 && most_expensive(windows, source))
		return narrow(windows, *source);
	if (!windows->windowed || ran_ns < windows->due_ns)
		return RLS_MEMORY_STEP_STAY;
	windows->open = true;
	windows->opened_ns = time_ns;
	windows->spent_ns = 0;
	return RLS_MEMORY_STEP_OPEN;
}
