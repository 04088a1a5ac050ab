/* Calibration in a running job: its probes go on and off, and what its own work takes longer
 * while they are on is what they cost it (record/alternator.h). */
#ifndef RLS_IN_VIVO_H
#define RLS_IN_VIVO_H

#include <stdint.h>
#include <sys/types.h>

#include "userspace/record/segments.h"

/* Watches the process for so long, or until it ends. *command: its words, as RLS_EVENT_PROCESS has
 * them; the caller's to free. *hit_ns: the calibration's mean hit
 * that the factor is a share of. 0 or -errno, and has said why; -ENODATA when there was too little to see. */
int rls_in_vivo_measure(pid_t pid, uint64_t duration_ns, struct rls_delta_in_vivo *out,
			double *hit_ns, char **command);

#endif
