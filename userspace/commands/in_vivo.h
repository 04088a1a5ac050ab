/* Calibration in a running job: its probes are enabled and disabled; what its work takes longer while they
 * are enabled is what they cost (record/calibrate/probe_toggle.h). */
#ifndef RLS_IN_VIVO_H
#define RLS_IN_VIVO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/calibration/calibration_file.h"
#include "userspace/record/calibrate/matched_segments.h"

struct rls_in_vivo {
	bool compared; /* enough pieces of its work were: delta is known */
	struct rls_delta_in_vivo delta;
	struct rls_calibration calibration; /* that factors are shares of */
	enum rls_attach_way way;
	struct rls_cuda_cost cuda[RLS_CUDA_COSTS_MAX];
	size_t cuda_count;
	bool bridged; /* it has a CUPTI bridge, which was armed and disarmed */
	struct rls_operation_cost operations[RLS_OPERATION_COSTS_MAX]; /* delta's, by name */
	size_t operation_count;
	char *command; /* its words, as RLS_EVENT_PROCESS has them; the caller's to free */
};

/* Watches the process for so long, or until it ends. 0 or -errno, and has said why; -ENODATA when
 * there was too little to see: neither pieces of its work nor calls into CUDA could be compared. */
int rls_in_vivo_measure(pid_t pid, uint64_t duration_ns, struct rls_in_vivo *out);

#endif
