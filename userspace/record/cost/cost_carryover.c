#include "userspace/record/cost/cost_carryover.h"

#define POLLUTION_PARTS 4 /* one of them of each time pays for cache pollution */

/* The part of room_ns that pays for cache pollution. */
static uint64_t pay_pollution(struct rls_cost_carryover *carryover, uint64_t room_ns)
{
	uint64_t paid_ns = room_ns / POLLUTION_PARTS;

	if (paid_ns > carryover->pollution_ns)
		paid_ns = carryover->pollution_ns;
	carryover->pollution_ns -= paid_ns;
	return paid_ns;
}

/* Running time since the last charge; before the first there may be any amount. */
static uint64_t take_room(struct rls_cost_carryover *carryover, uint64_t now_ns)
{
	uint64_t room_ns = carryover->since_ns ? 0 : UINT64_MAX;

	if (carryover->since_ns && now_ns > carryover->since_ns)
		room_ns = now_ns - carryover->since_ns;
	if (room_ns != UINT64_MAX)
		room_ns -= carryover->off_cpu_ns < room_ns ? carryover->off_cpu_ns : room_ns;
	carryover->since_ns = now_ns;
	carryover->off_cpu_ns = 0;
	return room_ns;
}

void rls_cost_carryover_off_cpu(struct rls_cost_carryover *carryover, uint64_t ns)
{
	carryover->off_cpu_ns += ns;
}

uint64_t rls_cost_carryover_charge(struct rls_cost_carryover *carryover, enum rls_category category,
				   uint64_t now_ns, uint64_t cost_ns, bool polluting)
{
	uint64_t *owed_ns = &carryover->owed_ns[category], room_ns = take_room(carryover, now_ns),
		 charged_ns;

	if (polluting && cost_ns > room_ns) {
		carryover->pollution_ns += cost_ns - room_ns;
		cost_ns = room_ns;
	}
	*owed_ns += cost_ns;
	charged_ns = *owed_ns < room_ns ? *owed_ns : room_ns;
	*owed_ns -= charged_ns;
	return charged_ns + pay_pollution(carryover, room_ns - charged_ns);
}
