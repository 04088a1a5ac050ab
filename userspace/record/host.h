/* The host that was recorded: kernel, CPUs, GPUs. */
#ifndef RLS_RECORD_HOST_H
#define RLS_RECORD_HOST_H

#include <stdint.h>

#include "userspace/record/trace_output.h"

/* Adds the HOST event. */
int rls_host_event(struct rls_trace_output *output, uint64_t time_ns);

#endif
