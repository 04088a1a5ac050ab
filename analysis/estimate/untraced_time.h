/* Shares: a thread's time while its boundaries were not traced, and what becomes of it.
 *
 *     windows      ▁▁▁▁▁▁████▁▁▁▁▁▁▁▁▁▁▁▁███▁▁▁▁▁▁▁▁       traced in between closed stretches
 *     looks        · · · ····  · · · · ·  ··· · · · ·      a sampler's guesses at the category
 *                        └── here the truth is known too
 *
 * Operations and phases are known all the time, so closed time belongs to a scope, and only its
 * category is open. It is divided by the looks taken in the scope's operation and phase:
 *
 *     share of c = Σ over guesses g of (looks that guessed g / looks) × P(c | g)
 *
 * P(c | g) is how often c was true where g was guessed while tracing could tell (two-phase, or
 * double, sampling; Cochran, Sampling Techniques, ch. 12), g itself where that is unknown.
 * Running time is divided by looks at the running thread, waiting time by looks at waits. An
 * operation never looked at goes by its traced time, else by the thread's other looks; one in which
 * the thread never ran by looks at its waits in others, for those are the same waits.
 *
 * Boundaries that are cheap to trace stay on in closed time and still tell of their calls, but no
 * figure is exact for that: inside such a call a thread may go on through a boundary that is off
 * (back into Python, into another library), and outside of it be in the same category through
 * another one. It would be for a category all of whose boundaries stay on and out of which none
 * leads that does not; which those are is not in the trace. So its calls are scaled, and its time
 * is divided, like all others.
 *
 * The error of a share is 1.96 standard deviations: of drawing the looks, and of having learnt
 * P from so many (as draws, or by how P differs between moments when that is more; Cochran, ch. 11).
 * Counts of transitions are scaled by corrected running time (a ratio estimate
 * over windows, ibid. ch. 6): error likewise, from how the windows differ, and from what the cost of
 * hits, which corrected windows are free of, is uncertain by. CUDA calls by name are as many more
 * as transitions are, and take as much of all time together as `cuda_api` does.
 */
#ifndef RLS_UNTRACED_TIME_H
#define RLS_UNTRACED_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/event/category.h"
#include "analysis/correct/overhead_correction.h"

struct rls_scope;
struct rls_thread;
struct rls_timeline;

/* Looks by what they guessed. */
struct rls_looks {
	uint64_t count[RLS_CATEGORY_MAX];
	uint64_t ns[RLS_CATEGORY_MAX];  /* of waits */
};

/* Of the counts x of the windows and their lengths t: what their spread takes. */
struct rls_spread {
	uint64_t counted[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];  /* x summed up, up to the last window */
	double counts_squared[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];
	double counts_by_time[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];
	double time_squared;
	uint64_t timed_ns;
	uint32_t windows;
};

/* A scope's, made when it first has closed time. */
struct rls_unseen {
	struct rls_cell cell;           /* the closed time, in no category yet */
	struct rls_looks running, waiting;
	struct rls_spread spread;
	uint32_t window;                /* the last one that had time in the scope */
};

/* Guesses held against the truth. Those of one moment have much in common: what the thread is at
 * then is easier or harder to guess. So how moments differ is kept too. */
struct rls_truth {
	uint64_t count[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];    /* [guess][category] */
	/* Of the moments that are over, x of each count and n of each guess's. */
	double squared[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];    /* Σ x² */
	double by_looks[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];   /* Σ x n */
	double looks_squared[RLS_CATEGORY_MAX];
	uint32_t moments[RLS_CATEGORY_MAX];     /* n > 0 */
	uint32_t now[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];
	uint64_t since_ns;
	uint32_t window;
};

/* A look at a running thread of this category, in the window of this number. */
void rls_truth_add(struct rls_truth *truth, enum rls_category guess, enum rls_category category,
		   uint64_t time_ns, uint32_t window);

/* P(category | guess). */
double rls_truth_share(const struct rls_truth *truth, enum rls_category guess,
		       enum rls_category category);

/* The scope's, made if it is not there. NULL: no memory. */
struct rls_unseen *rls_scope_unseen(struct rls_scope *scope);

/* Before traced time is booked in a scope, in the window of this number. */
void rls_unseen_window(struct rls_scope *scope, uint32_t window);

/* A look at a thread of this scope in closed time. */
void rls_looks_add(struct rls_looks *looks, enum rls_category guess, uint64_t ns);

/* Nothing more will come: turns the closed time of all of the thread's scopes into time of their
 * cells, and scales their transitions. 0, or -ENOMEM. */
int rls_shares_settle(struct rls_thread *thread);

#endif
