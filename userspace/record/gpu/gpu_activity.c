#include "userspace/record/gpu/gpu_activity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/string_pool.h"
#include "analysis/event/bounded.h"
#include "analysis/event/event_fields.h"
#include "userspace/base/log.h"
#include "userspace/record/gpu/batch_validate.h"
#include "userspace/record/gpu/cuda_calls.h"
#include "userspace/record/gpu/gpu_losses.h"
#include "userspace/record/gpu/gpu_status.h"
#include "userspace/record/gpu/gpu_thread.h"

#define NAMES_MAX 65536 /* distinguished; the rest have one name together */
#define LAUNCHES 65536 /* of a process, the latest; a power of two */
#define CLOCK_EVERY_NS 1000000000ULL
#define KEPT_NS 5000000000ULL /* a process after its end: its last batches come late */
#define WARNINGS_MAX 8 /* of one process */
#define UNLAUNCHED_MANY 100 /* more than was launched before recording, or by a graph */

struct launch {
	uint32_t correlation; /* 0: none */
	uint64_t start_ns;
};

struct gpu_process {
	struct gpu_process *next;
	uint32_t pid;
	uint64_t ended_ns; /* 0: lives */
	struct rls_gpu_threads threads;
	struct launch *launches; /* NULL until the first; by the correlation's low bits */
	uint64_t works; /* passed on */

	uint64_t sequence; /* of the last batch; 0: none yet */
	struct rls_gpu_left_out base, now; /* before the recording; as last reported */
	uint64_t flushed_ns;
	uint8_t status; /* enum rls_cupti_status; 0: not reported */
	unsigned int warnings;

	uint64_t clock_first_ns, clock_event_ns;
	double clock_first_gap_ns;
};

struct rls_gpu {
	struct rls_event_output *output;
	const struct rls_translator *translator;
	struct gpu_process *processes;
	void (*refresh)(void *context); /* NULL: none */
	void *refresh_context;
	struct rls_cuda_calls calls;
	size_t names; /* that are in the pool for our sake */
	uint64_t start_ns, stop_ns; /* 0: not yet */
	bool met; /* a batch ever came */
	bool copies; /* are wanted */

	struct rls_gpu_losses losses;
};

/* ---- processes ---- */

static struct gpu_process *gpu_activity_find(const struct rls_gpu *gpu, uint32_t pid)
{
	struct gpu_process *process = gpu->processes;

	while (process && process->pid != pid)
		process = process->next;
	return process;
}

static uint32_t own_pid(const struct rls_gpu *gpu, uint32_t pid)
{
	const struct rls_event *event = rls_translator_process(gpu->translator, pid);

	return event && event->process.ns_pid ? event->process.ns_pid : pid;
}

static int gpu_activity_get(struct rls_gpu *gpu, uint32_t pid, struct gpu_process **out)
{
	struct gpu_process *process = gpu_activity_find(gpu, pid);

	if (!process) {
		process = calloc(1, sizeof(*process));
		if (!process)
			return -ENOMEM;
		process->pid = pid;
		process->threads.pid = pid;
		process->next = gpu->processes;
		gpu->processes = process;
	}
	process->threads.ns_pid = own_pid(gpu, pid);
	*out = process;
	return 0;
}

static uint64_t unlaunched(const struct gpu_process *process)
{
	return process->launches || process->works < UNLAUNCHED_MANY ? 0 : process->works;
}

static void process_free(struct rls_gpu *gpu, struct gpu_process *process)
{
	gpu->losses.unlaunched += unlaunched(process);
	rls_cuda_calls_arm(&gpu->calls, process->pid, false);
	rls_gpu_left_out_add(&gpu->losses.total, &process->base, &process->now);
	rls_gpu_threads_clear(&process->threads);
	free(process->launches);
	free(process);
}

void rls_gpu_tick(struct rls_gpu *gpu, uint64_t now_ns)
{
	struct gpu_process **link = &gpu->processes;

	rls_cuda_calls_tick(&gpu->calls, now_ns);
	while (*link) {
		struct gpu_process *process = *link;

		if (process->ended_ns && now_ns > process->ended_ns + KEPT_NS) {
			*link = process->next;
			process_free(gpu, process);
		} else {
			link = &process->next;
		}
	}
}

/* ---- one function per kind of record ---- */

/* A target that makes names up must not fill our memory with them: what the pool has is free, and
 * the pool compares texts, not hashes. */
static int gpu_activity_intern(struct rls_gpu *gpu, const char *text, size_t bytes,
			       rls_string_id *out)
{
	struct rls_event_sink sink = rls_event_output_sink(gpu->output);
	uint32_t before = rls_string_pool_count(gpu->output->strings);
	rls_string_id known = rls_string_pool_find(gpu->output->strings, text, bytes);
	int r;

	if (known) {
		*out = known;
		return 0;
	}
	if (gpu->names >= NAMES_MAX)
		return rls_event_output_string(gpu->output, "(more names)", out);
	r = rls_emit_intern(&sink, text, bytes, out);
	gpu->names += rls_string_pool_count(gpu->output->strings) > before;
	return r;
}

static struct launch *launch_of(const struct gpu_process *process, uint32_t correlation)
{
	return &process->launches[correlation & (LAUNCHES - 1)];
}

/* A new program's, and CUPTI's after it had left, begin with numbers that were given before. */
static void forget_launches(struct gpu_process *process)
{
	if (process->launches)
		memset(process->launches, 0, LAUNCHES * sizeof(*process->launches));
}

/* A thread may have begun and ended since the records of threads were read. If it is no longer
 * in /proc, its record has arrived by then. */
static uint32_t find_thread(struct rls_gpu *gpu, struct gpu_process *process, uint32_t ns_tid)
{
	uint32_t tid = rls_gpu_threads_find(&process->threads, ns_tid);

	if (tid || !gpu->refresh)
		return tid;
	gpu->refresh(gpu->refresh_context);
	return rls_gpu_threads_find(&process->threads, ns_tid);
}

/* CUPTI reports the runtime's call and the driver's call inside it, with one correlation: the
 * first to arrive stands for both. */
static int add_launch(struct rls_gpu *gpu, struct gpu_process *process,
		      const struct rls_batch_record *from, uint64_t now_ns)
{
	const struct rls_cupti_record *record = &from->record;
	struct rls_event event = rls_event_at(RLS_EVENT_LAUNCH, process->pid, 0, record->start_ns);
	struct launch *launch;
	int r;

	if (!process->launches)
		process->launches = calloc(LAUNCHES, sizeof(*process->launches));
	if (!process->launches)
		return -ENOMEM;
	if (record->end_ns > now_ns + RLS_GPU_CLOCK_GRACE_NS) {
		gpu->losses.impossible++;
		return 0;
	}
	launch = launch_of(process, record->correlation);
	if (!record->correlation || launch->correlation == record->correlation)
		return 0;
	*launch = (struct launch){record->correlation, record->start_ns};
	if (record->start_ns < gpu->start_ns || (gpu->stop_ns && record->start_ns > gpu->stop_ns))
		return 0;
	event.tid = find_thread(gpu, process, record->tid);
	if (!event.tid) {
		gpu->losses.unplaced++;
		return 0;
	}
	event.launch.correlation = record->correlation;
	gpu->losses.launches++;
	r = gpu_activity_intern(gpu, from->name, from->name_bytes, &event.launch.name);
	return r ? r : rls_event_output_add(gpu->output, &event);
}

/* How long before its launch it lies; 0 also when that is not known, as it may be reported
 * later. */
static uint64_t early_ns(const struct gpu_process *process, const struct rls_cupti_record *record)
{
	const struct launch *launch = process->launches && record->correlation
					      ? launch_of(process, record->correlation)
					      : NULL;

	if (!launch || launch->correlation != record->correlation ||
	    record->start_ns >= launch->start_ns)
		return 0;
	return launch->start_ns - record->start_ns;
}

/* CUPTI's copy kinds, by what copies from and to; what is no copy of a GPU, or not known: the maximum. */
static enum rls_copy_kind copy_kind_of(uint8_t subkind)
{
	static const enum rls_copy_kind kinds[] = {
		RLS_COPY_KIND_MAX, RLS_COPY_H2D,      RLS_COPY_D2H, RLS_COPY_H2D,
		RLS_COPY_D2H,      RLS_COPY_D2D,      RLS_COPY_D2D, RLS_COPY_D2D,
		RLS_COPY_D2D,      RLS_COPY_KIND_MAX, RLS_COPY_D2D,
	};

	return subkind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[subkind] : RLS_COPY_KIND_MAX;
}

/* Of copies that began before the recording nothing is counted. */
static int add_copy(struct rls_gpu *gpu, const struct gpu_process *process,
		    const struct rls_cupti_record *record)
{
	enum rls_copy_kind kind = copy_kind_of(record->subkind);
	struct rls_event event =
		rls_event_at(RLS_EVENT_GPU_COPY, process->pid, 0, record->start_ns);

	if (!gpu->copies || record->kind != RLS_CUPTI_MEMCPY || kind == RLS_COPY_KIND_MAX ||
	    record->start_ns < gpu->start_ns)
		return 0;
	event.gpu_copy.kind = kind;
	event.gpu_copy.correlation = record->correlation;
	event.gpu_copy.bytes =
		record->value < RLS_EVENT_NUMBER_MAX ? record->value : RLS_EVENT_NUMBER_MAX;
	return rls_event_output_add(gpu->output, &event);
}

static int add_work(struct rls_gpu *gpu, struct gpu_process *process,
		    const struct rls_batch_record *from, enum rls_gpu_kind kind, uint64_t now_ns)
{
	const struct rls_cupti_record *record = &from->record;
	struct rls_event event;
	const char *name = from->name;
	size_t name_bytes = from->name_bytes;
	uint64_t start_ns = record->start_ns, end_ns = record->end_ns;
	uint64_t before_ns = early_ns(process, record);
	int r;

	if (end_ns > now_ns + RLS_GPU_CLOCK_GRACE_NS || before_ns > RLS_CUPTI_EARLY_NS) {
		gpu->losses.impossible++;
		return 0;
	}
	if (end_ns <= gpu->start_ns || (gpu->stop_ns && start_ns >= gpu->stop_ns))
		return 0;
	if (start_ns < gpu->start_ns)
		start_ns = gpu->start_ns;
	if (gpu->stop_ns && end_ns > gpu->stop_ns)
		end_ns = gpu->stop_ns;
	if (!name_bytes) {
		name = rls_gpu_work_name(record);
		name_bytes = strlen(name);
	}
	event = rls_event_at(RLS_EVENT_GPU, process->pid, 0, start_ns);
	event.gpu.end_ns = end_ns;
	event.gpu.correlation = record->correlation;
	event.gpu.device = record->device;
	event.gpu.stream = record->stream;
	event.gpu.kind = kind;
	process->works++;
	rls_gpu_losses_note_early(&gpu->losses, before_ns);
	r = gpu_activity_intern(gpu, name, name_bytes, &event.gpu.name);
	if (!r)
		r = rls_event_output_add(gpu->output, &event);
	return r ? r : add_copy(gpu, process, record);
}

static int take_status(struct rls_gpu *gpu, struct gpu_process *process,
		       const struct rls_batch_record *from, uint64_t now_ns)
{
	bool changed = process->status != from->record.subkind;
	char text[RLS_GPU_STATUS_BYTES];
	int r;

	process->status = from->record.subkind;
	if (changed && process->status == RLS_CUPTI_ARMED)
		forget_launches(process);
	r = rls_cuda_calls_arm(&gpu->calls, process->pid, process->status == RLS_CUPTI_ARMED);
	if (r)
		return r;
	if (!changed || process->warnings >= WARNINGS_MAX ||
	    !rls_gpu_status_text(process->pid, from, text))
		return 0;
	process->warnings++;
	return rls_event_output_warn(gpu->output, now_ns, "%s", text);
}

static int take_record(struct rls_gpu *gpu, struct gpu_process *process,
		       const struct rls_batch_record *from, uint64_t now_ns)
{
	static const enum rls_gpu_kind kinds[] = {
		[RLS_CUPTI_KERNEL] = RLS_GPU_KERNEL, [RLS_CUPTI_MEMCPY] = RLS_GPU_MEMCPY,
		[RLS_CUPTI_MEMSET] = RLS_GPU_MEMSET, [RLS_CUPTI_SYNC] = RLS_GPU_SYNC,
		[RLS_CUPTI_GRAPH] = RLS_GPU_GRAPH,
	};

	if (from->record.kind == RLS_CUPTI_STATUS)
		return take_status(gpu, process, from, now_ns);
	if (!gpu->start_ns)
		return 0; /* not recording yet */
	if (from->record.kind == RLS_CUPTI_API)
		return add_launch(gpu, process, from, now_ns);
	if (from->record.kind == RLS_CUPTI_OVERHEAD) {
		rls_add_bounded(&gpu->losses.overhead_ns,
				from->record.end_ns - from->record.start_ns);
		return 0;
	}
	return add_work(gpu, process, from, kinds[from->record.kind], now_ns);
}

/* ---- batches ---- */

/* Numbers that go back are a new program's under an old pid. What a process had left out before
 * its first batch for us was nobody's loss, unless it is its first of all. */
static void take_totals(struct rls_gpu *gpu, struct gpu_process *process,
			const struct rls_cupti_batch *header)
{
	const struct rls_gpu_left_out now = rls_gpu_left_out_of(header);

	if (header->sequence <= process->sequence ||
	    rls_gpu_left_out_went_back(&now, &process->now)) {
		rls_gpu_left_out_add(&gpu->losses.total, &process->base, &process->now);
		process->sequence = 0;
		process->base = process->now = (struct rls_gpu_left_out){0};
		process->clock_first_ns = 0;
		process->ended_ns = 0;
		forget_launches(process);
	}
	if (!process->sequence && header->sequence != 1)
		process->base = now;
	else if (process->sequence)
		rls_add_bounded(&gpu->losses.missed, header->sequence - process->sequence - 1);
	process->sequence = header->sequence;
	process->now = now;
	process->flushed_ns = header->flushed_ns;
}

static int take_clock(struct rls_gpu *gpu, struct gpu_process *process,
		      const struct rls_cupti_batch *header, uint64_t now_ns)
{
	struct rls_event event =
		rls_event_at(RLS_EVENT_GPU_CLOCK, process->pid, 0, header->clock_ns);
	double gap_ns = header->clock_cupti_ns > header->clock_ns
				? (double)(header->clock_cupti_ns - header->clock_ns)
				: -(double)(header->clock_ns - header->clock_cupti_ns);

	if (!gpu->start_ns || header->clock_ns < gpu->start_ns || header->clock_ns > now_ns ||
	    (gpu->stop_ns && header->clock_ns > gpu->stop_ns) ||
	    (process->clock_event_ns &&
	     header->clock_ns < process->clock_event_ns + CLOCK_EVERY_NS))
		return 0;
	if (!process->clock_first_ns) {
		process->clock_first_ns = header->clock_ns;
		process->clock_first_gap_ns = gap_ns;
	}
	process->clock_event_ns = header->clock_ns;
	event.gpu_clock.gap_ns = gap_ns;
	event.gpu_clock.width_ns = header->clock_width_ns;
	if (header->clock_ns > process->clock_first_ns)
		event.gpu_clock.drift_ppm = 1e6 * (gap_ns - process->clock_first_gap_ns) /
					    (double)(header->clock_ns - process->clock_first_ns);
	return rls_event_output_add(gpu->output, &event);
}

static int add_batch(struct rls_gpu *gpu, const struct rls_wire_gpu_batch *wire, size_t size)
{
	struct gpu_process *process;
	struct rls_batch_view view;
	enum rls_batch_fault fault;
	int r;

	if (size < sizeof(*wire) || wire->bytes > size - sizeof(*wire))
		return 0;
	gpu->met = true;
	fault = rls_batch_validate(wire + 1, wire->bytes, &view);
	if (fault) {
		if (!gpu->losses.bad++)
			rls_warning("process %u: a batch of GPU records is left out, it is %s",
				    wire->header.pid, rls_batch_fault_text(fault));
		return 0;
	}
	r = gpu_activity_get(gpu, wire->header.pid, &process);
	if (r)
		return r;
	rls_batch_shift(&view, wire->clock_ahead_ns);
	take_totals(gpu, process, &view.header);
	for (size_t i = 0; !r && i < view.header.count; i++) {
		struct rls_batch_record record;

		if (rls_batch_record(&view, i, &record))
			gpu->losses.impossible++;
		else
			r = take_record(gpu, process, &record, wire->header.time_ns);
	}
	return r ? r : take_clock(gpu, process, &view.header, wire->header.time_ns);
}

/* ---- the door ---- */

int rls_gpu_new(struct rls_event_output *output, const struct rls_translator *translator,
		struct rls_gpu **out)
{
	struct rls_gpu *gpu = calloc(1, sizeof(*gpu));

	if (!gpu)
		return -ENOMEM;
	gpu->output = output;
	gpu->calls.output = output;
	gpu->translator = translator;
	*out = gpu;
	return 0;
}

void rls_gpu_want_copies(struct rls_gpu *gpu)
{
	gpu->copies = true;
}

void rls_gpu_set_refresh(struct rls_gpu *gpu, void (*refresh)(void *context), void *context)
{
	gpu->refresh = refresh;
	gpu->refresh_context = context;
}

void rls_gpu_free(struct rls_gpu *gpu)
{
	if (!gpu)
		return;
	while (gpu->processes) {
		struct gpu_process *process = gpu->processes;

		gpu->processes = process->next;
		process_free(gpu, process);
	}
	rls_cuda_calls_clear(&gpu->calls);
	free(gpu);
}

struct rls_cuda_calls *rls_gpu_calls(struct rls_gpu *gpu)
{
	return &gpu->calls;
}

void rls_gpu_begin(struct rls_gpu *gpu, uint64_t start_ns)
{
	gpu->start_ns = start_ns;
}

static int learn_thread(struct rls_gpu *gpu, uint32_t pid, uint32_t ns_tid, uint32_t tid)
{
	struct gpu_process *process;
	int r = gpu_activity_get(gpu, pid, &process);

	if (!r)
		rls_gpu_threads_add(&process->threads, ns_tid, tid);
	return r;
}

void rls_gpu_ended(struct rls_gpu *gpu, uint32_t pid, uint64_t time_ns)
{
	struct gpu_process *process = gpu_activity_find(gpu, pid);

	if (process && !process->ended_ns)
		process->ended_ns = time_ns;
	if (rls_cuda_calls_end_process(&gpu->calls, pid, time_ns))
		rls_cuda_calls_forget(&gpu->calls, pid);
}

void rls_gpu_execed(struct rls_gpu *gpu, uint32_t pid)
{
	rls_cuda_calls_forget(&gpu->calls, pid);
}

int rls_gpu_add(struct rls_gpu *gpu, const struct rls_wire_header *record, size_t size)
{
	const void *data = record;

	switch (record->kind) {
	case RLS_WIRE_CATEGORY:
		return size < sizeof(struct rls_wire_category)
			       ? 0
			       : rls_cuda_calls_add(&gpu->calls, data);
	case RLS_WIRE_GPU_BATCH:
		return add_batch(gpu, data, size);
	case RLS_WIRE_THREAD:
		return size < sizeof(struct rls_wire_thread)
			       ? 0
			       : learn_thread(gpu, record->pid,
					      ((const struct rls_wire_thread *)data)->ns_tid,
					      record->tid);
	case RLS_WIRE_THREAD_EXIT:
		return size < sizeof(struct rls_wire_exit) ? 0
							   : rls_cuda_calls_end(&gpu->calls, data);
	default:
		return 0;
	}
}

void rls_gpu_stop(struct rls_gpu *gpu, uint64_t stop_ns)
{
	gpu->stop_ns = stop_ns;
}

bool rls_gpu_is_drained(const struct rls_gpu *gpu)
{
	for (const struct gpu_process *p = gpu->processes; p; p = p->next) {
		/* Armed by another recorder before, it did not say so to us. */
		bool armed = p->status == RLS_CUPTI_ARMED || !p->status;

		if (armed && p->flushed_ns && !p->ended_ns && p->flushed_ns < gpu->stop_ns)
			return false;
	}
	return true;
}

int rls_gpu_report(struct rls_gpu *gpu, uint64_t *batches)
{
	struct rls_gpu_losses losses = gpu->losses;

	if (!gpu->met)
		return 0;
	for (const struct gpu_process *p = gpu->processes; p; p = p->next) {
		rls_gpu_left_out_add(&losses.total, &p->base, &p->now);
		losses.unlaunched += unlaunched(p);
	}
	return rls_gpu_losses_report(&losses, gpu->output, gpu->start_ns, gpu->stop_ns,
				     rls_gpu_is_drained(gpu), batches);
}
