/* The recorder watches its targets: which processes are new, and what processes have mapped since. */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "userspace/base/log.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/record/budget/overhead_controller.h"
#include "userspace/record/probes/probed_files.h"
#include "userspace/record/samples/code_map.h"
#include "userspace/record/samples/interpreters.h"
#include "userspace/record/samples/open_waits.h"
#include "userspace/record/samples/stack_samples.h"
#include "userspace/record/session.h"
#include "userspace/record/targets/mmap_watch.h"

int rls_recorder_consume_timely(struct rls_recorder *recorder, uint64_t time_ns)
{
	/* A command of ours may be over by then, and the names of its code with it. */
	if (recorder->controller && !recorder->describer.launched &&
	    rls_overhead_controller_is_beginning(recorder->controller, time_ns))
		return rls_kernel_consume_all_but_stacks(recorder->kernel);
	return rls_kernel_consume(recorder->kernel);
}

int rls_recorder_scan(struct rls_recorder *recorder, pid_t pid, uint64_t time_ns)
{
	size_t sites = rls_libraries_sites(recorder->libraries);
	struct rls_target *target = rls_targets_find(&recorder->targets, pid);
	uint64_t since_ns = target ? rls_late_probes_begin_scan(target) : 0;
	int r = rls_libraries_scan(recorder->libraries, pid, time_ns);

	/* It may have found what was mapped after the last drain. */
	rls_recorder_drain_maps(recorder);
	if (target)
		rls_late_probes_scanned(target, since_ns,
					!r && rls_libraries_sites(recorder->libraries) > sites,
					rls_monotonic_ns());
	return r;
}

/* From its exec on, if that was seen: nothing native can have been entered before. */
static void become_python(struct rls_recorder *recorder, const struct rls_target *target,
			  uint64_t time_ns)
{
	struct rls_event event = {.kind = RLS_EVENT_CATEGORY,
				  .pid = (uint32_t)target->pid,
				  .tid = (uint32_t)target->pid,
				  .time_ns = target->execed_ns};

	rls_describe_process(&recorder->describer, target->pid, time_ns);
	event.category.category = RLS_CATEGORY_PYTHON;
	if (target->execed_ns)
		rls_event_output_add(&recorder->output, &event);
}

static void scan_target(struct rls_recorder *recorder, struct rls_target *followed,
			uint64_t time_ns)
{
	pid_t pid = followed->pid;
	bool was_python = rls_recorder_is_python(recorder, pid);
	bool was_annotated = rls_libraries_annotation(recorder->libraries, pid) != 0;
	uint64_t due_ns;

	followed->scan_ns = 0;
	followed->checked_ns = time_ns;
	if (rls_recorder_scan(recorder, pid, time_ns))
		return; /* it has ended, or is just being replaced */
	due_ns = rls_libraries_due_ns(recorder->libraries, pid);
	if (due_ns)
		rls_targets_scan_at(&recorder->targets, pid, due_ns);
	if (rls_recorder_is_python(recorder, pid)) {
		rls_interpreters_check(recorder->interpreters, pid, time_ns);
		if (!was_python)
			become_python(recorder, followed, time_ns);
	}
	if (!was_annotated && rls_libraries_annotation(recorder->libraries, pid)) {
		rls_describe_settings(&recorder->describer, pid);
		rls_describe_phase(&recorder->describer, pid, time_ns);
	}
}

static void scan_where_due(struct rls_recorder *recorder)
{
	for (size_t i = 0; i < recorder->targets.count; i++) {
		struct rls_target *followed = recorder->targets.all[i];
		uint64_t time_ns = rls_monotonic_ns();

		if (!followed->scan_ns || time_ns < followed->scan_ns)
			continue;
		rls_priority_hurry(); /* it may put probes on, which its calls wait for */
		scan_target(recorder, followed, time_ns);
		/* Discovery takes its time: do not let the rings run full meanwhile. */
		rls_recorder_consume_timely(recorder, rls_monotonic_ns());
	}
}

/* Of what is probed alone it is enough that it is a library whose calls count. */
static bool is_probed_alone(const struct rls_role_match *match)
{
	return match->role != RLS_ROLE_PYTHON && match->role != RLS_ROLE_CUDA &&
	       (rls_role_match_takes_methods(match) || rls_role_match_takes_exports(match));
}

static void on_mapped(void *context, pid_t pid, const struct rls_mapping *mapping, uint64_t time_ns)
{
	struct rls_recorder *recorder = context;
	struct rls_target *target = rls_targets_find(&recorder->targets, pid);
	struct rls_role_match match;
	bool has_role = rls_roles_match(recorder->options.roles, mapping->path, &match);

	if (rls_libraries_mapped(recorder->libraries, pid, mapping->path))
		rls_debug("cannot see whether process %d switches stacks", pid);
	rls_code_map_forget(recorder->code_map, pid);
	rls_interpreters_mapped(recorder->interpreters, pid);
	if (target && !target->mapped_ns)
		target->mapped_ns = time_ns;
	if (has_role && is_probed_alone(&match))
		rls_ended_maps_note(&recorder->ended_maps, pid, mapping, time_ns);
	/* A library with a role may be called as soon as it is loaded. */
	rls_targets_scan_at(&recorder->targets, pid,
			    rls_monotonic_ns() + (has_role ? 0 : RLS_SCAN_DELAY_NS));
	rls_new_processes_mapped(&recorder->new_processes, pid);
}

void rls_recorder_drain_maps(void *context)
{
	struct rls_recorder *recorder = context;

	rls_mmap_watch_drain(recorder->mmap_watch, on_mapped, recorder);
	if (recorder->layers && rls_layers_spare(recorder->layers))
		rls_debug("calls of layers where stacks are switched may be lost");
}

#define ASKED_MAX 64
/* A process that finds this very file by its path: who maps it has ended. 0: there is none. */
static pid_t who_finds(const struct rls_recorder *recorder, const struct rls_mapping *mapping)
{
	for (size_t i = 0; i <= recorder->targets.count && i <= ASKED_MAX; i++) {
		pid_t pid = i ? recorder->targets.all[i - 1]->pid : getpid();
		char path[RLS_ENDED_PATH_BYTES + 32];
		struct stat status;

		snprintf(path, sizeof(path), "/proc/%d/root%s", pid, mapping->path);
		if (!stat(path, &status) && status.st_ino == mapping->inode &&
		    status.st_dev == makedev(mapping->device_major, mapping->device_minor))
			return pid;
	}
	return 0;
}

static const struct rls_probed_file *probed_file_of(const struct rls_recorder *recorder,
						    const struct rls_mapping *mapping)
{
	const struct rls_probed_file *file = rls_libraries_file(
		recorder->libraries, makedev(mapping->device_major, mapping->device_minor),
		mapping->inode);

	return file && file->sites ? file : NULL;
}

/* For how long an ended process had the file before its probes were live. */
static uint64_t missed_ns(const struct rls_ended_map *map, const struct rls_probed_file *file)
{
	uint64_t until_ns = file->live_ns < map->ended_ns ? file->live_ns : map->ended_ns;

	return until_ns > map->since_ns ? until_ns - map->since_ns : 0;
}

void rls_recorder_probe_ended(struct rls_recorder *recorder)
{
	struct rls_ended_map map;
	pid_t counted = 0;

	while (rls_ended_maps_take(&recorder->ended_maps, &map)) {
		pid_t pid = 0;

		map.mapping.path = map.path;
		if (!recorder->draining && !probed_file_of(recorder, &map.mapping))
			pid = who_finds(recorder, &map.mapping);
		if (pid) {
			rls_priority_hurry(); /* the next may come at once */
			rls_libraries_probe_mapping(recorder->libraries, pid, &map.mapping);
		}
		/* Where nothing is to be probed nothing is missed. */
		if (map.pid != counted && probed_file_of(recorder, &map.mapping) &&
		    missed_ns(&map, probed_file_of(recorder, &map.mapping))) {
			counted = map.pid;
			rls_late_probes_missed(
				&recorder->late,
				missed_ns(&map, probed_file_of(recorder, &map.mapping)));
		}
	}
}

int rls_recorder_read_open_waits(struct rls_recorder *recorder)
{
	/* A process of ours that has not executed its program yet waits for us. */
	bool ours = recorder->describer.launched != 0;
	const struct rls_open_waits waits = {recorder->kernel, recorder->interpreters,
					     recorder->code_map, &recorder->output,
					     ours ? NULL : recorder->samples};

	return rls_open_waits_read(&waits);
}

void rls_recorder_adopt(void *context, pid_t pid)
{
	struct rls_recorder *recorder = context;
	size_t known = recorder->targets.count;
	uint64_t time_ns = rls_monotonic_ns();

	rls_priority_hurry();
	if (rls_recorder_follow_tree(recorder, pid, false))
		return;
	rls_kernel_meet(recorder->kernel, time_ns);
	rls_recorder_read_open_waits(recorder);
	for (size_t i = known; i < recorder->targets.count; i++) {
		pid_t added = recorder->targets.all[i]->pid;

		rls_describe(&recorder->describer, added, time_ns);
		rls_targets_scan_at(&recorder->targets, added, time_ns + RLS_SCAN_DELAY_NS);
	}
	if (recorder->controller)
		rls_overhead_controller_adopt(recorder->controller, time_ns);
	rls_debug("process %d is recorded from now on", pid);
	/* Discovery takes its time: do not let the rings run full meanwhile. */
	rls_recorder_consume_timely(recorder, rls_monotonic_ns());
}

void rls_recorder_scan_targets(struct rls_recorder *recorder, uint64_t time_ns)
{
	rls_recorder_drain_maps(recorder);
	if (recorder->controller && rls_overhead_controller_is_brief(recorder->controller, time_ns))
		return;
	rls_recorder_probe_ended(recorder);
	rls_new_processes_find(&recorder->new_processes, time_ns, rls_recorder_adopt, recorder);
	scan_where_due(recorder);
}
