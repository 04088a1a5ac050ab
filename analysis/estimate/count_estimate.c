#include "analysis/estimate/count_estimate.h"

#include <math.h>

#include "analysis/base/student.h"

#define CONFIDENCE 0.95
/* Fewer do not show how they differ: an interval of any width would be made up. */
#define WINDOWS_MIN 5
/* So many meet what there is by themselves. */
#define WINDOWS_MANY 15
/* More likeness of neighbours leaves nothing to go by. */
#define ALIKE_MAX 0.7
/* Of so few groups of visits nothing is known of how they differ. */
#define GROUPS_MIN 3
/* Of the cost of hits, what its correction may be off by on a busy machine. */
#define CORRECTION_ERROR 0.6
/* Visits whose lengths differ so much from piece to piece are not of one kind. */
#define UNSTEADY 0.25
#define PIECES_MIN 5
/* Calls that take less of the time than that do not show in its length: only windows find more of them. */
#define CALLS_SHARE_MIN 0.05

/* --- what samples say -------------------------------------------------------------------- */

/* By how much more or less of the running time is in the category, as a share of what was traced of it. */
static double unlike_share(const struct rls_count_basis *basis, int category)
{
	double traced = basis->traced_share[category];
	double apart =
		fabs(basis->sampled_share[category] - traced) - basis->sampled_error[category];

	/* Python is what is left of all calls. */
	if (category == RLS_CATEGORY_PYTHON || !(apart > 0))
		return 0;
	return traced > 0 ? apart / traced : INFINITY;
}

/* What there is of calls that no window has met, where they take time. */
static double unlike_samples(const struct rls_count_basis *basis, int from, int to)
{
	return fmax(unlike_share(basis, from), unlike_share(basis, to));
}

/* --- by time ---------------------------------------------------------------------------- */

/* What windows say of one kind of transition, over the scopes of a pool. */
struct window_rates {
	double windows;
	double per_ns; /* of corrected running time */
	double error_per_ns; /* half width of the 95 % interval */
};

/* d = x/W - rate × t/W of each window, squared, and times that of the window before. */
static double residuals(const struct rls_spread *spread, int from, int to, double rate,
			double *with_last)
{
	*with_last = spread->rate_by_last[from][to] - rate * spread->rate_by_last_share[from][to] +
		     rate * rate * spread->share_by_last;
	return fmax(spread->rate_squared[from][to] - 2 * rate * spread->rate_by_share[from][to] +
			    rate * rate * spread->share_squared,
		    0);
}

/* A part of the time that so many windows have all missed may be this large, at 95 %. */
static double missed_share(double windows)
{
	return fmin(-log(1 - CONFIDENCE) / windows, 1);
}

/* A ratio of means over windows (Cochran, ch. 6), each of which is one instant. Bursts that last longer than
 * from one window to the next make neighbours alike: then there are fewer windows, in effect. What
 * all windows have missed has no residual; it is as far from the mean as the extremes are. */
static struct window_rates rates_of(const struct rls_spread *spread, int from, int to)
{
	struct window_rates out = {.windows = spread->windows, .error_per_ns = INFINITY};
	double with_last, squares, alike, drawn, missed;

	if (spread->windows < WINDOWS_MIN || spread->share <= 0)
		return out;
	out.per_ns = spread->rate[from][to] / spread->share;
	squares = residuals(spread, from, to, out.per_ns, &with_last);
	alike = squares > 0 ? fmin(fmax(with_last / squares, 0), ALIKE_MAX) : 0;
	alike = (1 + alike) / (1 - alike);
	squares *= alike * out.windows / (out.windows - 1);
	squares = fmax(squares, spread->chance[from][to]);
	drawn = rls_student_quantile(CONFIDENCE, fmax(out.windows / alike, 2) - 1) * sqrt(squares) /
		spread->share;
	missed = missed_share(out.windows) *
		 fmax(spread->most[from][to] - out.per_ns, out.per_ns - spread->least[from][to]);
	out.error_per_ns = hypot(drawn, missed);
	return out;
}

/* Before its first transition in a window a thread ran, or waited. The more it waits, the less is known of which it
 * was. Then the rate is between those with and without this time. */
static void allow_for_late(const struct rls_count_basis *basis, struct window_rates *rates)
{
	const struct rls_spread *spread = basis->spread;
	double seen = fmax(spread->share - spread->late_share, 0);
	double waits = basis->waits, most;

	if (isinf(rates->error_per_ns) || rates->per_ns <= 0 || spread->late_share <= 0)
		return;
	most = seen > 0 ? rates->per_ns * spread->share / seen : INFINITY;
	if (isinf(most) && waits > 0)
		rates->error_per_ns = INFINITY;
	if (isinf(most))
		return;
	rates->error_per_ns = hypot(rates->error_per_ns, fmin(waits, 0.5) * (most - rates->per_ns));
	rates->per_ns += waits * (most - rates->per_ns);
}

static struct rls_count_estimate by_time(const struct rls_count_basis *basis, int from, int to)
{
	struct window_rates rates = rates_of(basis->spread, from, to);
	double unlike = basis->spread->windows < WINDOWS_MANY ? unlike_samples(basis, from, to) : 0;
	double apart = hypot(basis->ran_error, unlike);

	allow_for_late(basis, &rates);
	return (struct rls_count_estimate){
		.count = rates.per_ns * basis->ran_ns,
		.error = hypot(rates.error_per_ns, apart * rates.per_ns) * basis->ran_ns,
	};
}

/* --- by visits -------------------------------------------------------------------------- */

/* Of the ratio of transitions to visits, by how units differ; relative to the ratio's denominator. */
static double drawn_error(const struct rls_spread *spread, int from, int to, double ratio)
{
	const struct rls_spread_visits *v = &spread->visits;
	double squares = fmax(v->squared[from][to] - 2 * ratio * v->by_visits[from][to] +
				      ratio * ratio * v->visits_squared,
			      0);

	/* One visit is cut at each end of a unit at most, and chance has at least that. */
	squares = fmax(squares * v->units / fmax(v->units - 1.0, 1), ratio * ratio);
	/* The first stretch is one stretch of samples, whatever number of pieces it was cut into. */
	return rls_student_quantile(CONFIDENCE, fmax(spread->windows, 1)) * sqrt(squares) /
	       v->visits;
}

/* Windows have what comes later than the first stretch. */
static double later_error(const struct rls_spread_visits *v, int from, int to)
{
	double later = v->visits - v->first_visits;

	if (!(later > 0) || !(v->first_visits > 0))
		return 0;
	return fabs((v->count[from][to] - v->first[from][to]) / later -
		    v->first[from][to] / v->first_visits);
}

/* What calls take of traced time. */
static double calls_share(const struct rls_count_basis *basis, int from, int to)
{
	double share = 1;

	if (from != RLS_CATEGORY_PYTHON)
		share = fmin(share, basis->traced_share[from]);
	if (to != RLS_CATEGORY_PYTHON)
		share = fmin(share, basis->traced_share[to]);
	return share;
}

/* How pieces of the time between windows differ in the length of their visits: the standard deviation, as a share. No
 * probe has a part in it. */
static double unsteadiness(const struct rls_spread_closed *closed)
{
	double length_ns, squares;

	if (closed->pieces < PIECES_MIN || !(closed->visits > 0) || !(closed->time_ns > 0))
		return INFINITY;
	length_ns = closed->time_ns / closed->visits;
	squares = closed->time_squared - 2 * length_ns * closed->time_by_visits +
		  length_ns * length_ns * closed->visits_squared;
	return sqrt(fmax(squares, 0) / closed->pieces) / (closed->time_ns / closed->pieces);
}

/* By how much longer or shorter visits between windows are, as a share of traced ones. The correction of these may be off, which
 * explains it where all visits between windows are alike. Where they are not, all of it may be in calls, and what the correction
 * may hide too. */
static double unlike_length(const struct rls_count_basis *basis, int from, int to)
{
	const struct rls_spread_visits *v = &basis->spread->visits;
	double length = fabs(basis->ran_ns / basis->visits / (v->time_ns / v->visits) - 1);
	double unsteady = fmin(unsteadiness(&basis->spread->closed) / UNSTEADY, 1);
	double off = CORRECTION_ERROR * basis->cost_share;
	double calls = fmax(calls_share(basis, from, to), CALLS_SHARE_MIN);
	double apart = fmax(length - off * (1 - unsteady), 0);

	return hypot(unsteady * UNSTEADY, hypot(apart, unsteady * off) / calls);
}

/* As a share of what there is: by how much visits between windows are other than traced ones. */
static double otherness(const struct rls_count_basis *basis, int from, int to)
{
	return hypot(unlike_length(basis, from, to), unlike_samples(basis, from, to));
}

static struct rls_count_estimate by_visits(const struct rls_count_basis *basis, int from, int to)
{
	const struct rls_spread *spread = basis->spread;
	const struct rls_spread_visits *v = &spread->visits;
	const struct rls_spread_groups *groups =
		v->large.groups < GROUPS_MIN ? &v->small : &v->large;
	double ratio, missed, error;

	if (groups->groups < GROUPS_MIN ||
	    (calls_share(basis, from, to) < CALLS_SHARE_MIN && spread->windows < WINDOWS_MIN) ||
	    !(v->time_ns > 0) || !(basis->visits > 0) || !(basis->ran_ns > 0))
		return (struct rls_count_estimate){.error = INFINITY};
	ratio = v->count[from][to] / v->visits;
	missed = missed_share(spread->windows + (v->first_visits > 0)) *
		 fmax(groups->most[from][to] - ratio, ratio - groups->least[from][to]);
	error = hypot(drawn_error(spread, from, to, ratio), missed);
	error = hypot(error, later_error(v, from, to));
	error = hypot(error, otherness(basis, from, to) * ratio);
	return (struct rls_count_estimate){ratio * basis->visits, error * basis->visits, true};
}

struct rls_count_estimate rls_estimate_count(const struct rls_count_basis *basis, int from, int to)
{
	struct rls_count_estimate time = by_time(basis, from, to),
				  visits = by_visits(basis, from, to);

	/* Where they differ, one of them is wrong. */
	if (isfinite(visits.error))
		time.error = hypot(time.error, time.count - visits.count);
	return visits.error < time.error ? visits : time;
}
