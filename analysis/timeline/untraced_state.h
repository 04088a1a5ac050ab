/* Untraced state: what is kept of a thread's time while its boundaries were not traced, until it
 * is apportioned (analysis/estimate/untraced_time.h). Pure.
 *
 * Each sample has an inferred category. While tracing is on as well, the traced category beside it
 * shows how far inferred categories can be trusted.
 */
#ifndef RLS_UNTRACED_STATE_H
#define RLS_UNTRACED_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/correct/overhead_correction.h"
#include "analysis/event/category.h"

/* Category samples by what they inferred. */
struct rls_category_samples {
	uint64_t count[RLS_CATEGORY_MAX];
	uint64_t ns[RLS_CATEGORY_MAX]; /* of waits */
};

#define RLS_TRANSITIONS_BY [RLS_CATEGORY_MAX][RLS_CATEGORY_MAX]

/* What windows at random instants say of a scope's transitions: of each window i the number x of them,
 * the corrected running time t in the scope, and the window's length W, corrected too. Windows are of
 * different lengths, the shorter the more there is in them; so each counts as one instant, by x/W and t/W.
 * The first stretch is at no random instant, and is only in the extremes. */
struct rls_spread {
	uint64_t counted
		RLS_TRANSITIONS_BY; /* x summed up, the first stretch too, up to the last window */
	double rate RLS_TRANSITIONS_BY; /* Σ x/W */
	double rate_squared RLS_TRANSITIONS_BY; /* Σ (x/W)² */
	double rate_by_share RLS_TRANSITIONS_BY; /* Σ (x/W)(t/W) */
	double chance RLS_TRANSITIONS_BY; /* Σ x/W²: the variance, were it chance alone */
	double least RLS_TRANSITIONS_BY, most RLS_TRANSITIONS_BY; /* x/t of pieces */
	struct rls_spread_piece {
		double count RLS_TRANSITIONS_BY;
		double time_ns;
	} piece; /* that is too short to say anything yet */
	double share, share_squared; /* Σ t/W, Σ (t/W)² */
	double late_share; /* of the share, what lies before the first transition in its window */
	/* With the window before. */
	struct rls_spread_last {
		double rate RLS_TRANSITIONS_BY;
		double share;
	} last;
	double rate_by_last RLS_TRANSITIONS_BY; /* Σ (x/W)(x'/W') */
	double rate_by_last_share RLS_TRANSITIONS_BY; /* Σ (x/W)(t'/W') + (x'/W')(t/W) */
	double share_by_last; /* Σ (t/W)(t'/W') */
	uint32_t windows; /* but the first stretch */
	uint32_t pieces; /* in the extremes */
	struct rls_spread_visits {
		/* Of windows, and of pieces of the first stretch: x transitions in v visits. */
		double count RLS_TRANSITIONS_BY,
			first RLS_TRANSITIONS_BY; /* Σ x; of the first stretch */
		double squared RLS_TRANSITIONS_BY; /* Σ x² */
		double by_visits RLS_TRANSITIONS_BY; /* Σ x v */
		double visits, first_visits, visits_squared;
		double time_ns; /* corrected running time in them */
		uint32_t units;
		/* Of small groups there are more, which differ more by chance. */
		struct rls_spread_groups {
			double least RLS_TRANSITIONS_BY, most RLS_TRANSITIONS_BY; /* x/v */
			uint32_t groups;
			struct {
				double count RLS_TRANSITIONS_BY;
				double visits;
			} next; /* of too few visits to say anything yet */
		} large, small;
	} visits;
	/* Of pieces of the time between windows: t running in v visits. Their costs are nothing. */
	struct rls_spread_closed {
		double time_ns, visits; /* Σ t, Σ v */
		double time_squared, time_by_visits, visits_squared; /* Σ t², Σ t v, Σ v² */
		uint32_t pieces;
	} closed;
};

/* What one window, or one piece of the first stretch, had of a scope. Times are corrected. */
struct rls_spread_unit {
	uint32_t count RLS_TRANSITIONS_BY;
	double visits;
	double time_ns, late_ns; /* running; of it, before the thread's first transition */
	double length_ns;
	bool first; /* a piece of the first stretch */
};

void rls_spread_add(struct rls_spread *spread, const struct rls_spread_unit *unit);
void rls_spread_add_closed(struct rls_spread_closed *closed, double time_ns, double visits);

/* What a scope had in one window. */
struct rls_window_part {
	uint32_t number; /* 0: none */
	uint32_t count RLS_TRANSITIONS_BY;
	uint32_t visits; /* that began in it */
	struct rls_cell seen;
	struct rls_cell late; /* before the thread's first transition in the window */
};

/* What it had in one piece of the time between windows. */
struct rls_closed_part {
	uint32_t number; /* 0: none */
	uint32_t visits;
	struct rls_cell cell;
};
#define RLS_CLOSED_PIECE_NS 50000000ULL

#define RLS_WINDOWS_KEPT 4

/* A scope's, made when it first has closed time, or time in a later window. */
struct rls_untraced {
	struct rls_cell cell; /* the closed time, in no category yet */
	/* In windows, from their beginning to the thread's first transition: in no category either, but
	 * it is known that there were none. */
	struct rls_cell late;
	struct rls_cell unreported; /* time in which probes were on, and had reported no category */
	struct rls_category_samples running, waiting; /* in all of these */
	struct rls_window_part parts[RLS_WINDOWS_KEPT];
	struct rls_closed_part closed[RLS_WINDOWS_KEPT];
	struct rls_spread spread; /* of what is no part any more */
	uint32_t last; /* number of the latest part; 0: none yet */
};

/* Of one scope in traced time, or of whole threads. */
struct rls_sample_pair {
	struct rls_category_samples running, waiting;
};

/* What the number and the time of CUDA calls are to be taken times, and by what share of the
 * products these may be off. count 0: all calls were seen. An infinite error: nothing is known. */
struct rls_calls_scale {
	float count, time;
	float count_error, time_error;
	float cost; /* share by which the number changes if no hit had cost anything */
};

/* Inferred categories held against the truth. Those of one moment have much in common: what the thread is at
 * then is easier or harder to infer. So how moments differ is kept too. */
struct rls_truth {
	uint64_t count[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX]; /* [inferred][category] */
	/* Of the moments that are over, x of each count and n of each inferred category's. */
	double squared[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX]; /* Σ x² */
	double by_samples[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX]; /* Σ x n */
	double samples_squared[RLS_CATEGORY_MAX];
	uint32_t moments[RLS_CATEGORY_MAX]; /* n > 0 */
	uint32_t now[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];
	uint64_t since_ns;
	uint32_t window;
};

/* A sample of a running thread of this category, in the window of this number. */
void rls_truth_add(struct rls_truth *truth, enum rls_category inferred, enum rls_category category,
		   uint64_t time_ns, uint32_t window);

/* Adds the samples of the moment that is over; before shares are read. */
void rls_truth_end_moment(struct rls_truth *truth);

/* P(category | inferred), and from how many samples it is known. */
double rls_truth_share(const struct rls_truth *truth, enum rls_category inferred,
		       enum rls_category category, double *known);

/* The variance of that. */
double rls_truth_variance(const struct rls_truth *truth, enum rls_category inferred,
			  enum rls_category category);

/* A sample of a thread of this scope in closed time. */
void rls_category_samples_add(struct rls_category_samples *samples, enum rls_category inferred,
			      uint64_t ns);

/* Of waits, by how many draws their shares are known. A sample stands for waits of a few milliseconds together, by the
 * last of them; a longer one is known for all its length. */
double rls_category_samples_waits(const struct rls_category_samples *waits);

/* Over all categories. */
uint64_t rls_category_samples_sum(const uint64_t *values);

#endif
