/* The host that was recorded: kernel, CPUs, GPUs, and what a probe costs on it. */
#ifndef RLS_RECORD_HOST_H
#define RLS_RECORD_HOST_H

#include <stdint.h>

#include "userspace/attach/calibrate.h"
#include "userspace/record/trace_output.h"

/* Adds the HOST event. */
int rls_host_event(struct rls_trace_output *output, uint64_t time_ns);
/* Adds a CALIBRATION event for each figure. */
int rls_host_calibration(struct rls_trace_output *output, const struct rls_calibration *calibration,
			 uint64_t time_ns);

#endif
