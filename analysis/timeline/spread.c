#include <math.h>

#include "analysis/timeline/untraced_state.h"

/* So much running time says how dense transitions are. */
#define DENSITY_NS 5000000.0
/* And so many visits say how many transitions one has. */
#define LARGE_GROUP_VISITS 16
#define SMALL_GROUP_VISITS 8

static void add_extremes(struct rls_spread *spread, const struct rls_spread_unit *unit)
{
	struct rls_spread_piece *piece = &spread->piece;
	bool enough;

	piece->time_ns += unit->time_ns;
	enough = piece->time_ns >= DENSITY_NS;
	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		for (int to = 0; to < RLS_CATEGORY_MAX; to++) {
			double *least = &spread->least[from][to], *most = &spread->most[from][to];
			double rate;

			piece->count[from][to] += unit->count[from][to];
			rate = piece->count[from][to] / piece->time_ns;
			if (!enough)
				continue;
			*least = spread->pieces ? fmin(*least, rate) : rate;
			*most = fmax(*most, rate);
		}
	}
	if (!enough)
		return;
	spread->pieces++;
	*piece = (struct rls_spread_piece){0};
}

static void add_count(struct rls_spread *spread, int from, int to, double count, double share,
		      double length_ns)
{
	double rate = count / length_ns, last = spread->last.rate[from][to];

	spread->rate[from][to] += rate;
	spread->rate_squared[from][to] += rate * rate;
	spread->rate_by_share[from][to] += rate * share;
	spread->chance[from][to] += rate / length_ns;
	spread->rate_by_last[from][to] += rate * last;
	spread->rate_by_last_share[from][to] += rate * spread->last.share + last * share;
	spread->last.rate[from][to] = rate;
}

static void end_group(struct rls_spread_groups *groups)
{
	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		for (int to = 0; to < RLS_CATEGORY_MAX; to++) {
			double rate = groups->next.count[from][to] / groups->next.visits;
			double *least = &groups->least[from][to], *most = &groups->most[from][to];

			*least = groups->groups ? fmin(*least, rate) : rate;
			*most = fmax(*most, rate);
			groups->next.count[from][to] = 0;
		}
	}
	groups->next.visits = 0;
	groups->groups++;
}

static void add_to_groups(struct rls_spread_groups *groups, const struct rls_spread_unit *unit,
			  double group_visits)
{
	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		for (int to = 0; to < RLS_CATEGORY_MAX; to++)
			groups->next.count[from][to] += unit->count[from][to];
	}
	groups->next.visits += unit->visits;
	if (groups->next.visits >= group_visits)
		end_group(groups);
}

static void add_visits(struct rls_spread_visits *spread, const struct rls_spread_unit *unit)
{
	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		for (int to = 0; to < RLS_CATEGORY_MAX; to++) {
			double x = unit->count[from][to];

			spread->count[from][to] += x;
			spread->first[from][to] += unit->first ? x : 0;
			spread->squared[from][to] += x * x;
			spread->by_visits[from][to] += x * unit->visits;
		}
	}
	spread->visits += unit->visits;
	spread->first_visits += unit->first ? unit->visits : 0;
	spread->visits_squared += unit->visits * unit->visits;
	spread->time_ns += unit->time_ns;
	spread->units++;
	add_to_groups(&spread->large, unit, LARGE_GROUP_VISITS);
	add_to_groups(&spread->small, unit, SMALL_GROUP_VISITS);
}

void rls_spread_add(struct rls_spread *spread, const struct rls_spread_unit *unit)
{
	double share = unit->time_ns / unit->length_ns;

	add_visits(&spread->visits, unit);
	/* It waited all along. */
	if (!(unit->time_ns > 0))
		return;
	add_extremes(spread, unit);
	if (unit->first)
		return;
	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		for (int to = 0; to < RLS_CATEGORY_MAX; to++)
			add_count(spread, from, to, unit->count[from][to], share, unit->length_ns);
	}
	spread->share += share;
	spread->late_share += unit->late_ns / unit->length_ns;
	spread->share_squared += share * share;
	spread->share_by_last += share * spread->last.share;
	spread->last.share = share;
	spread->windows++;
}

void rls_spread_add_closed(struct rls_spread_closed *closed, double time_ns, double visits)
{
	closed->time_ns += time_ns;
	closed->visits += visits;
	closed->time_squared += time_ns * time_ns;
	closed->time_by_visits += time_ns * visits;
	closed->visits_squared += visits * visits;
	closed->pieces++;
}
