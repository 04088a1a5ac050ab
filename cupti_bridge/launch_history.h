/* Launches: when each call began, by correlation number, for the last RLS_LAUNCHES of them. Work that
 * starts more than RLS_CUPTI_EARLY_NS before its launch has an impossible time.
 */
#ifndef RLS_CUPTI_LAUNCH_HISTORY_H
#define RLS_CUPTI_LAUNCH_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_bridge/batch.h"

#define RLS_LAUNCHES (1u << 16)

struct rls_launch_history {
	struct {
		uint64_t start_ns;
		uint32_t correlation;
		bool has_waited;
	} calls[RLS_LAUNCHES];
};

/* `record` is an RLS_CUPTI_API. Of nested calls, which share a number, the outer one counts. */
void rls_launch_history_add(struct rls_launch_history *launches,
			    const struct rls_cupti_record *record);

/* The record is of a wait, by its call or by CUPTI's own record of it: is it the first one of that number? */
bool rls_launch_history_claim_wait(struct rls_launch_history *launches,
				   const struct rls_cupti_record *record);

/* Did the work start so long before the call that launched it? False when the call is not known. */
bool rls_launch_history_forbid(const struct rls_launch_history *launches,
			       const struct rls_cupti_record *record);

#endif
