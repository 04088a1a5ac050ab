#include "analysis/estimate/category_shares.h"

#include <math.h>

#define SIGMAS 1.96

/* weight: of each inferred category, summing to 1, drawn so many times. truth NULL: they are taken as true. */
static void judge(const struct rls_truth *truth, const double *weight, double draws,
		  struct rls_category_shares *out)
{
	for (int c = 0; c < RLS_CATEGORY_MAX; c++) {
		double share = truth ? 0 : weight[c], variance = 0, about;

		for (int g = 0; truth && g < RLS_CATEGORY_MAX; g++) {
			double known, p = rls_truth_share(truth, g, c, &known);

			share += weight[g] * p;
			if (known > 0)
				variance += weight[g] * weight[g] * rls_truth_variance(truth, g, c);
		}
		about = (share * draws + 1) / (draws + 2); /* none of few is not never */
		variance += about * (1 - about) / (draws + 1);
		out->of[c] = share;
		out->error[c] = fmin(SIGMAS * sqrt(variance), 1);
	}
}

bool rls_category_shares_by_samples(const struct rls_truth *truth, const uint64_t *weights,
				    double draws, struct rls_category_shares *out)
{
	double total = (double)rls_category_samples_sum(weights), weight[RLS_CATEGORY_MAX];
	uint64_t nothing = truth ? 0 : weights[RLS_CATEGORY_UNKNOWN]; /* found: nothing inferred */

	total -= (double)nothing;
	if (total <= 0)
		return false;
	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		weight[i] = (double)weights[i] / total;
	if (nothing)
		weight[RLS_CATEGORY_UNKNOWN] = 0;
	judge(truth, weight, draws, out);
	return true;
}

bool rls_category_shares_by_time(const uint64_t *ns, struct rls_category_shares *out)
{
	double total = (double)rls_category_samples_sum(ns);

	for (int i = 0; total > 0 && i < RLS_CATEGORY_MAX; i++) {
		out->of[i] = (double)ns[i] / total;
		out->error[i] = fmax(out->of[i], 1 - out->of[i]);
	}
	return total > 0;
}

void rls_category_shares_by_nothing(enum rls_category category, struct rls_category_shares *out)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		out->of[i] = i == (int)category;
		out->error[i] = 1;
	}
}
