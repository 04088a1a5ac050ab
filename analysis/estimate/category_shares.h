/* Category shares: what parts of some time are in which category, and how sure that is. Pure. */
#ifndef RLS_CATEGORY_SHARES_H
#define RLS_CATEGORY_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/timeline/untraced_state.h"

struct rls_category_shares {
	double of[RLS_CATEGORY_MAX];
	double error[RLS_CATEGORY_MAX]; /* half width */
	bool drawn; /* of samples, which nothing else was taken of */
};

/* By the weights of what samples seem to be in, so many of which were drawn. truth: how often that is so; NULL: it
 * always is, and samples that seem to be in nothing known say nothing. False, and *out untouched, when there is nothing to go by. */
bool rls_category_shares_by_samples(const struct rls_truth *truth, const uint64_t *weights,
				    double draws, struct rls_category_shares *out);

/* By the times of other time, so it is uncertain altogether. False, and *out untouched, when there was none. */
bool rls_category_shares_by_time(const uint64_t *ns, struct rls_category_shares *out);

/* All of it, for want of anything to go by. */
void rls_category_shares_by_nothing(enum rls_category category, struct rls_category_shares *out);

#endif
