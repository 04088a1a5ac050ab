/* A recorder's parts: what each takes to open and to close. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "bpf/wire/maps.h"
#include "userspace/attach/hit_costs.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_memory.h"
#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/attach/kernel/kernel_sampling.h"
#include "userspace/attach/kernel/kernel_windows.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/hangup.h"
#include "userspace/base/log.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/record/budget/overhead_controller.h"
#include "userspace/record/calibrate/probe_toggle.h"
#include "userspace/record/gpu/cuda_calls.h"
#include "userspace/record/gpu/gpu_activity.h"
#include "userspace/record/samples/code_map.h"
#include "userspace/record/samples/interpreters.h"
#include "userspace/record/samples/stack_samples.h"
#include "userspace/record/session.h"
#include "userspace/record/targets/mmap_watch.h"

/* Waits whose stacks are walked, of a thread in a second: at 5 us each where a sample is 25, as much of a
 * budget; all that matter where there is none. */
#define WAITS_A_SAMPLE 5
#define WAITS_HZ_MAX 2560
/* Of the overhead budget, what counting memory may cost. */
#define MEMORY_SHARE 0.5
/* Where fewer may be open, auto counts no memory. */
#define MEMORY_DESCRIPTORS 256
#define CONTROL_BYTES (8U << 20)
#define GPU_BYTES (16U << 20)
#define STACKS_BYTES (8U << 20)

/* ---- kernel side ---- */

/* Events are measured by the records that come of them, of which there are none when the kernel
 * side keeps totals: that costs about as much. */
static int open_totals(struct rls_recorder *recorder, struct rls_kernel_options *options)
{
	struct rls_hit_costs costs;
	int r;

	rls_kernel_close(recorder->kernel);
	recorder->kernel = NULL;
	options->totals_mode = true;
	r = rls_kernel_open(options, &recorder->kernel);
	costs = rls_calibration_costs(&recorder->costs.calibration);
	if (!r)
		rls_kernel_set_costs(recorder->kernel, &costs);
	return r;
}

static bool wants_memory(const struct rls_recorder *recorder)
{
	if (recorder->options.memory == RLS_MEMORY_OFF || recorder->options.listener)
		return false;
	/* What traces needs them more. */
	return recorder->options.memory == RLS_MEMORY_ALL ||
	       rls_descriptors_suffice(MEMORY_DESCRIPTORS);
}

static bool wants_layers(const struct rls_recorder *recorder)
{
	return recorder->options.layer_depth && !recorder->options.listener;
}

static int open_kernel(struct rls_recorder *recorder)
{
	struct rls_kernel_options options = {
		.way = recorder->options.perf_events ? RLS_ATTACH_PERF : RLS_ATTACH_AUTO,
		.transitions_bytes = rls_kernel_ring_bytes(),
		.control_bytes = CONTROL_BYTES,
		.gpu_bytes = GPU_BYTES,
		.stacks_bytes = recorder->options.sample_hz ? STACKS_BYTES : 0,
		.memory = wants_memory(recorder),
		.memory_if_possible = recorder->options.memory == RLS_MEMORY_AUTO,
		.layer_depth = wants_layers(recorder) ? recorder->options.layer_depth : 0,
		.windows = recorder->options.budget_percent >= 0 || recorder->options.alternate,
		.each_off_cpu = recorder->options.alternate,
	};
	int r = rls_kernel_open(&options, &recorder->kernel);

	if (r)
		return r;
	rls_calibration_cache_open(recorder->kernel, recorder->options.command, &recorder->costs);
	return recorder->options.listener ? open_totals(recorder, &options) : 0;
}

static void close_kernel(struct rls_recorder *recorder)
{
	rls_kernel_close(recorder->kernel);
	rls_calibration_file_clear(&recorder->costs);
}

static int open_handler(struct rls_recorder *recorder)
{
	return rls_kernel_set_handler(recorder->kernel, rls_recorder_take, recorder);
}

/* It takes a while to see whether they work: with probes on, that would be expensive. */
static int open_ticks(struct rls_recorder *recorder)
{
	return rls_kernel_start_ticks(recorder->kernel);
}

/* Probes come with processes. They go first of all, while everybody is there who needs it. */
static void close_probes(struct rls_recorder *recorder)
{
	rls_kernel_detach(recorder->kernel);
}

/* ---- staying off the targets' CPUs ---- */

static void recorder_parts_visit(void *context)
{
	struct rls_recorder *recorder = context;

	rls_priority_hurry();
	rls_affinity_visit(&recorder->affinity);
}

static void recorder_parts_leave(void *context)
{
	struct rls_recorder *recorder = context;

	rls_affinity_leave(&recorder->affinity);
}

static int open_affinity(struct rls_recorder *recorder)
{
	const struct rls_kernel_switching switching = {recorder_parts_visit, recorder_parts_leave,
						       recorder};

	rls_affinity_open(&recorder->affinity);
	rls_kernel_set_switching(recorder->kernel, &switching);
	return 0;
}

static void close_affinity(struct rls_recorder *recorder)
{
	rls_affinity_close(&recorder->affinity);
}

/* ---- events ---- */

static int open_output(struct rls_recorder *recorder)
{
	const struct rls_recorder_listener *listener = recorder->options.listener;
	int r = rls_event_output_init(&recorder->output);

	if (!r && listener)
		rls_event_output_listen(&recorder->output, listener->event, listener->context);
	return r;
}

static void close_output(struct rls_recorder *recorder)
{
	if (recorder->output.strings)
		rls_event_output_close(&recorder->output);
}

static int open_translator(struct rls_recorder *recorder)
{
	const struct rls_process_watcher watcher = rls_recorder_watcher(recorder);
	struct rls_event_sink sink = rls_event_output_sink(&recorder->output);
	struct rls_calibrated hit = rls_calibration_mean_hit(&recorder->costs.calibration);
	int r = rls_translator_new(&sink, &watcher, &recorder->translator);

	if (!r)
		rls_translator_set_excess(recorder->translator, rls_calibrated_excess(&hit));
	return r;
}

static void close_translator(struct rls_recorder *recorder)
{
	rls_translator_free(recorder->translator);
}

/* ---- processes ---- */

static void close_targets(struct rls_recorder *recorder)
{
	rls_targets_clear(&recorder->targets);
}

static int open_new_processes(struct rls_recorder *recorder)
{
	recorder->new_processes = (struct rls_new_processes){
		.selection = recorder->options.selection,
		.roles = recorder->options.roles,
		.followed = &recorder->targets,
		.follow_children = recorder->options.follow_children,
	};
	return 0;
}

static void close_new_processes(struct rls_recorder *recorder)
{
	rls_new_processes_clear(&recorder->new_processes);
}

static int open_catch_up(struct rls_recorder *recorder)
{
	recorder->catch_up = (struct rls_catch_up){.kernel = recorder->kernel,
						   .translator = recorder->translator,
						   .followed = &recorder->targets};
	return 0;
}

static void close_losses(struct rls_recorder *recorder)
{
	rls_losses_clear(&recorder->losses);
	rls_early_records_clear(&recorder->early);
}

static int open_describer(struct rls_recorder *recorder)
{
	recorder->describer = (struct rls_describer){recorder->kernel,
						     &recorder->output,
						     recorder->translator,
						     recorder->libraries,
						     recorder->options.follow_children,
						     &recorder->costs,
						     rls_gpu_calls(recorder->gpu),
						     0,
						     NULL};
	return 0;
}

static int open_mmap_watch(struct rls_recorder *recorder)
{
	int r = rls_mmap_watch_open(&recorder->mmap_watch);

	if (r)
		return rls_error_r(r, "cannot watch for libraries being loaded: %s", rls_reason(r));
	rls_libraries_on_probed(recorder->libraries, rls_recorder_drain_maps, recorder);
	return rls_libraries_mapped(recorder->libraries, 0, ""); /* who is there already */
}

static void close_mmap_watch(struct rls_recorder *recorder)
{
	rls_mmap_watch_close(recorder->mmap_watch);
}

/* ---- libraries and GPU ---- */

static int open_libraries(struct rls_recorder *recorder)
{
	return rls_libraries_new(recorder->kernel, recorder->options.roles, &recorder->output,
				 &recorder->targets, &recorder->libraries);
}

static void close_libraries(struct rls_recorder *recorder)
{
	rls_libraries_free(recorder->libraries);
}

static void consume_control(void *kernel)
{
	rls_kernel_consume_control(kernel);
}

static int name_cuda_entry(void *calls, uint32_t site, const char *name)
{
	return rls_cuda_calls_site(calls, site, name);
}

static int open_gpu(struct rls_recorder *recorder)
{
	int r = rls_gpu_new(&recorder->output, recorder->translator, &recorder->gpu);

	if (r)
		return r;
	rls_gpu_set_refresh(recorder->gpu, consume_control, recorder->kernel);
	if (wants_memory(recorder))
		rls_gpu_want_copies(recorder->gpu);
	rls_libraries_on_cuda_entry(recorder->libraries, name_cuda_entry,
				    rls_gpu_calls(recorder->gpu));
	return 0;
}

static void close_gpu(struct rls_recorder *recorder)
{
	rls_gpu_free(recorder->gpu);
}

static bool wants_probe_toggle(const struct rls_recorder *recorder)
{
	return recorder->options.alternate;
}

static void arm_bridges(void *libraries, bool armed)
{
	rls_libraries_arm(libraries, armed);
}

static bool is_bridged(void *libraries)
{
	return rls_libraries_bridged(libraries);
}

static int open_cupti_toggle(struct rls_recorder *recorder)
{
	recorder->cupti_toggle.bridges =
		(struct rls_cupti_switch){recorder->libraries, arm_bridges, is_bridged};
	rls_cuda_calls_listen(rls_gpu_calls(recorder->gpu), rls_cupti_toggle_call,
			      &recorder->cupti_toggle);
	return 0;
}

static void close_cupti_toggle(struct rls_recorder *recorder)
{
	rls_cupti_toggle_clear(&recorder->cupti_toggle);
}

/* ---- samples ---- */

static int open_interpreters(struct rls_recorder *recorder)
{
	struct rls_event_sink sink = rls_event_output_sink(&recorder->output);

	bool named = recorder->options.sample_hz || wants_memory(recorder);

	return rls_interpreters_new(recorder->kernel, named ? &sink : NULL, &recorder->targets,
				    &recorder->interpreters);
}

static void close_interpreters(struct rls_recorder *recorder)
{
	rls_interpreters_free(recorder->interpreters);
}

static int open_code_map(struct rls_recorder *recorder)
{
	return rls_code_map_new(recorder->libraries, &recorder->code_map);
}

static void close_code_map(struct rls_recorder *recorder)
{
	rls_code_map_free(recorder->code_map);
}

static bool wants_samples(const struct rls_recorder *recorder)
{
	return recorder->options.sample_hz != 0;
}

static int open_samples(struct rls_recorder *recorder)
{
	unsigned int hz = recorder->options.sample_hz, waits_hz = WAITS_A_SAMPLE * hz;
	int r = rls_samples_new(recorder->kernel, recorder->interpreters, recorder->code_map,
				&recorder->output, &recorder->samples);

	if (recorder->options.budget_percent < 0 || waits_hz > WAITS_HZ_MAX)
		waits_hz = WAITS_HZ_MAX;
	if (!r)
		rls_kernel_attach_stacks(recorder->kernel, hz, waits_hz);
	return r ? rls_error_r(r, "cannot sample stacks: %s", rls_reason(r)) : 0;
}

static void close_samples(struct rls_recorder *recorder)
{
	rls_samples_free(recorder->samples);
}

/* ---- memory ---- */

static int open_memory(struct rls_recorder *recorder)
{
	const struct rls_memory_parts parts = {
		.kernel = recorder->kernel,
		.interpreters = recorder->interpreters,
		.translator = recorder->translator,
		.output = &recorder->output,
		.targets = &recorder->targets,
		.share = recorder->options.memory == RLS_MEMORY_ALL
				 ? -1
				 : MEMORY_SHARE * recorder->options.budget_percent / 100,
	};
	int r;

	if (!rls_kernel_memory_lines(recorder->kernel))
		return 0;
	r = rls_memory_new(&parts, &recorder->memory);
	if (r)
		return rls_error_r(r, "cannot record memory: %s", strerror(-r));
	return 0;
}

static void close_memory(struct rls_recorder *recorder)
{
	rls_memory_free(recorder->memory);
}

/* ---- layers ---- */

static int open_layers(struct rls_recorder *recorder)
{
	const struct rls_layers_parts parts = {
		.kernel = recorder->kernel,
		.output = &recorder->output,
		.targets = &recorder->targets,
		.budget_percent = recorder->options.budget_percent,
	};
	int r = rls_layers_new(&parts, &recorder->layers);

	return r ? rls_error_r(r, "cannot record layers: %s", strerror(-r)) : 0;
}

static void close_layers(struct rls_recorder *recorder)
{
	rls_layers_free(recorder->layers);
}

/* ---- what processes map ---- */

static int take_mappings(void *context, struct rls_files *files, pid_t pid,
			 const struct rls_mappings *mappings)
{
	struct rls_recorder *recorder = context;
	int r = recorder->memory ? rls_memory_mapped(recorder->memory, files, pid, mappings) : 0;

	return r || !recorder->layers ? r
				      : rls_layers_mapped(recorder->layers, files, pid, mappings);
}

static bool wants_mappings(const struct rls_recorder *recorder)
{
	return wants_memory(recorder) || wants_layers(recorder);
}

static int open_mappings(struct rls_recorder *recorder)
{
	rls_libraries_on_mappings(recorder->libraries, take_mappings, recorder);
	return 0;
}

static void close_mappings(struct rls_recorder *recorder)
{
	rls_libraries_on_mappings(recorder->libraries, NULL, NULL);
}

/* ---- when which probe is on ---- */

static int open_probe_toggle(struct rls_recorder *recorder)
{
	struct rls_calibrated hit = rls_calibration_mean_hit(&recorder->costs.calibration);

	if (!rls_kernel_has_windows(recorder->kernel))
		return rls_error_r(-ENOTSUP, "probes cannot go on and off together on this kernel "
					     "(it needs 6.6 or newer)");
	return rls_probe_toggle_new(recorder->kernel, hit, &recorder->probe_toggle);
}

static void close_probe_toggle(struct rls_recorder *recorder)
{
	rls_probe_toggle_free(recorder->probe_toggle);
}

static bool wants_controller(const struct rls_recorder *recorder)
{
	return !recorder->options.alternate && rls_kernel_has_windows(recorder->kernel);
}

static int open_controller(struct rls_recorder *recorder)
{
	const struct rls_recorder_listener *listener = recorder->options.listener;
	struct rls_calibrated hit = rls_calibration_mean_hit(&recorder->costs.calibration);
	int r = rls_overhead_controller_new(recorder->kernel, recorder->code_map, &recorder->output,
					    recorder->options.budget_percent, hit.value_ns,
					    &recorder->controller);

	if (!r)
		rls_libraries_count_to(recorder->libraries, RLS_SITES_COUNTED);
	return r || !listener ? r
			      : rls_overhead_controller_use_totals(
					recorder->controller, listener->sampled, listener->context);
}

static void close_controller(struct rls_recorder *recorder)
{
	rls_overhead_controller_free(recorder->controller);
}

/* ---- event loop ---- */

static int add_to_loop(struct rls_recorder *recorder)
{
	struct epoll_event event = {.events = EPOLLIN};
	int written_fd = rls_libraries_written_fd(recorder->libraries);

	recorder->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (recorder->signal_fd < 0 || recorder->epoll_fd < 0)
		return -errno;
	if (epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, recorder->signal_fd, &event) ||
	    epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, rls_kernel_poll_fd(recorder->kernel),
		      &event) ||
	    epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, rls_mmap_watch_fd(recorder->mmap_watch),
		      &event))
		return -errno;
	if (written_fd >= 0)
		epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, written_fd, &event);
	return 0;
}

static int open_loop(struct rls_recorder *recorder)
{
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	if (recorder->options.listener || !rls_hangup_is_ignored()) /* a listener has its own use */
		sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	recorder->epoll_fd = -1;
	recorder->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	r = add_to_loop(recorder);
	return r ? rls_error_r(r, "cannot set up the event loop: %s", rls_reason(r)) : 0;
}

static void close_loop(struct rls_recorder *recorder)
{
	if (recorder->signal_fd >= 0)
		close(recorder->signal_fd);
	if (recorder->epoll_fd >= 0)
		close(recorder->epoll_fd);
}

/* ---- all of them ---- */

/* A part may use those above it. */
static const struct part {
	bool (*wanted)(const struct rls_recorder *recorder); /* NULL: always */
	int (*open)(struct rls_recorder *recorder); /* NULL: nothing is to be done; 0 or -errno */
	void (*close)(
		struct rls_recorder *recorder); /* NULL: the same; open may have failed half way */
} parts[] = {
	{NULL, open_kernel, close_kernel},
	{NULL, open_output, close_output},
	{NULL, open_affinity, close_affinity},
	{NULL, NULL, close_targets},
	{NULL, open_new_processes, close_new_processes},
	{NULL, open_interpreters, close_interpreters},
	{NULL, open_translator, close_translator},
	{NULL, open_catch_up, close_losses},
	{NULL, open_libraries, close_libraries},
	{NULL, open_gpu, close_gpu},
	{wants_probe_toggle, open_cupti_toggle, close_cupti_toggle},
	{NULL, open_describer, NULL},
	{NULL, open_handler, NULL},
	{NULL, open_code_map, close_code_map},
	{wants_samples, open_samples, close_samples},
	{NULL, rls_recorder_observe_targets, NULL},
	/* The last to come is the first to forget: names are asked for until then. */
	{wants_memory, open_memory, close_memory},
	{wants_layers, open_layers, close_layers},
	{wants_mappings, open_mappings, close_mappings},
	{wants_probe_toggle, open_probe_toggle, close_probe_toggle},
	{wants_controller, open_controller, close_controller},
	{NULL, open_ticks, NULL},
	{NULL, open_mmap_watch, close_mmap_watch},
	{NULL, open_loop, close_loop},
	{NULL, NULL, close_probes},
};

static bool is_wanted(const struct part *part, const struct rls_recorder *recorder)
{
	return !part->wanted || part->wanted(recorder);
}

int rls_recorder_open_parts(struct rls_recorder *recorder)
{
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (is_wanted(&parts[i], recorder) && parts[i].open)
			r = parts[i].open(recorder);
		recorder->parts_open = i + 1;
	}
	return r;
}

void rls_recorder_close_parts(struct rls_recorder *recorder)
{
	for (; recorder->parts_open; recorder->parts_open--) {
		const struct part *part = &parts[recorder->parts_open - 1];

		if (part->close && is_wanted(part, recorder))
			part->close(recorder);
	}
}
