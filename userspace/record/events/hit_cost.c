#include "userspace/record/events/hit_cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/base/grow.h"

/* A mean of hits that none has without a single step among them. */
#define STEPPED_NS 4000

int rls_charge_set_factor(struct rls_living_process *process, rls_string_id operation,
			  double factor)
{
	if (rls_grow(&process->factors, &process->factor_room, process->factor_count))
		return -ENOMEM;
	process->factors[process->factor_count++] =
		(struct rls_operation_factor){ operation, factor };
	return 0;
}

int rls_charge_copy_factors(struct rls_living_process *process,
			    const struct rls_living_process *from)
{
	rls_charge_forget_factors(process);
	process->cost_factor = from->cost_factor;
	for (size_t i = 0; i < from->factor_count; i++) {
		int r = rls_charge_set_factor(process, from->factors[i].operation,
					      from->factors[i].factor);

		if (r)
			return r;
	}
	return 0;
}

void rls_charge_forget_factors(struct rls_living_process *process)
{
	free(process->factors);
	process->factors = NULL;
	process->factor_count = process->factor_room = 0;
	process->cost_factor = 0;
}

static const struct rls_operation_factor *find_own(const struct rls_living_process *process,
						   rls_string_id operation)
{
	for (size_t i = 0; i < process->factor_count; i++) {
		if (process->factors[i].operation == operation)
			return &process->factors[i];
	}
	return NULL;
}

int rls_charge_turn(const struct rls_living_process *process, struct rls_living_thread *thread,
		    const struct rls_queued_edge *edge)
{
	return process->factor_count ? rls_edge_queue_add(&thread->edges, edge) : 0;
}

/* Helpers work for the annotated thread (inherit.h). */
static struct rls_living_thread *find_source(const struct rls_living_process *process,
					     struct rls_living_thread *thread)
{
	if (!thread || thread->annotated || !process->annotated_tid)
		return thread;
	return rls_index_map_get(&process->threads, process->annotated_tid, 0);
}

static double find_factor(const struct rls_living_process *process,
			  struct rls_living_thread *thread, uint64_t time_ns)
{
	const struct rls_operation_factor *own = NULL;
	struct rls_living_thread *source;
	struct rls_queued_edge edge;

	if (!process->factor_count)
		return process->cost_factor;
	source = find_source(process, thread);
	while (source && source == thread && rls_edge_queue_take(&source->edges, time_ns, &edge))
		source->charged_operation = edge.now;
	if (source)
		own = find_own(process, source->charged_operation);
	return own ? own->factor : process->cost_factor;
}

uint32_t rls_charge(const struct rls_living_process *process, struct rls_living_thread *thread, double excess_ns,
		    const struct rls_wire_pile *pile, enum rls_category category, uint64_t time_ns)
{
	double factor = process ? find_factor(process, thread, time_ns) : 0;
	double own_ns = thread ? rls_density_cost(&thread->density, excess_ns, time_ns, pile) : pile->cost_ns;
	uint64_t cost_ns = (uint64_t)round(factor > 0 ? factor * own_ns : own_ns);

	if (thread)
		rls_arrears_off_cpu(&thread->arrears, pile->off_cpu_ns);
	if (thread && pile->hits)
		cost_ns = rls_arrears_charge(&thread->arrears, category, time_ns, cost_ns,
					     pile->cost_ns / pile->hits > STEPPED_NS);
	return cost_ns < UINT32_MAX ? (uint32_t)cost_ns : UINT32_MAX;
}

void rls_charge_sample(struct rls_living_thread *thread, enum rls_category category,
		       uint32_t cost_ns)
{
	thread->arrears.owed_ns[category] += cost_ns;
}
