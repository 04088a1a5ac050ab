/* Recorder options: what to record, and who gets it. */
#ifndef RLS_RECORDER_OPTIONS_H
#define RLS_RECORDER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/event/event.h"
#include "bpf/wire/record.h"

struct rls_operation_globs;
struct rls_roles;
struct rls_selection;

/* Where it goes instead of a trace file, when the kernel side keeps totals (bpf/totals.bpf.h). Each returns
 * 0 or -errno, which ends the recording. */
struct rls_recorder_listener {
	/* All that would be in the trace but transitions and operations. Strings are "". */
	int (*event)(void *context, const struct rls_event *event);
	/* Names of operations and phases. */
	int (*name)(void *context, const struct rls_wire_name *name);
	/* What a thread of a process with a CUPTI bridge is in from a moment on. */
	int (*name_change)(void *context, const struct rls_wire_name_change *name_change);
	/* A sample of a thread, and its inferred category. */
	int (*sampled)(void *context, const struct rls_wire_category_sample *sample,
		       enum rls_category inferred);
	/* Every few milliseconds. */
	int (*tick)(void *context, uint64_t time_ns);
	void *context;
};

enum rls_memory_mode {
	RLS_MEMORY_OFF,
	RLS_MEMORY_AUTO, /* while that is within the budget */
	RLS_MEMORY_ALL, /* whatever it costs */
};

/* What it points to must stay until the recorder is freed. */
struct rls_recorder_options {
	const char *trace_path;
	const struct rls_recorder_listener *listener; /* NULL: none, a trace is written */
	const struct rls_roles *roles;
	const struct rls_selection *selection; /* resolved; may be empty */
	/* Whose hits they are for the most part, as RLS_EVENT_PROCESS has it: calibrated by itself, its own calibration is gone
	 * by. NULL: nobody's, or the machine's is wanted */
	const char *command;
	uint64_t duration_ns; /* 0: no limit */
	bool follow_children;
	unsigned int sample_hz; /* stacks of running threads; 0: no samples */
	const struct rls_operation_globs *operations; /* by functions on them; NULL: none */
	double budget_percent; /* of a thread's time that probes may cost; below 0: no limit */
	enum rls_memory_mode memory;
	unsigned int layer_depth; /* calls of layers, nested so deep; 0: none */
	bool perf_events; /* attach one by one even where uprobe_multi works */
	bool alternate; /* turn probes on and off to see what hits cost (probe_toggle.h) */
};

#endif
