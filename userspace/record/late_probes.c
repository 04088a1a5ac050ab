#include "userspace/record/late_probes.h"

#define REPORTED_MAX 8
#define LEAST_NS 5000000ULL /* less is not worth a line */
#define LEAST_SHARE 1000 /* but of a process that lived shortly: one in so many */

uint64_t rls_late_probes_begin_scan(struct rls_target *target)
{
	uint64_t since_ns = target->mapped_ns;

	target->mapped_ns = 0;
	return since_ns;
}

void rls_late_probes_scanned(struct rls_target *target, uint64_t since_ns, bool probed,
			     uint64_t now_ns)
{
	if (!since_ns)
		since_ns = target->mapped_ns;
	if (!probed || !since_ns || now_ns <= since_ns)
		return;
	target->late_ns += now_ns - since_ns;
	if (target->mapped_ns)
		target->mapped_ns = now_ns; /* until now is counted; the rest is looked at again */
}

void rls_late_probes_missed(struct rls_late_probes *late, uint64_t missed_ns)
{
	late->missed++;
	late->missed_ns += missed_ns;
}

int rls_late_probes_ended(struct rls_late_probes *late, struct rls_target *target,
			  struct rls_event_output *output, uint64_t time_ns)
{
	uint64_t late_ns = target->late_ns;

	target->late_ns = 0;
	if (late_ns < LEAST_NS) {
		if (late_ns && target->execed_ns && time_ns > target->execed_ns &&
		    late_ns >= (time_ns - target->execed_ns) / LEAST_SHARE)
			rls_late_probes_missed(late, late_ns);
		return 0;
	}
	if (late->reported == REPORTED_MAX) {
		late->others++;
		late->others_ns += late_ns;
		return 0;
	}
	late->reported++;
	return rls_event_output_warn(
		output, time_ns,
		"%.2f s of process %d were not traced in full: libraries were loaded, and their "
		"probes were not live yet",
		(double)late_ns / 1e9, target->pid);
}

static int warn_of_missed(const struct rls_late_probes *late, struct rls_event_output *output,
			  uint64_t time_ns)
{

	if (!late->missed)
		return 0;
	return rls_event_output_warn(
		output, time_ns,
		"%zu process%s that ended had libraries before these were probed: %.3f s were not "
		"traced",
		late->missed, late->missed == 1 ? "" : "es", (double)late->missed_ns / 1e9);
}

int rls_late_probes_finish(struct rls_late_probes *late, const struct rls_targets *targets,
			   struct rls_event_output *output, uint64_t time_ns)
{
	int r = 0;

	for (size_t i = 0; !r && i < targets->count; i++)
		r = rls_late_probes_ended(late, targets->all[i], output, time_ns);
	if (!r)
		r = warn_of_missed(late, output, time_ns);
	if (r || !late->others)
		return r;
	return rls_event_output_warn(
		output, time_ns,
		"%.2f s of %zu more processes were not traced in full, for the same reason",
		(double)late->others_ns / 1e9, late->others);
}
