/* Operation warnings: what is wrong with the operations of a recording, for its report. */
#ifndef RLS_OPERATION_WARNINGS_H
#define RLS_OPERATION_WARNINGS_H

#include <stdint.h>

#include "userspace/record/events/operation_oddities.h"

struct rls_event_output;

/* A warning for each, to stderr and into the trace. 0 or -errno. */
int rls_operation_warnings_report(const struct rls_operation_oddities *oddities,
				  struct rls_event_output *output, uint64_t time_ns);

#endif
