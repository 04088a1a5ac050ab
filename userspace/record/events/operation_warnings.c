#include "userspace/record/events/operation_warnings.h"

#include <inttypes.h>

#include "userspace/record/events/event_output.h"

int rls_operation_warnings_report(const struct rls_operation_oddities *oddities,
				  struct rls_event_output *output, uint64_t time_ns)
{
	int r = 0;

	if (oddities->names_left_out)
		r = rls_event_output_warn(
			output, time_ns,
			"a process has more than 65536 names of operations and phases: "
			"later ones are all reported as (other)");
	if (!r && oddities->too_deep) {
		r = rls_event_output_warn(
			output, time_ns,
			"more than %d operations were active on one thread, each within the other: "
			"the time of inner ones counts as that of the innermost of these %d",
			RLS_OPERATION_DEPTH_MAX, RLS_OPERATION_DEPTH_MAX);
	}
	if (r || !oddities->disorders)
		return r;
	return rls_event_output_warn(
		output, time_ns,
		"%" PRIu64 " operations were ended that were not the innermost on their thread, or "
		"not open: the time of operations that overlap on one thread is not known",
		oddities->disorders);
}
