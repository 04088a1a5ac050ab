#include "userspace/record/arrears.h"

#define SPILT_PARTS 4           /* one of them of each time pays for what was spilt */

/* Of room_ns, what goes into paying what was spilt. */
static uint64_t pay_spilt(struct rls_arrears *arrears, uint64_t room_ns)
{
	uint64_t paid_ns = room_ns / SPILT_PARTS;

	if (paid_ns > arrears->spilt_ns)
		paid_ns = arrears->spilt_ns;
	arrears->spilt_ns -= paid_ns;
	return paid_ns;
}

uint64_t rls_arrears_charge(struct rls_arrears *arrears, enum rls_category category,
			    uint64_t now_ns, uint64_t cost_ns, bool spills)
{
	uint64_t *owed_ns = &arrears->owed_ns[category];
	uint64_t room_ns, charged_ns;

	/* Before the first charge there may be any amount of time. */
	room_ns = arrears->since_ns ? 0 : UINT64_MAX;
	if (arrears->since_ns && now_ns > arrears->since_ns)
		room_ns = now_ns - arrears->since_ns;
	arrears->since_ns = now_ns;
	if (spills && cost_ns > room_ns) {
		arrears->spilt_ns += cost_ns - room_ns;
		cost_ns = room_ns;
	}
	*owed_ns += cost_ns;
	charged_ns = *owed_ns < room_ns ? *owed_ns : room_ns;
	*owed_ns -= charged_ns;
	return charged_ns + pay_spilt(arrears, room_ns - charged_ns);
}
