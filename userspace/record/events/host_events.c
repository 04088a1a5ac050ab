#include "userspace/record/events/host_events.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <jansson.h>

#include "analysis/base/cleanup.h"
#include "analysis/timeline/trace_metadata.h"
#include "userspace/base/clock.h"

#define CLOCK_READINGS 8

/* The model line that NVIDIA's driver shows for each device. */
static void add_gpu(json_t *gpus, const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		char *model;

		if (strncmp(line, "Model:", 6))
			continue;
		model = line + 6 + strspn(line + 6, " \t");
		model[strcspn(model, "\n")] = '\0';
		json_array_append_new(gpus, json_string(model));
	}
}

static char *list_gpus(void)
{
	json_t *gpus = json_array();
	glob_t found = {0};
	char *text;

	if (!glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			add_gpu(gpus, found.gl_pathv[i]);
	}
	globfree(&found);
	text = gpus ? json_dumps(gpus, JSON_COMPACT) : NULL;
	json_decref(gpus);
	return text;
}

/* The narrowest of a few readings: CLOCK_REALTIME between two readings of CLOCK_MONOTONIC. */
static void read_clocks(struct rls_event *event)
{
	event->clock.width_ns = UINT64_MAX;
	for (int i = 0; i < CLOCK_READINGS; i++) {
		uint64_t before_ns = rls_monotonic_ns();
		uint64_t realtime_ns = rls_clock_ns(CLOCK_REALTIME);
		uint64_t width_ns = rls_monotonic_ns() - before_ns;

		if (width_ns >= event->clock.width_ns)
			continue;
		event->time_ns = before_ns + width_ns / 2;
		event->clock.realtime_ns = realtime_ns;
		event->clock.width_ns = width_ns;
	}
}

int rls_host_clock(struct rls_event_output *output)
{
	struct rls_event event = {.kind = RLS_EVENT_CLOCK};
	_cleanup_fclose_ FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	char boot[64];
	int r;

	/* Without it nobody could tell whose clock this is. */
	if (!file || !fgets(boot, sizeof(boot), file))
		return 0;
	boot[strcspn(boot, "\n")] = '\0';
	read_clocks(&event);
	r = rls_event_output_string(output, boot, &event.clock.boot);
	return r ? r : rls_event_output_add(output, &event);
}

int rls_host_event(struct rls_event_output *output, uint64_t time_ns)
{
	struct rls_event event = {.kind = RLS_EVENT_HOST, .time_ns = time_ns};
	_cleanup_free_ char *gpus = list_gpus();
	struct utsname name;
	int r;

	if (!gpus)
		return -ENOMEM;
	uname(&name);
	event.host.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	r = rls_event_output_string(output, name.release, &event.host.kernel);
	if (!r)
		r = rls_event_output_string(output, gpus, &event.host.gpus);
	if (!r)
		r = rls_event_output_string(output, "rlscope-bpf " RLS_VERSION, &event.host.tool);
	return r ? r : rls_event_output_add(output, &event);
}

int rls_host_figure(struct rls_event_output *output, const char *name, double value_ns,
		    double error_ns, uint64_t time_ns)
{
	struct rls_event event = {.kind = RLS_EVENT_CALIBRATION, .time_ns = time_ns};
	int r = rls_event_output_string(output, name, &event.calibration.name);

	event.calibration.value_ns = value_ns;
	event.calibration.error_ns = error_ns;
	return r ? r : rls_event_output_add(output, &event);
}

int rls_host_calibration(struct rls_event_output *output, const struct rls_calibration_file *file,
			 uint64_t time_ns)
{
	const struct rls_calibration *calibration = &file->calibration;
	struct rls_calibrated hit = rls_calibration_mean_hit(calibration);
	char source[64];
	int r;

	snprintf(source, sizeof(source), RLS_FIGURE_SOURCE "%s",
		 rls_calibration_source_name(file->source));
	r = rls_host_figure(output, source, 0, 0, time_ns);
	for (int path = 0; !r && path < RLS_PATH_MAX; path++)
		r = rls_host_figure(output, rls_path_name(path), calibration->paths[path].value_ns,
				    calibration->paths[path].error_ns, time_ns);
	return r ? r : rls_host_figure(output, RLS_FIGURE_HIT, hit.value_ns, hit.error_ns, time_ns);
}
