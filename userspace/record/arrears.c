#include "userspace/record/arrears.h"

uint64_t rls_arrears_charge(struct rls_arrears *arrears, enum rls_category category,
			    uint64_t now_ns, uint64_t cost_ns)
{
	uint64_t *owed_ns = &arrears->owed_ns[category];
	uint64_t room_ns, charged_ns;

	/* Before the first charge there may be any amount of time. */
	room_ns = arrears->since_ns ? 0 : UINT64_MAX;
	if (arrears->since_ns && now_ns > arrears->since_ns)
		room_ns = now_ns - arrears->since_ns;
	arrears->since_ns = now_ns;
	*owed_ns += cost_ns;
	charged_ns = *owed_ns < room_ns ? *owed_ns : room_ns;
	*owed_ns -= charged_ns;
	return charged_ns;
}
