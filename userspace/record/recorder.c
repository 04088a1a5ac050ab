#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "bpf/wire/maps.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/attach/kernel/kernel_sampling.h"
#include "userspace/base/log.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/record/budget/overhead_controller.h"
#include "userspace/record/calibrate/probe_toggle.h"
#include "userspace/record/coverage_warnings.h"
#include "userspace/record/drain.h"
#include "userspace/record/events/host_events.h"
#include "userspace/record/events/operation_globs.h"
#include "userspace/record/events/operation_warnings.h"
#include "userspace/record/events/translate.h"
#include "userspace/record/gpu/cuda_calls.h"
#include "userspace/record/gpu/gpu_activity.h"
#include "userspace/record/recorder.h"
#include "userspace/record/samples/interpreters.h"
#include "userspace/record/samples/stack_samples.h"
#include "userspace/record/session.h"
#include "userspace/record/targets/process_info.h"

#define TICK_MS 10

/* ---- opening ---- */

int rls_recorder_open(const struct rls_recorder_options *options, struct rls_recorder **out)
{
	struct rls_recorder *recorder = calloc(1, sizeof(*recorder));
	int r;

	if (!recorder)
		return -ENOMEM;
	recorder->options = *options;
	/* Who is forked is among all, and is known at once only by its parent. */
	recorder->options.follow_children |= (options->selection->kinds & RLS_SELECT_ALL) != 0;
	r = rls_recorder_open_parts(recorder);
	if (r) {
		rls_recorder_free(recorder);
		return r;
	}
	*out = recorder;
	return 0;
}

void rls_recorder_free(struct rls_recorder *recorder)
{
	if (!recorder)
		return;
	rls_recorder_close_parts(recorder);
	free(recorder);
}

/* ---- recording ---- */

/* Every process there is at the start; those forked while probes were put on come with the first records. */
static int begin_trace(struct rls_recorder *recorder)
{
	int r = rls_host_event(&recorder->output, recorder->start_ns);

	rls_calibration_cache_announce(&recorder->costs);
	if (!r)
		r = rls_host_calibration(&recorder->output, &recorder->costs, recorder->start_ns);

	for (size_t i = 0; !r && i < recorder->targets.count; i++) {
		const struct rls_target *followed = recorder->targets.all[i];
		pid_t pid = followed->pid;

		if (rls_process_exists(pid) == -ESRCH)
			continue; /* gone already; the kernel side tells */
		r = rls_describe(&recorder->describer, pid, recorder->start_ns);
		if (r == -ESRCH)
			r = 0;
		if (followed->root && !recorder->describer.launched)
			rls_missing_at_start(recorder->libraries, &recorder->output, pid,
					     recorder->start_ns);
	}
	return r;
}

static void announce(struct rls_recorder *recorder)
{
	bool file = !recorder->options.listener;

	rls_info("recording %zu process%s, %zu probes in %zu libraries%s%s; Ctrl-C stops",
		 recorder->targets.count, recorder->targets.count == 1 ? "" : "es",
		 rls_libraries_sites(recorder->libraries), rls_libraries_files(recorder->libraries),
		 file ? ", into " : "", file ? recorder->options.trace_path : "");
	if (file) /* who listens has a way of their own to show what goes on */
		rls_progress_start(&recorder->progress, recorder->start_ns);
}

/* True when a signal says stop. */
static bool take_signals(struct rls_recorder *recorder, const struct rls_recorder_hooks *hooks)
{
	struct signalfd_siginfo info;

	while (read(recorder->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (!hooks->on_signal || !hooks->on_signal(hooks->context, (int)info.ssi_signo,
							   info.ssi_code == SI_KERNEL))
			return true;
	}
	return false;
}

static void forget_ended_roots(struct rls_recorder *recorder)
{
	/* The kernel side tells of each end; this is for what it could not (a full ring). */
	for (size_t i = 0; i < recorder->targets.count; i++) {
		struct rls_target *followed = recorder->targets.all[i];

		if (followed->root && rls_process_exists(followed->pid) == -ESRCH)
			followed->root = false;
	}
}

static int recorder_tick(struct rls_recorder *recorder, uint64_t time_ns)
{
	const struct rls_recorder_listener *listener = recorder->options.listener;
	int r = 0;

	if (recorder->controller)
		rls_overhead_controller_probed(recorder->controller,
					       rls_libraries_sites(recorder->libraries));
	if (recorder->controller && listener && !recorder->targets.count)
		rls_overhead_controller_idle(recorder->controller, time_ns);
	else if (recorder->controller)
		r = rls_overhead_controller_tick(recorder->controller, time_ns,
						 rls_libraries_site_ids(recorder->libraries));
	return r || !listener ? r : listener->tick(listener->context, time_ns);
}

/* As one goes: a recorder that is killed leaves a trace that says what it lacks. */
static void note_losses(struct rls_recorder *recorder, uint64_t time_ns)
{
	uint64_t drops[RLS_DROP_MAX];

	rls_kernel_drops(recorder->kernel, drops);
	rls_losses_note(&recorder->losses, drops, &recorder->output, time_ns);
}

static enum rls_stop loop(struct rls_recorder *recorder, const struct rls_recorder_hooks *hooks)
{
	uint64_t checked_ns = recorder->start_ns;

	for (;;) {
		struct epoll_event events[4];
		uint64_t time_ns;

		epoll_wait(recorder->epoll_fd, events, 4, TICK_MS);
		time_ns = rls_monotonic_ns();
		rls_priority_beat(time_ns);
		if (recorder->samples) /* samples of categories alone count ticks */
			rls_kernel_draw_ticks(recorder->kernel, time_ns);
		if (rls_libraries_check_files(recorder->libraries) ||
		    rls_kernel_watch_ticks(recorder->kernel, time_ns) ||
		    rls_recorder_consume_timely(recorder, time_ns) < 0 ||
		    rls_recorder_adopt_early(recorder) ||
		    rls_event_output_said(&recorder->output, time_ns) ||
		    rls_event_output_tick(&recorder->output, time_ns))
			return RLS_STOP_FAILED;
		if (recorder_tick(recorder, time_ns) ||
		    rls_interpreters_tick(recorder->interpreters, time_ns))
			return RLS_STOP_FAILED;
		if (recorder->memory && rls_memory_tick(recorder->memory, time_ns))
			return RLS_STOP_FAILED;
		if (recorder->layers && rls_layers_tick(recorder->layers, time_ns))
			return RLS_STOP_FAILED;
		rls_affinity_tick(&recorder->affinity, time_ns);
		if (recorder->probe_toggle &&
		    rls_probe_toggle_tick(recorder->probe_toggle, time_ns,
					  rls_libraries_site_ids(recorder->libraries)))
			return RLS_STOP_FAILED;
		if (recorder->probe_toggle)
			rls_cupti_toggle_tick(&recorder->cupti_toggle, time_ns);
		if (take_signals(recorder, hooks))
			return RLS_STOP_SIGNAL;
		if (recorder->options.duration_ns &&
		    time_ns - recorder->start_ns >= recorder->options.duration_ns)
			return RLS_STOP_DURATION;
		if (!recorder->options.selection->count && !rls_targets_roots(&recorder->targets))
			return RLS_STOP_ENDED;
		if (time_ns - checked_ns > 500000000ULL) {
			checked_ns = time_ns;
			forget_ended_roots(recorder);
			rls_gpu_tick(recorder->gpu, time_ns);
			note_losses(recorder, time_ns);
			rls_missing_bridges(recorder->libraries, rls_gpu_calls(recorder->gpu),
					    &recorder->output, &recorder->targets, time_ns,
					    time_ns);
			rls_warn_of_tracers(&recorder->output, &recorder->targets, time_ns);
			if (rls_catch_up(&recorder->catch_up, rls_recorder_adopt, recorder))
				return RLS_STOP_FAILED;
		}
		rls_recorder_scan_targets(recorder, time_ns);
		rls_progress_tick(&recorder->progress, time_ns);
	}
}

int rls_recorder_run(struct rls_recorder *recorder, const struct rls_recorder_hooks *hooks,
		     enum rls_stop *why)
{
	int r = 0;

	if (!recorder->options.listener)
		r = rls_event_output_open(&recorder->output, recorder->options.trace_path);
	if (!r)
		r = rls_host_clock(&recorder->output); /* before all it is to date */
	if (!r)
		r = rls_kernel_start(recorder->kernel, &recorder->start_ns);
	if (!r)
		r = rls_recorder_read_open_waits(recorder);
	if (!r)
		r = begin_trace(recorder);
	if (!r && recorder->options.operations)
		r = rls_operation_globs_emit(recorder->options.operations, &recorder->output,
					     recorder->start_ns);
	if (r)
		return r;
	rls_warn_of_tracers(&recorder->output, &recorder->targets, recorder->start_ns);
	rls_gpu_begin(recorder->gpu, recorder->start_ns);
	if (recorder->memory)
		rls_memory_begin(recorder->memory);
	announce(recorder);
	if (recorder->controller)
		r = rls_overhead_controller_start(recorder->controller, recorder->start_ns,
						  rls_libraries_sites(recorder->libraries));
	if (r)
		return r;
	if (recorder->probe_toggle)
		rls_probe_toggle_start(recorder->probe_toggle, recorder->start_ns);
	if (hooks->started)
		hooks->started(hooks->context);
	rls_priority_record(rls_libraries_written_fd(recorder->libraries));
	*why = loop(recorder, hooks);
	rls_priority_end();
	rls_progress_end(&recorder->progress);
	recorder->failed = *why == RLS_STOP_FAILED &&
			   !recorder->options.listener; /* who listens may end it so */
	return 0;
}

/* ---- finishing ---- */

int rls_recorder_in_vivo(const struct rls_recorder *recorder, struct rls_delta_in_vivo *out,
			 struct rls_calibration *calibration)
{
	*calibration = recorder->costs.calibration;
	return recorder->probe_toggle ? rls_probe_toggle_conclude(recorder->probe_toggle, out)
				      : -ENODATA;
}

size_t rls_recorder_operation_costs(const struct rls_recorder *recorder,
				    const struct rls_delta_in_vivo *delta,
				    struct rls_operation_cost *out)
{
	size_t count = 0;

	for (size_t i = 0; i < delta->part_count && count < RLS_OPERATION_COSTS_MAX; i++) {
		const struct rls_part_cost *part = &delta->parts[i];
		const char *name = rls_string_pool_get(recorder->output.strings, part->operation);

		if (strlen(name) >= sizeof(out->operation))
			continue;
		out[count] = (struct rls_operation_cost){
			.factor = part->factor,
			.error = part->error,
		};
		strcpy(out[count++].operation, name);
	}
	return count;
}

size_t rls_recorder_cuda_costs(const struct rls_recorder *recorder, struct rls_cuda_cost *out,
			       size_t max, bool *bridged)
{
	struct rls_cupti_cost found[RLS_CUDA_COSTS_MAX];
	size_t count =
		rls_cupti_overhead_conclude(&recorder->cupti_toggle.overhead, found,
					    max < RLS_CUDA_COSTS_MAX ? max : RLS_CUDA_COSTS_MAX);

	for (size_t i = 0; i < count; i++) {
		out[i] = (struct rls_cuda_cost){.ns = found[i].ns, .error_ns = found[i].error_ns};
		snprintf(out[i].name, sizeof(out[i].name), "%s",
			 rls_string_pool_get(recorder->output.strings, found[i].name));
	}
	*bridged = rls_cupti_toggle_begun(&recorder->cupti_toggle);
	return count;
}

/* From another CPU, other than windows' edges: nothing goes by these probes any more and most are never hit, so that to be
 * interrupted for each page that is written costs a target less than to stand still until all are off (28 ms
 * and 51 for 4,100 probes). Ahead of all others, as locks of targets are held meanwhile. */
static void detach(struct rls_recorder *recorder)
{
	int nice = rls_priority_raise();

	rls_kernel_detach(recorder->kernel);
	rls_priority_lower(nice);
	rls_affinity_close(&recorder->affinity);
}

int rls_recorder_finish(struct rls_recorder *recorder)
{
	struct rls_event end = {.kind = RLS_EVENT_END};
	uint64_t drops[RLS_DROP_MAX];
	int r, failed;

	recorder->draining = true;
	rls_host_clock(&recorder->output);
	failed = rls_kernel_stop(recorder->kernel, &recorder->stop_ns);
	rls_recorder_drain_maps(recorder); /* the probes stay while what they saw is read */
	rls_missing_bridges(recorder->libraries, rls_gpu_calls(recorder->gpu), &recorder->output,
			    &recorder->targets, UINT64_MAX, recorder->stop_ns);
	r = rls_drain(recorder->kernel, recorder->gpu, recorder->stop_ns);
	if (r < 0 && !failed)
		failed = r;
	detach(recorder);
	r = rls_translator_finish(recorder->translator);
	if (r && !failed)
		failed = r;
	rls_kernel_drops(recorder->kernel, drops);
	rls_gpu_report(recorder->gpu, &drops[RLS_DROP_GPU]);
	rls_operation_warnings_report(rls_translator_oddities(recorder->translator),
				      &recorder->output, recorder->stop_ns);
	rls_losses_report(&recorder->losses, drops, &recorder->output, recorder->start_ns,
			  recorder->stop_ns);
	if (recorder->controller)
		rls_overhead_controller_report(recorder->controller, recorder->stop_ns);
	if (recorder->memory)
		rls_memory_finish(recorder->memory, recorder->stop_ns);
	if (recorder->layers)
		rls_layers_finish(recorder->layers, recorder->start_ns, recorder->stop_ns);
	if (recorder->samples)
		rls_samples_finish(recorder->samples, recorder->stop_ns);
	rls_recorder_probe_ended(recorder); /* which now only counts them */
	if (!recorder->options.listener)
		rls_late_probes_finish(&recorder->late, &recorder->targets, &recorder->output,
				       recorder->stop_ns);
	rls_event_output_said(&recorder->output, recorder->stop_ns);
	end.time_ns = recorder->stop_ns;
	end.end.complete = !recorder->failed;
	rls_event_output_add(&recorder->output, &end);
	r = rls_event_output_close(&recorder->output);
	if (r && !recorder->options.listener)
		return rls_error_r(r, "the trace %s could not be written to its end: %s",
				   recorder->options.trace_path, strerror(-r));
	if (recorder->failed)
		return rls_error_r(-EIO, "recording could not go on, and ended early");
	return failed;
}

/* ---- for who listens ---- */

struct rls_kernel *rls_recorder_kernel(struct rls_recorder *recorder)
{
	return recorder->kernel;
}

const struct rls_libraries *rls_recorder_libraries(const struct rls_recorder *recorder)
{
	return recorder->libraries;
}

int rls_recorder_consume(struct rls_recorder *recorder)
{
	return rls_kernel_consume(recorder->kernel);
}
