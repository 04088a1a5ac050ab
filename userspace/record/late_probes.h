/* Late probes: for how long libraries ran before their probes were live.
 *
 *     exec, or mapped ──────── looked at, and something new is probed
 *             └── not traced ──┘
 *
 * A library that is probed already, as another process has it, is traced from its first call on:
 * then nothing is late. The sum of a process is a warning when the process or the recording ends:
 * for the first processes one each, for the others one in all.
 */
#ifndef RLS_LATE_PROBES_H
#define RLS_LATE_PROBES_H

#include <stddef.h>
#include <stdint.h>

#include "userspace/record/events/event_output.h"
#include "userspace/record/targets/target_table.h"

/* Zeroed: nothing was late. */
struct rls_late_probes {
	size_t reported; /* processes with a warning of their own */
	size_t others;
	uint64_t others_ns;
	size_t missed; /* processes that ended before they were looked at, or soon after */
	uint64_t missed_ns;
};

/* The target is being looked at: since when something was mapped that has not been looked at, or 0. What is mapped
 * from now on sets mapped_ns anew. */
uint64_t rls_late_probes_begin_scan(struct rls_target *target);
/* It has been looked at, and mappings until now have been noted. since_ns: what rls_late_probes_begin_scan returned; probed:
 * something of it was not probed before, and is now. */
void rls_late_probes_scanned(struct rls_target *target, uint64_t since_ns, bool probed,
			     uint64_t now_ns);
/* Nothing more of it is probed. 0 or -errno. */
int rls_late_probes_ended(struct rls_late_probes *late, struct rls_target *target,
			  struct rls_event_output *output, uint64_t time_ns);
/* A process ended, and for so long it had a library that was not probed. */
void rls_late_probes_missed(struct rls_late_probes *late, uint64_t missed_ns);
/* The recording ends: of those that live on, and of the others. 0 or -errno. */
int rls_late_probes_finish(struct rls_late_probes *late, const struct rls_targets *targets,
			   struct rls_event_output *output, uint64_t time_ns);

#endif
