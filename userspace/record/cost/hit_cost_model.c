#include "userspace/record/cost/hit_cost_model.h"

#include <math.h>

#define MEMORY_HITS 64
#define HALF_NS 900 /* of own time, with which a hit costs halfway between hot and cold */
#define TYPICAL_SHARE 0.60 /* of the way to cold, what the calibration says */
#define GAP_NS_MAX 50000 /* a hit after that finds all cold, however much longer it is */
#define PAUSE_NS 10000000 /* such a gap tells nothing of what the thread does */

/* Not fmin() and fmax(), which are calls: this is done for every record. */
static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static double positive(double a)
{
	return a > 0 ? a : 0;
}

static void hit_cost_model_learn(struct rls_hit_cost_model *model, double ran_ns,
				 const struct rls_wire_hit_totals *hit_totals)
{
	double hits = hit_totals->hits, weight;

	model->hits = smaller(model->hits + hits, hits < MEMORY_HITS ? MEMORY_HITS : hits);
	weight = hits / model->hits;
	model->ran_ns += weight * (smaller(ran_ns / hits, GAP_NS_MAX) - model->ran_ns);
	model->cost_ns += weight * (hit_totals->cost_ns / hits - model->cost_ns);
}

/* own + hot + range * own / (own + half) = ran, solved for own. */
static double own_ns(const struct rls_hit_cost_model *model, double excess_ns)
{
	double range_ns = excess_ns / TYPICAL_SHARE;
	double beyond_ns = model->ran_ns - (model->cost_ns - excess_ns);
	double b = HALF_NS + range_ns - beyond_ns;

	return beyond_ns > 0 ? (sqrt(b * b + 4 * HALF_NS * beyond_ns) - b) / 2 : 0;
}

double rls_hit_cost_model_cost(struct rls_hit_cost_model *model, double excess_ns, uint64_t time_ns,
			       const struct rls_wire_hit_totals *hit_totals)
{
	double since_ns = (double)model->since_ns, gap_ns = (double)time_ns - since_ns, own;

	if (!hit_totals->hits)
		return hit_totals->cost_ns;
	model->since_ns = time_ns;
	if (since_ns > 0 && gap_ns > 0 && gap_ns < PAUSE_NS)
		hit_cost_model_learn(model, positive(gap_ns - (double)hit_totals->off_cpu_ns),
				     hit_totals);
	if (!(model->hits > 0))
		return hit_totals->cost_ns;
	own = own_ns(model, excess_ns);
	return positive(hit_totals->cost_ns +
			hit_totals->hits * excess_ns * (own / (own + HALF_NS) / TYPICAL_SHARE - 1));
}
