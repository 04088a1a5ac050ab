#include "userspace/record/gpu/cupti_toggle.h"

#include "userspace/base/jitter.h"
#include "userspace/base/log.h"

/* A period's duration, drawn evenly. Short, so that the machine's state is the same in neighbouring periods; it holds
 * several windows of probes. */
#define PERIOD_NS_MIN 500000000ULL
#define PERIOD_NS_MAX 900000000ULL
/* Until bridge and CUPTI have followed. */
#define FOLLOW_NS 500000000ULL

void rls_cupti_toggle_clear(struct rls_cupti_toggle *toggle)
{
	rls_cupti_overhead_clear(&toggle->overhead);
}

void rls_cupti_toggle_tick(struct rls_cupti_toggle *toggle, uint64_t now_ns)
{
	const struct rls_cupti_switch *bridges = &toggle->bridges;

	if (now_ns < toggle->due_ns || !bridges->bridged(bridges->context))
		return;
	if (!toggle->due_ns) {
		toggle->random = now_ns | 1;
		toggle->armed = true; /* since the bridge was found */
	} else {
		rls_cupti_overhead_end(&toggle->overhead);
		toggle->armed = !toggle->armed;
		bridges->arm(bridges->context, toggle->armed);
		rls_debug("CUPTI is %s to compare", toggle->armed ? "armed" : "disarmed");
	}
	rls_cupti_overhead_begin(&toggle->overhead, now_ns + FOLLOW_NS, toggle->armed);
	toggle->due_ns = now_ns + FOLLOW_NS +
			 rls_random_between(&toggle->random, PERIOD_NS_MIN, PERIOD_NS_MAX);
}

bool rls_cupti_toggle_begun(const struct rls_cupti_toggle *toggle)
{
	return toggle->due_ns != 0;
}

int rls_cupti_toggle_call(void *context, rls_string_id name, uint64_t start_ns,
			  uint64_t duration_ns)
{
	struct rls_cupti_toggle *toggle = context;

	return rls_cupti_overhead_add(&toggle->overhead, name, start_ns, duration_ns);
}
