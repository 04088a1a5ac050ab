#include "cupti_bridge/launch_history.h"

void rls_launch_history_add(struct rls_launch_history *launches,
			    const struct rls_cupti_record *record)
{
	size_t slot = record->correlation % RLS_LAUNCHES;
	bool is_known = launches->calls[slot].correlation == record->correlation &&
			launches->calls[slot].start_ns;

	if (is_known && launches->calls[slot].start_ns < record->start_ns)
		return;
	if (!is_known)
		launches->calls[slot].has_waited = false;
	launches->calls[slot].correlation = record->correlation;
	launches->calls[slot].start_ns = record->start_ns;
}

/* Is the call of that number there? */
static bool knows(const struct rls_launch_history *launches, const struct rls_cupti_record *record)
{
	return record->correlation &&
	       launches->calls[record->correlation % RLS_LAUNCHES].correlation ==
		       record->correlation;
}

bool rls_launch_history_claim_wait(struct rls_launch_history *launches,
				   const struct rls_cupti_record *record)
{
	size_t slot = record->correlation % RLS_LAUNCHES;
	bool is_claimed;

	if (!knows(launches, record))
		return true;
	is_claimed = launches->calls[slot].has_waited;
	launches->calls[slot].has_waited = true;
	return !is_claimed;
}

bool rls_launch_history_forbid(const struct rls_launch_history *launches,
			       const struct rls_cupti_record *record)
{
	size_t slot = record->correlation % RLS_LAUNCHES;

	return knows(launches, record) &&
	       record->start_ns + RLS_CUPTI_EARLY_NS < launches->calls[slot].start_ns;
}
