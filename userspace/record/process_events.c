#include "userspace/record/process_events.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/timeline/trace_metadata.h"

#include "userspace/record/events/annotation_reader.h"
#include "userspace/record/events/host_events.h"
#include "userspace/record/gpu/cuda_calls.h"
#include "userspace/record/targets/process_info.h"

/* How much of a row's correction may belong to its neighbours: of a pair of hits 39 to 43 % lie
 * inside the call, by how cold they are, which is a tenth of that. */
#define PLACE_ERROR 0.1

/* What a hit costs. error: as a share of it. */
static int add_hit_figure(const struct rls_describer *describer, const char *kind, const char *name,
			  double ns, double error, uint64_t time_ns)
{
	char figure[sizeof(RLS_FIGURE_OPERATION) + RLS_OPERATION_BYTES];

	snprintf(figure, sizeof(figure), "%s%s", kind, name);
	return rls_host_figure(describer->output, figure, ns, hypot(error, PLACE_ERROR) * ns,
			       time_ns);
}

/* Of hits in its operations: a factor each, where they were distinguished. */
static int apply_operations(const struct rls_describer *describer, pid_t pid,
			    const struct rls_workload *workload, uint64_t time_ns)
{
	const struct rls_calibration *calibration = &describer->costs->calibration;
	double hit_ns = rls_calibration_mean_hit(calibration).value_ns;
	int r = 0;

	for (size_t i = 0; !r && i < workload->operation_count; i++) {
		const struct rls_operation_cost *cost = &workload->operations[i];
		double factor = rls_workload_rescale(workload, cost->factor, calibration);

		r = rls_translator_set_operation_factor(describer->translator, (uint32_t)pid,
							cost->operation, factor);
		if (!r)
			r = add_hit_figure(describer, RLS_FIGURE_OPERATION, cost->operation,
					   factor * hit_ns, cost->error / cost->factor, time_ns);
	}
	return r;
}

/* What CUPTI, armed, adds to this command's calls into CUDA: a figure each, by name. */
static int apply_cuda(const struct rls_describer *describer, pid_t pid,
		      const struct rls_workload *workload, uint64_t time_ns)
{
	char figure[sizeof(RLS_FIGURE_CUPTI) + RLS_CUDA_NAME_BYTES];
	int r = 0;

	for (size_t i = 0; !r && i < workload->cuda_count; i++) {
		const struct rls_cuda_cost *cost = &workload->cuda[i];

		r = rls_cuda_calls_set_cost(describer->cuda_calls, (uint32_t)pid, cost->name,
					    (uint64_t)llround(cost->ns));
		snprintf(figure, sizeof(figure), RLS_FIGURE_CUPTI "%s", cost->name);
		if (!r)
			r = rls_host_figure(describer->output, figure, cost->ns, cost->error_ns,
					    time_ns);
	}
	return r;
}

/* What was found of this very command, with and without probes. */
static int apply_workload(const struct rls_describer *describer, pid_t pid, const char *command,
			  uint64_t time_ns)
{
	const struct rls_workload *workload = rls_calibration_workload(describer->costs, command);
	const struct rls_calibration *calibration = &describer->costs->calibration;
	double hit_ns = rls_calibration_mean_hit(calibration).value_ns;
	double factor;
	int r;

	if (!workload)
		return 0;
	factor = rls_workload_rescale(workload, workload->factor, calibration);
	r = rls_translator_set_cost_factor(describer->translator, (uint32_t)pid, factor);
	if (!r)
		r = add_hit_figure(describer, RLS_FIGURE_WORKLOAD, "", factor * hit_ns,
				   workload->error / workload->factor, time_ns);
	if (!r)
		r = apply_operations(describer, pid, workload, time_ns);
	return r ? r : apply_cuda(describer, pid, workload, time_ns);
}

/* Its words. A short command may have ended before anyone reads them: then it has none any more, but was started with some. */
static const char *words_of(const struct rls_describer *describer, pid_t pid,
			    const struct rls_process_info *info)
{
	bool has_none = !strcmp(info->cmdline, "[]");

	return has_none && pid == describer->launched && describer->words ? describer->words
									  : info->cmdline;
}

int rls_describe_process(const struct rls_describer *describer, pid_t pid, uint64_t time_ns)
{
	struct rls_event event = {
		.kind = RLS_EVENT_PROCESS, .pid = (uint32_t)pid, .time_ns = time_ns};
	struct rls_process_info info;
	const char *words;
	int r = rls_process_info_read(pid, &info);

	if (r)
		return r;
	words = words_of(describer, pid, &info);
	event.process.ppid = (uint32_t)info.ppid;
	event.process.ns_pid = info.ns_pid == pid ? 0 : (uint32_t)info.ns_pid;
	r = rls_event_output_string(describer->output, info.name, &event.process.name);
	if (!r)
		r = rls_event_output_string(describer->output, words, &event.process.cmdline);
	if (!r)
		r = rls_event_output_string(describer->output, info.container,
					    &event.process.container);
	if (!r)
		r = rls_event_output_string(describer->output,
					    rls_libraries_python(describer->libraries, pid),
					    &event.process.python);
	if (!r)
		r = apply_workload(describer, pid, words, time_ns);
	rls_process_info_clear(&info);
	return r ? r : rls_translator_describe(describer->translator, &event);
}

int rls_describe_settings(const struct rls_describer *describer, pid_t pid)
{
	struct rls_wire_process settings = {0};
	struct rls_annotate_descriptor descriptor;
	uint64_t address = rls_libraries_annotation(describer->libraries, pid);

	if (describer->follow_children)
		settings.flags |= RLS_PROCESS_FOLLOW;
	if (address && !rls_annotation_reader_descriptor(pid, address, &descriptor)) {
		settings.annotate_offset = descriptor.thread_pointer_offset;
		settings.phase_address = address + offsetof(struct rls_annotate_descriptor, phase);
		settings.flags |= RLS_PROCESS_ANNOTATED;
	}
	return rls_kernel_track(describer->kernel, pid, &settings);
}

static int add_edge(const struct rls_describer *describer, pid_t pid, uint64_t time_ns,
		    enum rls_edge_kind kind, uint64_t name_address)
{
	struct rls_edge edge = {.time_ns = time_ns, .kind = kind, .name = name_address};
	char name[RLS_NAME_BYTES];
	int length = name_address ? rls_annotation_reader_name(pid, name_address, name) : -ENOENT;

	if (length < 0)
		return 0;
	return rls_translator_add_edge(describer->translator, (uint32_t)pid, (uint32_t)pid, &edge,
				       name, (size_t)length);
}

int rls_describe_phase(const struct rls_describer *describer, pid_t pid, uint64_t time_ns)
{
	uint64_t address = rls_libraries_annotation(describer->libraries, pid);
	struct rls_annotate_descriptor descriptor;
	int r;

	if (!address || rls_annotation_reader_descriptor(pid, address, &descriptor))
		return 0;
	r = add_edge(describer, pid, time_ns, RLS_EDGE_PROCESS_NAME, descriptor.process_name);
	return r ? r : add_edge(describer, pid, time_ns, RLS_EDGE_PHASE, descriptor.phase);
}

int rls_describe(const struct rls_describer *describer, pid_t pid, uint64_t time_ns)
{
	int r = rls_describe_process(describer, pid, time_ns);

	if (!r)
		r = rls_describe_settings(describer, pid);
	return r ? r : rls_describe_phase(describer, pid, time_ns);
}
