/* Coverage warnings: what a recording will not see of a process, and what to do about it. Each
 * goes to stderr and into the trace.
 */
#ifndef RLS_COVERAGE_WARNINGS_H
#define RLS_COVERAGE_WARNINGS_H

#include <stdint.h>
#include <sys/types.h>

#include "userspace/record/events/event_output.h"
#include "userspace/record/gpu/cuda_calls.h"
#include "userspace/record/probes/libraries.h"
#include "userspace/record/targets/target_table.h"

/* When recording starts: no Python (yet), no library with a role (yet). */
void rls_missing_at_start(const struct rls_libraries *libraries, struct rls_event_output *output,
			  pid_t pid, uint64_t time_ns);

/* Processes that have called CUDA for a while without a CUPTI bridge, each reported once.
 * libcuda is often mapped long before, also by processes that never call it. A CUDA job loads
 * the bridge when it initialises CUDA, so it gets a moment's time; UINT64_MAX: no more. */
void rls_missing_bridges(const struct rls_libraries *libraries, const struct rls_cuda_calls *calls,
			 struct rls_event_output *output, struct rls_targets *followed,
			 uint64_t now_ns, uint64_t time_ns);

/* Processes that a debugger traces, each reported once. A few of many are read at a time. */
void rls_warn_of_tracers(struct rls_event_output *output, struct rls_targets *followed,
			 uint64_t time_ns);

#endif
