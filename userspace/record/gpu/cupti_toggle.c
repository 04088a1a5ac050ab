#include "userspace/record/gpu/cupti_toggle.h"

#include "userspace/base/log.h"
#include "userspace/base/jitter.h"

/* Between two turns, drawn evenly: as short as there are some windows of probes in, so that the machine stays as it is from
 * one to the next. */
#define TURN_NS_MIN 500000000ULL
#define TURN_NS_MAX 900000000ULL
/* Until bridge and CUPTI have followed. */
#define SETTLE_NS 500000000ULL

void rls_rearm_clear(struct rls_rearm *rearm)
{
	rls_cupti_delta_clear(&rearm->delta);
}

void rls_rearm_tick(struct rls_rearm *rearm, uint64_t now_ns)
{
	bool first = !rearm->due_ns;

	if (now_ns < rearm->due_ns || !rls_libraries_bridged(rearm->libraries))
		return;
	if (first) {
		rearm->random = now_ns | 1;
		rearm->armed = true; /* by whoever found it */
	} else {
		rls_cupti_delta_end(&rearm->delta);
		rearm->armed = !rearm->armed;
		rls_libraries_arm(rearm->libraries, rearm->armed);
		rls_debug("CUPTI is %s for a while", rearm->armed ? "armed" : "disarmed");
	}
	rls_cupti_delta_begin(&rearm->delta, now_ns + SETTLE_NS, rearm->armed);
	rearm->due_ns = now_ns + SETTLE_NS +
			rls_random_between(&rearm->random, TURN_NS_MIN, TURN_NS_MAX);
}

int rls_rearm_call(void *context, rls_string_id name, uint64_t start_ns, uint64_t duration_ns)
{
	struct rls_rearm *rearm = context;

	return rls_cupti_delta_add(&rearm->delta, name, start_ns, duration_ns);
}
