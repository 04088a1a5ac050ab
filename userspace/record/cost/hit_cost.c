#include "userspace/record/cost/hit_cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/base/grow.h"

/* A mean of hits that none has without a single step among them. */
#define STEPPED_NS 4000

void rls_hit_cost_clear(struct rls_hit_cost_state *thread)
{
	rls_edge_queue_clear(&thread->edges);
}

/* ---- factors ---- */

int rls_hit_cost_set_factor(struct rls_hit_cost_factors *factors, rls_string_id operation,
			    double factor)
{
	if (rls_grow(&factors->operations, &factors->room, factors->count))
		return -ENOMEM;
	factors->operations[factors->count++] = (struct rls_operation_factor){operation, factor};
	return 0;
}

int rls_hit_cost_copy_factors(struct rls_hit_cost_factors *factors,
			      const struct rls_hit_cost_factors *from)
{
	rls_hit_cost_forget_factors(factors);
	factors->factor = from->factor;
	for (size_t i = 0; i < from->count; i++) {
		int r = rls_hit_cost_set_factor(factors, from->operations[i].operation,
						from->operations[i].factor);

		if (r)
			return r;
	}
	return 0;
}

void rls_hit_cost_forget_factors(struct rls_hit_cost_factors *factors)
{
	free(factors->operations);
	*factors = (struct rls_hit_cost_factors){0};
}

static const struct rls_operation_factor *find_own(const struct rls_hit_cost_factors *factors,
						   rls_string_id operation)
{
	for (size_t i = 0; i < factors->count; i++) {
		if (factors->operations[i].operation == operation)
			return &factors->operations[i];
	}
	return NULL;
}

static double find_factor(const struct rls_charged *charged, uint64_t time_ns)
{
	const struct rls_hit_cost_factors *factors = charged->factors;
	const struct rls_operation_factor *own = NULL;
	struct rls_hit_cost_state *source = charged->source;
	struct rls_queued_edge edge;

	if (!factors->count)
		return factors->factor;
	while (source && source == charged->thread &&
	       rls_edge_queue_take(&source->edges, time_ns, &edge))
		source->operation = edge.now;
	if (source)
		own = find_own(factors, source->operation);
	return own ? own->factor : factors->factor;
}

/* ---- charging ---- */

void rls_hit_cost_begin(struct rls_hit_cost_state *thread, rls_string_id operation)
{
	rls_edge_queue_clear(&thread->edges);
	thread->operation = operation;
}

int rls_hit_cost_turn(const struct rls_hit_cost_factors *factors, struct rls_hit_cost_state *thread,
		      const struct rls_queued_edge *edge)
{
	return factors->count ? rls_edge_queue_add(&thread->edges, edge) : 0;
}

uint32_t rls_hit_cost(const struct rls_charged *charged, double excess_ns,
		      const struct rls_wire_hit_totals *hit_totals, enum rls_category category,
		      uint64_t time_ns)
{
	struct rls_hit_cost_state *thread = charged->thread;
	double factor = charged->factors ? find_factor(charged, time_ns) : 0;
	double own_ns =
		thread ? rls_hit_cost_model_cost(&thread->model, excess_ns, time_ns, hit_totals)
		       : hit_totals->cost_ns;
	uint64_t cost_ns = (uint64_t)round(factor > 0 ? factor * own_ns : own_ns);

	if (thread)
		rls_cost_carryover_off_cpu(&thread->carryover, hit_totals->off_cpu_ns);
	if (thread && hit_totals->hits)
		cost_ns = rls_cost_carryover_charge(&thread->carryover, category, time_ns, cost_ns,
						    hit_totals->cost_ns / hit_totals->hits >
							    STEPPED_NS);
	return cost_ns < UINT32_MAX ? (uint32_t)cost_ns : UINT32_MAX;
}

void rls_hit_cost_sample(struct rls_hit_cost_state *thread, enum rls_category category,
			 uint32_t cost_ns)
{
	thread->carryover.owed_ns[category] += cost_ns;
}
