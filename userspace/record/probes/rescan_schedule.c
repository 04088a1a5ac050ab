#include "userspace/record/probes/rescan_schedule.h"

#include "userspace/record/targets/process_info.h"

static const uint64_t ages_ns[] = {50000000,   200000000,  500000000,  1200000000,
				   3000000000, 8000000000, 20000000000};
#define RESCANS (sizeof(ages_ns) / sizeof(ages_ns[0]))
/* A process that had run for so long when it was first looked at has most likely filled them. */
#define OLD_NS 60000000000ULL
#define RESCANS_OF_OLD 4

static bool is_old(pid_t pid)
{
	uint64_t age_ns;

	return !rls_process_age(pid, &age_ns) && age_ns > OLD_NS;
}

void rls_rescan_schedule_start(struct rls_rescan_schedule *schedule, pid_t pid, bool first,
			       uint64_t now_ns)
{
	/* What is mapped under our eyes is being imported, whether that has begun or not. */
	*schedule = (struct rls_rescan_schedule){
		.since_ns = now_ns,
		.done = first && is_old(pid) ? RESCANS_OF_OLD : 0,
		.importing = !first,
	};
}

uint64_t rls_rescan_schedule_due_ns(const struct rls_rescan_schedule *schedule)
{
	if (!schedule->since_ns || schedule->done >= RESCANS)
		return 0;
	return schedule->since_ns + ages_ns[schedule->done];
}

/* After an import one rescan more: the module may have been about to fill its tables. */
bool rls_rescan_schedule_take(struct rls_rescan_schedule *schedule, bool imported)
{
	bool was_importing = schedule->importing;

	schedule->importing = imported;
	return ++schedule->done == RESCANS || imported || was_importing;
}
