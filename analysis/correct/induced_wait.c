#include "analysis/correct/induced_wait.h"

#include <errno.h>
#include <stdlib.h>

void rls_induced_wait_free(struct rls_induced_wait *others)
{
	free(others->charges);
	*others = (struct rls_induced_wait){0};
}

int rls_induced_wait_add(struct rls_induced_wait *others, const struct rls_others_charge *charge)
{
	if (!others->charges)
		others->charges = calloc(RLS_OTHERS_CHARGES, sizeof(*others->charges));
	if (!others->charges)
		return -ENOMEM;
	others->charges[others->count++ % RLS_OTHERS_CHARGES] = *charge;
	return 0;
}

uint64_t rls_induced_wait_since(const struct rls_induced_wait *others, uint64_t since_ns,
				const struct rls_thread *thread, rls_stack_id stack)
{
	uint64_t kept = others->count < RLS_OTHERS_CHARGES ? others->count : RLS_OTHERS_CHARGES;
	uint64_t cost_ns = 0;

	for (uint64_t i = 1; i <= kept; i++) {
		const struct rls_others_charge *charge =
			&others->charges[(others->count - i) % RLS_OTHERS_CHARGES];

		if (charge->at_ns <= since_ns)
			break;
		if (charge->thread != thread && charge->stack == stack)
			cost_ns += charge->cost_ns;
	}
	return cost_ns;
}
