/* Untraced state: what is kept of a thread's time while its boundaries were not traced, until it
 * is apportioned (analysis/estimate/untraced_time.h). Pure.
 *
 * Each sample has an inferred category. While tracing is on as well, the traced category beside it
 * shows how far inferred categories can be trusted.
 */
#ifndef RLS_UNTRACED_STATE_H
#define RLS_UNTRACED_STATE_H

#include <stdint.h>

#include "analysis/correct/overhead_correction.h"
#include "analysis/event/category.h"

/* Looks by what they guessed. */
struct rls_category_samples {
	uint64_t count[RLS_CATEGORY_MAX];
	uint64_t ns[RLS_CATEGORY_MAX]; /* of waits */
};

/* Of the counts x of the windows and their lengths t: what their spread takes. */
struct rls_spread {
	uint64_t counted[RLS_CATEGORY_MAX]
			[RLS_CATEGORY_MAX]; /* x summed up, up to the last window */
	double counts_squared[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];
	double counts_by_time[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];
	double time_squared;
	uint64_t timed_ns;
	uint32_t windows;
};

/* A scope's, made when it first has closed time. */
struct rls_untraced {
	struct rls_cell cell; /* the closed time, in no category yet */
	struct rls_category_samples running, waiting;
	struct rls_spread spread;
	uint32_t window; /* the last one that had time in the scope */
};

/* What the number and the time of CUDA calls are to be taken times, and by what share of the
 * products these may be off. count 0: all calls were seen. An infinite error: nothing is known. */
struct rls_calls_scale {
	float count, time;
	float count_error, time_error;
};

/* Guesses held against the truth. Those of one moment have much in common: what the thread is at
 * then is easier or harder to guess. So how moments differ is kept too. */
struct rls_truth {
	uint64_t count[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX]; /* [guess][category] */
	/* Of the moments that are over, x of each count and n of each guess's. */
	double squared[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX]; /* Σ x² */
	double by_looks[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX]; /* Σ x n */
	double looks_squared[RLS_CATEGORY_MAX];
	uint32_t moments[RLS_CATEGORY_MAX]; /* n > 0 */
	uint32_t now[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];
	uint64_t since_ns;
	uint32_t window;
};

/* A look at a running thread of this category, in the window of this number. */
void rls_truth_add(struct rls_truth *truth, enum rls_category guess, enum rls_category category,
		   uint64_t time_ns, uint32_t window);

/* Books the looks of the moment that is over; before shares are read. */
void rls_truth_end_moment(struct rls_truth *truth);

/* P(category | guess), and from how many looks it is known. */
double rls_truth_share(const struct rls_truth *truth, enum rls_category guess,
		       enum rls_category category, double *known);

/* The variance of that. */
double rls_truth_variance(const struct rls_truth *truth, enum rls_category guess,
			  enum rls_category category);

/* A look at a thread of this scope in closed time. */
void rls_category_samples_add(struct rls_category_samples *looks, enum rls_category guess,
			      uint64_t ns);

/* Over all categories. */
uint64_t rls_category_samples_sum(const uint64_t *values);

#endif
