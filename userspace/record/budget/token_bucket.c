#include "userspace/record/budget/token_bucket.h"

#include <math.h>

#include "userspace/base/jitter.h"

/* A window: tracing in it costs so many times what its edges do, so that there are many. Its
 * length is drawn before it begins: a window that ended because of the hits in it would see too
 * little of what is expensive. */
#define WINDOW_NS_MIN 20e6
#define WINDOW_NS_MAX 60e6
#define WINDOW_WORTH 1.0
#define WINDOW_SPREAD 0.5 /* lengths are even within this share around it */
#define GAP_NS_MIN 10e6
#define GAP_NS_MAX 3e9 /* rare windows are better than none */
#define GAP_MEANS_MAX 4.0
#define GAP_FIXED 0.5 /* of the mean: two windows in a row are a burden at once */
#define DEBT_SPANS 0.5 /* a window ends early when credit is so far below zero */
#define FIRST_KEEPS 0.4 /* of the first span's credit, for windows later in it */
#define DEBT_SPANS_MAX 1.0 /* what has gone wrong for once is not paid back for ever */
#define LOAN_SHARE_MAX 0.75 /* of what is earned goes into paying a loan back */
#define RATE_KEEP 0.9 /* weight of what was known of windows' rate before */
#define CLOSED_MEMORY_NS 5e9
/* A target that costs this share of the budget with everything on needs no windows. */
#define CHEAP_SHARE 0.5

static double random_share(struct rls_token_bucket *budget)
{
	return (double)(rls_random_next(&budget->random) >> 11) / (double)(1ULL << 53);
}

static double full(const struct rls_token_bucket *budget)
{
	return budget->share * (double)RLS_BUDGET_SPAN_NS;
}

void rls_token_bucket_start(struct rls_token_bucket *budget, double share, uint64_t time_ns,
			    uint64_t seed)
{
	*budget = (struct rls_token_bucket){
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
static double token_bucket_growth(const struct rls_token_bucket *budget)
{
	if (budget->at_ns - budget->start_ns < RLS_BUDGET_SPAN_NS)
		return 0;
	return budget->loan_ns > 0 ? budget->share - budget->repaid_share : budget->share;
}

void rls_token_bucket_lend(struct rls_token_bucket *budget, double cost_ns)
{
	budget->loan_ns += cost_ns;
	budget->repaid_share =
		fmin(budget->loan_ns / (double)(RLS_BUDGET_LOAN_NS - RLS_BUDGET_SPAN_NS),
		     LOAN_SHARE_MAX * budget->share);
}

static void token_bucket_learn(double *rate, double seen, double keep)
{
	*rate = *rate > 0 ? keep * *rate + (1 - keep) * seen : seen;
}

static double window_ns(const struct rls_token_bucket *budget)
{
	double worth_ns = budget->open_rate > 0
				  ? WINDOW_WORTH * budget->switch_ns / budget->open_rate
				  : WINDOW_NS_MAX;

	return fmin(fmax(worth_ns, WINDOW_NS_MIN), WINDOW_NS_MAX);
}

/* The gap at which windows cost what is left of the budget, drawn at random around it. */
static double draw_gap_ns(struct rls_token_bucket *budget)
{
	/* Credit is used up, and debt paid back, over a span. */
	double free_rate = token_bucket_growth(budget) +
			   budget->credit_ns / (double)RLS_BUDGET_SPAN_NS - budget->closed_rate;
	double cost_ns = window_ns(budget) * budget->open_rate + budget->switch_ns;
	double mean_ns = GAP_NS_MAX;
	double gap_ns;

	if (free_rate > 0)
		mean_ns = cost_ns / free_rate - window_ns(budget);
	mean_ns = fmin(fmax(mean_ns, GAP_NS_MIN), GAP_NS_MAX);
	gap_ns = (GAP_FIXED - (1 - GAP_FIXED) * log(1 - random_share(budget))) * mean_ns;
	return fmin(fmax(gap_ns, GAP_NS_MIN), GAP_MEANS_MAX * mean_ns);
}

static double draw_window_ns(struct rls_token_bucket *budget)
{
	return window_ns(budget) * (1 + WINDOW_SPREAD * (2 * random_share(budget) - 1));
}

static enum rls_token_bucket_step step_when_open(const struct rls_token_bucket *budget)
{
	if (!budget->first_stretch_over)
		return budget->credit_ns > FIRST_KEEPS * full(budget) ? RLS_BUDGET_STAY
								      : RLS_BUDGET_CLOSE;
	if (budget->credit_ns < -DEBT_SPANS * full(budget))
		return RLS_BUDGET_CLOSE;
	if (budget->at_ns < budget->due_ns)
		return RLS_BUDGET_STAY;
	return budget->credit_ns < 0 || budget->open_rate > CHEAP_SHARE * budget->share
		       ? RLS_BUDGET_CLOSE
		       : RLS_BUDGET_STAY;
}

/* Credit above the lowest with which a window is not ended early for what it is expected to cost;
 * where a budget is too small for that, all there can be. */
static double needed_ns(const struct rls_token_bucket *budget)
{
	double cost_ns = window_ns(budget) * budget->open_rate + budget->switch_ns;

	return fmin(cost_ns, DEBT_SPANS * full(budget));
}

static void earn(struct rls_token_bucket *budget, uint64_t time_ns)
{
	double passed_ns = (double)(time_ns - budget->at_ns), grown = token_bucket_growth(budget);

	budget->credit_ns += grown * passed_ns;
	if (grown > 0 && budget->loan_ns > 0)
		budget->loan_ns -= budget->repaid_share * passed_ns;
	budget->at_ns = time_ns;
}

enum rls_token_bucket_step rls_token_bucket_tick(struct rls_token_bucket *budget, uint64_t time_ns,
						 double cost_ns)
{
	if (time_ns > budget->at_ns)
		earn(budget, time_ns);
	budget->spent_ns += cost_ns;
	budget->credit_ns = fmin(budget->credit_ns - cost_ns, full(budget));
	budget->credit_ns = fmax(budget->credit_ns, -DEBT_SPANS_MAX * full(budget));
	if (budget->open)
		return step_when_open(budget);
	if (time_ns < budget->due_ns)
		return RLS_BUDGET_STAY;
	if (budget->credit_ns >= needed_ns(budget) - DEBT_SPANS * full(budget))
		return RLS_BUDGET_OPEN;
	/* When there is enough depends on what the target does: beginning right then would keep step with it. */
	budget->due_ns = time_ns + (uint64_t)draw_gap_ns(budget);
	return RLS_BUDGET_STAY;
}

void rls_token_bucket_charge_late(struct rls_token_bucket *budget, double cost_ns)
{
	budget->credit_ns -= cost_ns;
}

void rls_token_bucket_switched(struct rls_token_bucket *budget, bool open, uint64_t time_ns,
			       double cost_ns)
{
	double lasted_ns = time_ns > budget->edge_ns ? (double)(time_ns - budget->edge_ns) : 0;

	if (lasted_ns > 0 && budget->open)
		token_bucket_learn(&budget->open_rate, budget->spent_ns / lasted_ns, RATE_KEEP);
	else if (lasted_ns > 0)
		token_bucket_learn(&budget->closed_rate, budget->spent_ns / lasted_ns,
				   CLOSED_MEMORY_NS / (CLOSED_MEMORY_NS + lasted_ns));
	if (cost_ns > 0)
		token_bucket_learn(&budget->switch_ns, 2 * cost_ns, RATE_KEEP);
	budget->credit_ns -= cost_ns;
	budget->spent_ns = 0;
	budget->edge_ns = time_ns;
	budget->open = open;
	budget->first_stretch_over = budget->first_stretch_over || !open;
	budget->due_ns = time_ns + (uint64_t)(open ? draw_window_ns(budget) : draw_gap_ns(budget));
}

void rls_token_bucket_calmed(struct rls_token_bucket *budget, uint64_t time_ns, double cost_ns)
{
	budget->credit_ns -= cost_ns;
	budget->spent_ns = 0;
	budget->edge_ns = time_ns;
	budget->due_ns = time_ns + (uint64_t)draw_gap_ns(budget);
}
