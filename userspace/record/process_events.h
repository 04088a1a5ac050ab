/* Process events: what the trace and the kernel side are to know of a recorded process. */
#ifndef RLS_PROCESS_EVENTS_H
#define RLS_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/calibration/calibration_file.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/events/translate.h"
#include "userspace/record/probes/libraries.h"

struct rls_cuda_calls;

/* All borrowed. */
struct rls_describer {
	struct rls_kernel *kernel;
	struct rls_event_output *output;
	struct rls_translator *translator;
	const struct rls_libraries *libraries;
	bool follow_children;
	const struct rls_calibration_file *costs;
	struct rls_cuda_calls *cuda_calls;
	/* A process of ours, which has not executed its program yet at the start, and the words of that. 0: none. */
	pid_t launched;
	const char *words;
};

/* Its names, pids, container and interpreter, into the trace. 0, -ESRCH, -errno. */
int rls_describe_process(const struct rls_describer *describer, pid_t pid, uint64_t time_ns);

/* The settings that the kernel side needs, as known now: it is tracked from here on. */
int rls_describe_settings(const struct rls_describer *describer, pid_t pid);

/* The phase and the name that it had given itself before anyone listened. */
int rls_describe_phase(const struct rls_describer *describer, pid_t pid, uint64_t time_ns);

/* All of these: what is learned of a process whose libraries have been looked at. */
int rls_describe(const struct rls_describer *describer, pid_t pid, uint64_t time_ns);

#endif
