/* What the kernel side tells a recorder, and what becomes of it. */
#include <errno.h>
#include <string.h>

#include "bpf/wire/record.h"
#include "bpf/wire/stack.h"
#include "userspace/attach/kernel/kernel_sampling.h"
#include "userspace/base/log.h"
#include "userspace/record/budget/overhead_controller.h"
#include "userspace/record/calibrate/probe_toggle.h"
#include "userspace/record/events/annotation_reader.h"
#include "userspace/record/gpu/gpu_activity.h"
#include "userspace/record/samples/code_map.h"
#include "userspace/record/samples/infer_category.h"
#include "userspace/record/samples/interpreters.h"
#include "userspace/record/samples/stack_samples.h"
#include "userspace/record/session.h"

static void on_forked(void *context, uint32_t parent, uint32_t child, uint64_t time_ns)
{
	struct rls_recorder *recorder = context;

	rls_ended_maps_forget(&recorder->ended_maps, (pid_t)child, time_ns);
	if (recorder->draining)
		return;
	if (rls_targets_forked(&recorder->targets, (pid_t)parent, (pid_t)child, time_ns))
		rls_debug("process %u was forked, and not all is known of it", child);
}

/* A new program: nothing native can have been entered yet, so if it is Python it is in Python. */
static void on_execed(void *context, uint32_t pid, uint64_t time_ns)
{
	struct rls_recorder *recorder = context;
	struct rls_event event = {
		.kind = RLS_EVENT_CATEGORY, .pid = pid, .tid = pid, .time_ns = time_ns};

	rls_ended_maps_forget(&recorder->ended_maps, (pid_t)pid, time_ns);
	if (rls_targets_execed(&recorder->targets, (pid_t)pid, time_ns) || recorder->draining ||
	    rls_interpreters_execed(recorder->interpreters, (pid_t)pid, time_ns) ||
	    rls_recorder_scan(recorder, (pid_t)pid, time_ns))
		return;
	rls_describe_process(&recorder->describer, (pid_t)pid, time_ns);
	event.category.category = RLS_CATEGORY_PYTHON;
	if (rls_recorder_is_python(recorder, (pid_t)pid) ||
	    rls_interpreters_knows(recorder->interpreters, (pid_t)pid))
		rls_event_output_add(&recorder->output, &event);
	rls_targets_scan_at(&recorder->targets, (pid_t)pid, time_ns + RLS_SCAN_DELAY_NS);
}

static void on_ended(void *context, uint32_t pid, uint64_t time_ns)
{
	struct rls_recorder *recorder = context;
	struct rls_target *target = rls_targets_find(&recorder->targets, (pid_t)pid);

	if (target) {
		rls_recorder_drain_maps(recorder); /* it may have mapped something just before */
		if (target->late_ns) /* it was looked at, and that has it */
			rls_ended_maps_forget(&recorder->ended_maps, target->pid, UINT64_MAX);
		rls_ended_maps_ended(&recorder->ended_maps, target->pid, time_ns);
	}
	if (target && !recorder->options.listener)
		rls_late_probes_ended(&recorder->late, target, &recorder->output, time_ns);
	rls_targets_ended(&recorder->targets, (pid_t)pid, time_ns);
}

static void on_final(void *context, const struct rls_wire_final *final)
{
	struct rls_recorder *recorder = context;
	int r;

	if (!final->record)
		return;
	r = rls_annotation_reader_rest(final, recorder->stop_ns, recorder->translator);
	if (r)
		rls_debug("the last operations of thread %u are not known: %s", final->header.tid,
			  strerror(-r));
}

static int on_turned(void *context, uint32_t tid, const struct rls_queued_edge *edge)
{
	struct rls_recorder *recorder = context;

	return recorder->probe_toggle ? rls_probe_toggle_turned(recorder->probe_toggle, tid, edge)
				      : 0;
}

struct rls_process_watcher rls_recorder_watcher(struct rls_recorder *recorder)
{
	return (struct rls_process_watcher){on_forked, on_execed, on_ended,
					    on_final,  on_turned, recorder};
}

/* A child that was there when recording began is described like all that were, unless it was found in /proc too. */
static int adopt_early_child(struct rls_recorder *recorder, const struct rls_early_child *child)
{
	const uint64_t time_ns = recorder->start_ns;
	int r;

	on_forked(recorder, (uint32_t)child->parent, (uint32_t)child->pid, time_ns);
	if (child->execed)
		on_execed(recorder, (uint32_t)child->pid, time_ns);
	if (rls_translator_process(recorder->translator, (uint32_t)child->pid))
		return 0;
	r = rls_describe(&recorder->describer, child->pid, time_ns);
	return r == -ESRCH ? 0 : r; /* it has ended since; the kernel side tells */
}

int rls_recorder_adopt_early(struct rls_recorder *recorder)
{
	int r = 0;

	if (recorder->early.over)
		return 0;
	recorder->early.over = true;
	for (size_t i = 0; !r && i < recorder->early.children.count; i++)
		r = adopt_early_child(recorder, &recorder->early.children.items[i]);
	return r;
}

static int take_early(struct rls_recorder *recorder, const struct rls_wire_header *record,
		      size_t size)
{
	pid_t ended, execed;
	int r = rls_early_records_take(&recorder->early, record, size, &ended, &execed);

	if (ended)
		rls_targets_ended(&recorder->targets, ended, recorder->start_ns);
	if (execed && rls_targets_find(&recorder->targets, execed))
		on_execed(recorder, (uint32_t)execed, recorder->start_ns);
	return r;
}

/* What it cost is charged with the hits around it. Where these come in windows only, what was between
 * windows would be charged within them. */
static int add_stack(struct rls_recorder *recorder, const struct rls_wire_header *record,
		     size_t size)
{
	const struct rls_wire_stack *stack = (const void *)record;

	if (!recorder->controller && size >= RLS_STACK_HEAD_BYTES &&
	    record->kind == RLS_WIRE_STACK && !(record->flags & RLS_STACK_WAITS))
		rls_translator_sampled(recorder->translator, record->pid, record->tid,
				       stack->category, rls_kernel_tick_cost_ns(recorder->kernel));
	return rls_samples_add(recorder->samples, record, size);
}

/* What a thread seems to be in. Who keeps a budget takes it as well (overhead_controller.h). */
static int add_category_sample(struct rls_recorder *recorder, const struct rls_wire_header *record,
			       size_t size)
{
	const struct rls_wire_category_sample *sample = (const void *)record;
	struct rls_event event = {.kind = RLS_EVENT_SHARE,
				  .pid = record->pid,
				  .tid = record->tid,
				  .time_ns = record->time_ns};
	struct rls_inferred inferred;
	int r;

	if (record->kind != RLS_WIRE_CATEGORY_SAMPLE || size < sizeof(*sample))
		return 0;
	event.share.waited_ns = sample->waited_ns;
	r = rls_infer_category(recorder->code_map, sample, &inferred);
	if (r)
		return r == -ENOMEM ? r : 0; /* the profiler's own time, or the process is gone */
	event.share.category = inferred.category;
	return rls_event_output_add(&recorder->output, &event);
}

static int take_exit(struct rls_recorder *recorder, const struct rls_wire_exit *record, size_t size)
{
	if (size >= sizeof(*record) && record->process_over && record->out_of_memory &&
	    !recorder->options.listener)
		rls_warning("process %u was ended by the kernel for lack of memory",
			    record->header.pid);
	return recorder->memory ? rls_memory_name(recorder->memory) : 0;
}

int rls_recorder_take(const struct rls_wire_header *record, size_t size, void *context)
{
	struct rls_recorder *recorder = context;
	const struct rls_recorder_listener *listener = recorder->options.listener;
	int r;

	if (listener && record->kind == RLS_WIRE_NAME)
		return size < sizeof(struct rls_wire_name)
			       ? 0
			       : listener->name(listener->context, (const void *)record);
	if (listener && record->kind == RLS_WIRE_NAME_CHANGE)
		return size < sizeof(struct rls_wire_name_change)
			       ? 0
			       : listener->name_change(listener->context, (const void *)record);
	if (record->kind == RLS_WIRE_OFF_CPU && recorder->probe_toggle)
		return rls_probe_toggle_add(recorder->probe_toggle, record, size);
	if (record->kind == RLS_WIRE_STACK || record->kind == RLS_WIRE_WAITED)
		return add_stack(recorder, record, size);
	if (record->kind == RLS_WIRE_LAYER_OBJECT)
		return recorder->layers ? rls_layers_take(recorder->layers, record, size) : 0;
	if (rls_early_records_has(&recorder->early, recorder->start_ns, record))
		return take_early(recorder, record, size);
	r = recorder->start_ns ? rls_recorder_adopt_early(recorder) : 0;
	if (r || rls_early_records_is_late_end(recorder->start_ns, record, size))
		return r;
	/* Our own threads are announced too, as calibration probes them. */
	if (record->kind == RLS_WIRE_OFF_CPU &&
	    !rls_targets_find(&recorder->targets, (pid_t)record->pid))
		return 0;
	if (record->kind == RLS_WIRE_LOSS && rls_losses_add(&recorder->losses, record, size))
		return -ENOMEM;
	r = recorder->controller ? rls_overhead_controller_add(recorder->controller, record, size)
				 : add_category_sample(recorder, record, size);
	if (!r && recorder->probe_toggle)
		r = rls_probe_toggle_add(recorder->probe_toggle, record, size);
	if (r)
		return r;
	/* Names of what has ended cannot be read any more. */
	if (record->kind == RLS_WIRE_THREAD_EXIT)
		r = take_exit(recorder, (const void *)record, size);
	if (r)
		return r;
	recorder->progress.events++;
	rls_affinity_saw(&recorder->affinity, record->pid, record->tid);
	r = rls_gpu_add(recorder->gpu, record, size);
	if (r || record->kind == RLS_WIRE_GPU_BATCH)
		return r;
	return rls_translate(recorder->translator, record, size);
}
