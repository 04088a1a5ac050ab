#include "userspace/record/budget.h"

#include <math.h>

/* A window: long enough to be worth its edges, short enough for many. */
#define WINDOW_NS 60e6
#define WINDOW_SPREAD 0.5       /* lengths are even within this share around it */
#define GAP_NS_MIN 10e6
#define GAP_NS_MAX 5e9          /* rare windows are better than none */
#define GAP_MEANS_MAX 4.0
#define DEBT_SPANS 0.5          /* a window ends early when credit is so far below zero */
#define FIRST_KEEPS 0.4         /* of the first span's credit, for windows later in it */
#define RATE_KEEP 0.7           /* weight of what was known of a rate before */

/* xorshift64*: enough to be out of step with anything. */
static double random_share(struct rls_budget *budget)
{
	uint64_t x = budget->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	budget->random = x;
	return (double)((x * 0x2545f4914f6cdd1dULL) >> 11) / (double)(1ULL << 53);
}

static double full(const struct rls_budget *budget)
{
	return budget->share * (double)RLS_BUDGET_SPAN_NS;
}

void rls_budget_start(struct rls_budget *budget, double share, uint64_t time_ns, uint64_t seed)
{
	*budget = (struct rls_budget){
		.share = share,
		.start_ns = time_ns,
		.at_ns = time_ns,
		.edge_ns = time_ns,
		.open = true,
		.random = seed | 1,
	};
	budget->credit_ns = full(budget);
}

/* What the first span earns was there from the start. */
static double growth(const struct rls_budget *budget)
{
	return budget->at_ns - budget->start_ns < RLS_BUDGET_SPAN_NS ? 0 : budget->share;
}

static void learn(double *rate, double seen)
{
	*rate = *rate > 0 ? RATE_KEEP * *rate + (1 - RATE_KEEP) * seen : seen;
}

/* The gap at which windows cost what is left of the budget, drawn at random around it. */
static double draw_gap_ns(struct rls_budget *budget)
{
	/* Credit is used up, and debt paid back, over a span. */
	double free_rate = growth(budget) + budget->credit_ns / (double)RLS_BUDGET_SPAN_NS -
			   budget->closed_rate;
	double window_ns = WINDOW_NS * budget->open_rate + budget->switch_ns;
	double mean_ns = GAP_NS_MAX;
	double gap_ns;

	if (free_rate > 0)
		mean_ns = window_ns / free_rate - WINDOW_NS;
	mean_ns = fmin(fmax(mean_ns, GAP_NS_MIN), GAP_NS_MAX);
	gap_ns = -log(1 - random_share(budget)) * mean_ns;
	return fmin(fmax(gap_ns, GAP_NS_MIN), GAP_MEANS_MAX * mean_ns);
}

static double draw_window_ns(struct rls_budget *budget)
{
	return WINDOW_NS * (1 + WINDOW_SPREAD * (2 * random_share(budget) - 1));
}

static enum rls_budget_step step_when_open(const struct rls_budget *budget)
{
	if (!budget->settled)
		return budget->credit_ns > FIRST_KEEPS * full(budget) ? RLS_BUDGET_STAY :
									RLS_BUDGET_CLOSE;
	if (budget->credit_ns < -DEBT_SPANS * full(budget))
		return RLS_BUDGET_CLOSE;
	/* While there is credit to burn, there is no need to close. */
	if (budget->at_ns >= budget->due_ns && budget->open_rate > budget->share)
		return RLS_BUDGET_CLOSE;
	return budget->credit_ns < 0 && budget->at_ns >= budget->due_ns ? RLS_BUDGET_CLOSE :
									  RLS_BUDGET_STAY;
}

enum rls_budget_step rls_budget_tick(struct rls_budget *budget, uint64_t time_ns, double cost_ns)
{
	if (time_ns > budget->at_ns) {
		budget->credit_ns += growth(budget) * (double)(time_ns - budget->at_ns);
		budget->at_ns = time_ns;
	}
	budget->spent_ns += cost_ns;
	budget->credit_ns = fmin(budget->credit_ns - cost_ns, full(budget));
	if (budget->open)
		return step_when_open(budget);
	if (time_ns < budget->due_ns || budget->credit_ns < -DEBT_SPANS * full(budget))
		return RLS_BUDGET_STAY;
	return RLS_BUDGET_OPEN;
}

void rls_budget_charge_late(struct rls_budget *budget, double cost_ns)
{
	budget->credit_ns -= cost_ns;
}

void rls_budget_switched(struct rls_budget *budget, bool open, uint64_t time_ns, double cost_ns)
{
	double lasted_ns = time_ns > budget->edge_ns ? (double)(time_ns - budget->edge_ns) : 0;

	if (lasted_ns > 0)
		learn(budget->open ? &budget->open_rate : &budget->closed_rate,
		      budget->spent_ns / lasted_ns);
	if (cost_ns > 0)
		learn(&budget->switch_ns, 2 * cost_ns);
	budget->credit_ns -= cost_ns;
	budget->spent_ns = 0;
	budget->edge_ns = time_ns;
	budget->open = open;
	budget->settled = budget->settled || !open;
	budget->due_ns = time_ns + (uint64_t)(open ? draw_window_ns(budget) : draw_gap_ns(budget));
}
