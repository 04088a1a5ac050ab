/* The host that was recorded: kernel, CPUs, GPUs, and what a probe costs on it. */
#ifndef RLS_HOST_EVENTS_H
#define RLS_HOST_EVENTS_H

#include <stdint.h>

#include "userspace/attach/calibration/calibration_file.h"
#include "userspace/record/events/event_output.h"

/* Adds a CLOCK event: both clocks, read now. */
int rls_host_clock(struct rls_event_output *output);
/* Adds the HOST event. */
int rls_host_event(struct rls_event_output *output, uint64_t time_ns);
/* Adds a CALIBRATION event. */
int rls_host_figure(struct rls_event_output *output, const char *name, double value_ns,
		    double error_ns, uint64_t time_ns);
/* One for each path, and the mean hit, whose error is that of all costs; and one that says where they are from. */
int rls_host_calibration(struct rls_event_output *output, const struct rls_calibration_file *file,
			 uint64_t time_ns);

#endif
