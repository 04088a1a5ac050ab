#include "userspace/record/coverage_warnings.h"

#include <unistd.h>

#include "userspace/record/targets/process_info.h"

#define BRIDGE_PATIENCE_NS 2000000000ULL
/* So many are read at a time, which takes about a millisecond. */
#define TRACERS_AT_ONCE 64

void rls_missing_at_start(const struct rls_libraries *libraries, struct rls_event_output *output,
			  pid_t pid, uint64_t time_ns)
{

	if (!rls_libraries_python(libraries, pid)[0]) {
		rls_event_output_warn(output, time_ns, "process %d is not a Python process (yet)",
				      pid);
	} else if (!rls_libraries_count(libraries, pid)) {
		rls_event_output_warn(
			output, time_ns,
			"process %d has loaded no simulator, ML backend or CUDA library that is "
			"known (yet); name yours with --simulator, --backend or --native",
			pid);
	}
}

void rls_missing_bridges(const struct rls_libraries *libraries, const struct rls_cuda_calls *calls,
			 struct rls_event_output *output, struct rls_targets *followed,
			 uint64_t now_ns, uint64_t time_ns)
{
	for (size_t i = 0; i < followed->count; i++) {
		struct rls_target *process = followed->all[i];

		if (process->blind_reported || !rls_libraries_is_blind(libraries, process->pid) ||
		    !rls_cuda_calls_made(calls, (uint32_t)process->pid))
			continue;
		if (!process->called_ns)
			process->called_ns = time_ns;
		if (now_ns - process->called_ns < BRIDGE_PATIENCE_NS)
			continue;
		process->blind_reported = true;
		rls_event_output_warn(
			output, time_ns,
			"process %d uses CUDA without the CUPTI bridge, so its GPU times are not "
			"known: start it with CUDA_INJECTION64_PATH set to our "
			"librlscope_cupti.so, as `rlscope-bpf run` does, or load that now with "
			"`attach --inject`",
			process->pid);
	}
}

static void warn_of_tracer(struct rls_event_output *output, struct rls_target *process,
			   uint64_t time_ns)
{
	pid_t tracer = 0;

	if (process->warned_of_tracer || rls_process_tracer(process->pid, &tracer) || !tracer ||
	    tracer == getpid())
		return;
	process->warned_of_tracer = true;
	rls_event_output_warn(
		output, time_ns,
		"process %d is traced by process %d (a debugger?): its stops count as waits, and a "
		"breakpoint on a probed instruction can end it when probes or debugger leave",
		process->pid, tracer);
}

void rls_warn_of_tracers(struct rls_event_output *output, struct rls_targets *followed,
			 uint64_t time_ns)
{
	size_t count = followed->count < TRACERS_AT_ONCE ? followed->count : TRACERS_AT_ONCE;

	for (size_t i = 0; i < count; i++, followed->tracer_at++)
		warn_of_tracer(output, followed->all[followed->tracer_at % followed->count],
			       time_ns);
}
