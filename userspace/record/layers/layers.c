#include "userspace/record/layers/layers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "userspace/attach/kernel/kernel_layers.h"
#include "userspace/base/clock.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"
#include "userspace/base/tasks.h"
#include "userspace/python/interpreter.h"
#include "userspace/record/events/event_sink.h"
#include "userspace/record/layers/layer_objects.h"
#include "userspace/record/layers/layer_probes.h"

/* How soon a process is looked at again whose interpreter has yet to start: it doubles each time. */
#define TRY_AGAIN_NS 10000000ULL
#define TRY_AGAIN_MAX_NS 2000000000ULL

struct rls_layers {
	struct rls_layers_parts parts;
	struct rls_layer_probes_table probes;
	size_t place; /* of struct process_layers among a target's states */
	size_t unprobed; /* processes that ran Python and have ended without probes */
};

struct process_layers {
	const struct rls_frame_layout *layout; /* NULL: not known (yet) */
	pid_t parent; /* whose memory it began with; 0: nobody's */
	bool python; /* it runs that, as far as is known */
	bool probed; /* or nothing more is to be tried */
	uint64_t tried_ns, wait_ns;
	struct rls_layer_objects objects;
};

/* ---- targets ---- */

static struct process_layers *layers_of(const struct rls_layers *layers,
					const struct rls_target *target)
{
	return target ? target->state[layers->place] : NULL;
}

static struct process_layers *make_layers(const struct rls_layers *layers,
					  struct rls_target *target)
{
	struct process_layers *process = target->state[layers->place];

	if (!process) {
		process = calloc(1, sizeof(*process));
		if (process)
			process->objects.pid = (uint32_t)target->pid;
		target->state[layers->place] = process;
	}
	return process;
}

/* It has its parent's interpreter and layers, at the same addresses. */
static int layers_forked(void *context, const struct rls_target *parent, struct rls_target *child,
			 uint64_t time_ns)
{
	const struct rls_layers *layers = context;
	const struct process_layers *from = layers_of(layers, parent);
	struct process_layers *process;

	(void)time_ns;
	if (!from)
		return 0;
	process = make_layers(layers, child);
	if (!process)
		return -ENOMEM;
	process->parent = parent->pid;
	if (!process->layout) {
		process->layout = from->layout;
		process->probed = from->probed;
	}
	return 0;
}

/* Another program is in no layer, whatever the one before was in. */
static void leave_layers(const struct rls_layers *layers, pid_t pid, uint64_t time_ns)
{
	struct rls_event event =
		rls_event_at(RLS_EVENT_LAYER, (uint32_t)pid, (uint32_t)pid, time_ns);

	rls_event_output_add(layers->parts.output, &event);
}

static void layers_forget(void *context, struct rls_target *target, enum rls_target_over why,
			  uint64_t time_ns)
{
	struct rls_layers *layers = context;
	struct process_layers *process = target->state[layers->place];

	if (!process)
		return;
	layers->unprobed += process->python && !process->probed && why == RLS_TARGET_ENDED;
	if (process->objects.count && why == RLS_TARGET_EXECED)
		leave_layers(layers, target->pid, time_ns);
	if (process->objects.count && why != RLS_TARGET_CLOSED)
		rls_kernel_forget_layers(layers->parts.kernel, target->pid);
	rls_layer_objects_clear(&process->objects);
	free(process);
	target->state[layers->place] = NULL;
}

int rls_layers_new(const struct rls_layers_parts *parts, struct rls_layers **out)
{
	struct rls_layers *layers = calloc(1, sizeof(*layers));
	const struct rls_target_observer observer = {layers_forked, layers_forget, layers};
	int r;

	if (!layers)
		return -ENOMEM;
	layers->parts = *parts;
	r = rls_targets_observe(parts->targets, &observer, &layers->place);
	if (r) {
		free(layers);
		return r;
	}
	rls_layer_probes_open(&layers->probes, parts->kernel);
	*out = layers;
	return 0;
}

void rls_layers_free(struct rls_layers *layers)
{
	if (!layers)
		return;
	rls_targets_leave(layers->parts.targets, layers->place);
	rls_layer_probes_close(&layers->probes);
	free(layers);
}

/* ---- interpreters ---- */

static void warn_of_unknown(const struct rls_layers *layers, pid_t pid,
			    const struct rls_python *python, uint64_t time_ns)
{

	rls_event_output_warn(layers->parts.output, time_ns,
			      "layers of process %d are not recorded: its Python is %s%s", pid,
			      python->version, python->free_threaded ? ", free-threaded" : "");
}

static void warn_of_failure(const struct rls_layers *layers, pid_t pid, uint64_t time_ns)
{

	rls_event_output_warn(
		layers->parts.output, time_ns,
		"layers of process %d are not recorded: calls of objects cannot be probed in "
		"its interpreter",
		pid);
}

/* 0: it is probed, or there is nothing to probe; -EAGAIN: not yet. */
static int probe_process(struct rls_layers *layers, struct process_layers *process, pid_t pid,
			 const struct rls_mappings *mappings, uint64_t time_ns)
{
	_cleanup_live_space_ struct rls_live_space live;
	struct rls_object_reader reader = {.space = &live.space};
	struct rls_python python;
	int r;

	rls_live_space_open(&live, pid);
	r = rls_python_find(pid, mappings, &python);
	if (r || !python.version[0])
		return r == -ENOMEM ? r : -EAGAIN;
	process->python = true;
	reader.layout = rls_frame_layout_of(&python);
	if (!rls_objects_known(reader.layout)) {
		if (python.runtime)
			warn_of_unknown(layers, pid, &python, time_ns);
		return python.runtime ? 0 : -EAGAIN;
	}
	process->layout = reader.layout;
	r = rls_layer_probes_add(&layers->probes, pid, mappings, &python, &reader);
	if (!r || r == -ENOMEM || r == -EAGAIN)
		return r;
	if (!rls_reason_is_end(r))
		warn_of_failure(layers, pid, time_ns);
	return 0;
}

static int try_process(struct rls_layers *layers, struct process_layers *process, pid_t pid,
		       const struct rls_mappings *mappings, uint64_t time_ns)
{
	int r = probe_process(layers, process, pid, mappings, time_ns);

	process->probed = !r;
	process->tried_ns = time_ns;
	process->wait_ns = process->wait_ns ? 2 * process->wait_ns : TRY_AGAIN_NS;
	if (process->wait_ns > TRY_AGAIN_MAX_NS)
		process->wait_ns = TRY_AGAIN_MAX_NS;
	return r == -EAGAIN ? 0 : r;
}

int rls_layers_mapped(struct rls_layers *layers, struct rls_files *files, pid_t pid,
		      const struct rls_mappings *mappings)
{
	struct rls_target *target = rls_targets_find(layers->parts.targets, pid);
	struct process_layers *process = target ? make_layers(layers, target) : NULL;

	layers->probes.table = files;
	if (!process)
		return target ? -ENOMEM : 0;
	if (process->probed)
		return 0;
	process->wait_ns = 0;
	return try_process(layers, process, pid, mappings, rls_monotonic_ns());
}

static int try_if_due(struct rls_layers *layers, struct process_layers *process, pid_t pid,
		      uint64_t time_ns)
{
	struct rls_mappings mappings;
	int r;

	if (process->probed || time_ns < process->tried_ns + process->wait_ns)
		return 0;
	if (rls_mappings_read(pid, &mappings))
		return 0;
	r = try_process(layers, process, pid, &mappings, time_ns);
	rls_mappings_release(&mappings);
	return r;
}

/* ---- names ---- */

/* pid: whose memory is read. */
static int name_waiting(const struct rls_layers *layers, struct process_layers *process, pid_t pid,
			uint64_t time_ns, bool now)
{
	_cleanup_live_space_ struct rls_live_space live = {.memory = -1};
	struct rls_object_reader reader = {.space = &live.space, .layout = process->layout};

	if (!process->objects.unnamed)
		return 0;
	rls_live_space_open(&live, pid);
	return rls_layer_objects_name(&process->objects, reader.layout ? &reader : NULL,
				      layers->parts.output, time_ns, now);
}

static int take_object(struct rls_layers *layers, struct process_layers *process,
		       const struct rls_wire_layer_object *object)
{
	pid_t pid = (pid_t)object->header.pid;
	_cleanup_live_space_ struct rls_live_space live = {.memory = -1};
	struct rls_object_reader reader = {.space = &live.space};
	int r = 0;

	if (!process->layout) { /* it runs a file that was probed before */
		process->wait_ns = 0;
		r = try_if_due(layers, process, pid, object->header.time_ns);
	}
	if (r)
		return r;
	reader.layout = process->layout;
	rls_live_space_open(&live, pid);
	r = rls_layer_objects_add(&process->objects, object, reader.layout ? &reader : NULL,
				  layers->parts.output);
	/* A child may have ended since; its parent has the same, mostly. */
	if (!r && process->parent && rls_live_space_probe(&live, object->type))
		r = name_waiting(layers, process, process->parent, object->header.time_ns, true);
	return r;
}

int rls_layers_take(struct rls_layers *layers, const struct rls_wire_header *record, size_t size)
{
	struct rls_target *target = rls_targets_find(layers->parts.targets, (pid_t)record->pid);
	struct process_layers *process;

	if (size < sizeof(struct rls_wire_layer_object) || !target)
		return 0;
	process = make_layers(layers, target);
	return process ? take_object(layers, process, (const void *)record) : -ENOMEM;
}

/* ---- going on ---- */

/* In which layer they are is not known from now on. */
static int lose_threads(const struct rls_layers *layers, pid_t pid, uint64_t time_ns)
{
	_cleanup_tasks_ DIR *tasks = rls_tasks_open(pid);
	pid_t tid;
	int r = 0;

	while (!r && (tid = rls_tasks_next(tasks))) {
		struct rls_event event =
			rls_event_at(RLS_EVENT_LAYER, (uint32_t)pid, (uint32_t)tid, time_ns);

		event.layer.pass = RLS_PASS_UNKNOWN;
		r = rls_event_output_add(layers->parts.output, &event);
	}
	return r;
}

/* Nobody sees their calls end any more. */
static int lose_layers(const struct rls_layers *layers, uint64_t time_ns)
{
	const struct rls_targets *targets = layers->parts.targets;
	int r = 0;

	for (size_t i = 0; !r && i < targets->count; i++) {
		const struct process_layers *process = layers_of(layers, targets->all[i]);

		if (process && process->objects.count)
			r = lose_threads(layers, targets->all[i]->pid, time_ns);
	}
	return r;
}

static int warn_of_file(void *context, const char *path, const char *why)
{
	struct rls_layers *layers = context;
	int r = lose_layers(layers, rls_monotonic_ns());

	if (r)
		return r;
	return rls_event_output_warn(
		layers->parts.output, rls_monotonic_ns(),
		"calls of layers by %s are not recorded any more: %s, so its probes are off", path,
		why);
}

int rls_layers_spare(struct rls_layers *layers)
{
	return rls_layer_probes_spare(&layers->probes, warn_of_file, layers);
}

int rls_layers_tick(struct rls_layers *layers, uint64_t time_ns)
{
	const struct rls_targets *targets = layers->parts.targets;
	int r = rls_layer_probes_check(&layers->probes, warn_of_file, layers);

	for (size_t i = 0; !r && i < targets->count; i++) {
		struct process_layers *process = layers_of(layers, targets->all[i]);

		if (!process)
			continue;
		r = try_if_due(layers, process, targets->all[i]->pid, time_ns);
		if (!r)
			r = name_waiting(layers, process, targets->all[i]->pid, time_ns, false);
	}
	return r;
}

/* Calls of layers are recorded whatever they cost: what that was must be known. */
static int warn_of_cost(const struct rls_layers *layers, uint64_t start_ns, uint64_t stop_ns)
{
	uint64_t spent_ns = rls_kernel_layer_count(layers->parts.kernel, RLS_LAYER_HIT_NS);
	double percent = 100 * (double)spent_ns / (double)(stop_ns - start_ns);

	rls_debug("layers: %" PRIu64 " calls, %" PRIu64 " hits, %.2f %% of the time",
		  rls_kernel_layer_count(layers->parts.kernel, RLS_LAYER_CALLS),
		  rls_kernel_layer_count(layers->parts.kernel, RLS_LAYER_HITS), percent);
	if (layers->parts.budget_percent < 0 || percent <= layers->parts.budget_percent)
		return 0;
	return rls_event_output_warn(
		layers->parts.output, stop_ns,
		"recording layers cost %.1f %% of the time, which is more than the overhead "
		"budget of %g %%",
		percent, layers->parts.budget_percent);
}

static int warn_of_losses(const struct rls_layers *layers, uint64_t stop_ns)
{
	uint64_t lost = rls_kernel_layer_count(layers->parts.kernel, RLS_LAYER_LOST);
	int r;

	if (!lost)
		return 0;
	r = rls_event_output_loss(layers->parts.output, stop_ns, "layers", lost);
	return r ? r
		 : rls_event_output_warn(layers->parts.output, stop_ns,
					 "%" PRIu64
					 " calls of layers count as their callers': more than %d "
					 "layers were called",
					 lost, RLS_LAYER_OBJECTS);
}

static int warn_of_unprobed(const struct rls_layers *layers, uint64_t stop_ns)
{
	const struct rls_targets *targets = layers->parts.targets;
	size_t count = layers->unprobed;

	for (size_t i = 0; i < targets->count; i++) {
		const struct process_layers *process = layers_of(layers, targets->all[i]);

		count += process && process->python && !process->probed;
	}
	if (!count)
		return 0;
	return rls_event_output_warn(
		layers->parts.output, stop_ns,
		"layers of %zu processes are not recorded: they ended, or the recording did, "
		"before it was known where their Python calls objects",
		count);
}

int rls_layers_finish(struct rls_layers *layers, uint64_t start_ns, uint64_t stop_ns)
{
	const struct rls_targets *targets = layers->parts.targets;
	int r = 0;

	for (size_t i = 0; !r && i < targets->count; i++) {
		struct process_layers *process = layers_of(layers, targets->all[i]);

		if (process)
			r = name_waiting(layers, process, targets->all[i]->pid, stop_ns, true);
	}
	if (!r)
		r = warn_of_losses(layers, stop_ns);
	if (!r)
		r = warn_of_unprobed(layers, stop_ns);
	return r ? r : warn_of_cost(layers, start_ns, stop_ns);
}
