#include "userspace/record/memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/kernel/kernel_memory.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/record/memory/memory_rows.h"
#include "userspace/record/memory/memory_use.h"
#include "userspace/record/memory/reporters.h"

#define FLUSH_EVERY_NS 100000000ULL
/* Rows are flushed as often for so long, and after that as seldom. */
#define OFTEN_NS 20000000000ULL
#define SELDOM_NS 500000000ULL
#define CREDIT_SPAN_NS 10000000000ULL

struct rls_memory {
	struct rls_memory_parts parts;
	struct rls_reporters reporters;
	struct rls_memory_rows *rows;
	size_t place; /* of struct rls_memory_use among a target's states */
	uint64_t flushed_ns, rows_flushed_ns;
	uint64_t reports; /* of devices that have been taken */
	uint64_t start_ns; /* of the first tick */
	uint64_t spent_ns; /* so far */
	double credit_ns;
	uint64_t credit_at_ns;
	bool over; /* nothing is counted any more */
};

/* ---- targets ---- */

static void memory_forget(void *context, struct rls_target *target, enum rls_target_over why,
			  uint64_t time_ns)
{
	struct rls_memory *memory = context;
	struct rls_memory_use *use = target->state[memory->place];

	if (why == RLS_TARGET_ENDED || why == RLS_TARGET_UNFOLLOWED)
		rls_memory_rows_end(memory->rows, target->pid, time_ns);
	else if (why == RLS_TARGET_EXECED)
		rls_memory_rows_name(memory->rows, target->pid, time_ns);
	rls_reporters_forget(&memory->reporters, target->pid);
	if (use)
		rls_memory_use_clear(use);
	free(use);
	target->state[memory->place] = NULL;
}

int rls_memory_new(const struct rls_memory_parts *parts, struct rls_memory **out)
{
	struct rls_memory *memory = calloc(1, sizeof(*memory));
	const struct rls_target_observer observer = {NULL, memory_forget, memory};
	int r;

	if (!memory)
		return -ENOMEM;
	memory->parts = *parts;
	r = rls_memory_rows_new(parts->kernel, parts->interpreters, parts->translator,
				parts->output, &memory->rows);
	if (!r)
		r = rls_targets_observe(parts->targets, &observer, &memory->place);
	if (r) {
		rls_memory_rows_free(memory->rows);
		free(memory);
		return r;
	}
	rls_reporters_open(&memory->reporters, parts->kernel);
	*out = memory;
	return 0;
}

void rls_memory_free(struct rls_memory *memory)
{
	if (!memory)
		return;
	rls_targets_leave(memory->parts.targets, memory->place);
	rls_reporters_clear(&memory->reporters);
	rls_memory_rows_free(memory->rows);
	free(memory);
}

/* ---- files ---- */

int rls_memory_mapped(void *context, struct rls_files *files, pid_t pid,
		      const struct rls_mappings *mappings)
{
	struct rls_memory *memory = context;

	return memory->over ? 0 : rls_reporters_scan(&memory->reporters, files, pid, mappings);
}

static int warn_of_written(void *context, const char *path)
{
	struct rls_memory *memory = context;
	_cleanup_free_ char *text = NULL;

	if (asprintf(&text,
		     "%s is written to while it is probed: its probes are off, and memory is not "
		     "counted there any more",
		     path) < 0)
		return -ENOMEM;
	return rls_event_output_warn(memory->parts.output, rls_monotonic_ns(), text);
}

/* ---- use ---- */

static int sample_targets(struct rls_memory *memory, uint64_t time_ns)
{
	const struct rls_targets *targets = memory->parts.targets;
	int r = 0;

	for (size_t i = 0; !r && i < targets->count; i++) {
		struct rls_target *target = targets->all[i];
		struct rls_memory_use *use = target->state[memory->place];

		if (!use)
			use = target->state[memory->place] = calloc(1, sizeof(*use));
		r = use ? rls_memory_use_sample(use, target->pid, memory->parts.output, time_ns)
			: -ENOMEM;
	}
	return r;
}

struct device_sample {
	struct rls_memory *memory;
	uint64_t time_ns;
};

static int take_device(void *context, const struct rls_wire_device_key *key,
		       const struct rls_wire_device *device)
{
	const struct device_sample *sample = context;
	struct rls_event event = rls_event_at(RLS_EVENT_MEMORY_USE, key->pid, 0, sample->time_ns);

	event.memory_use.gpu = true;
	event.memory_use.device = key->device;
	event.memory_use.allocated_bytes = device->allocated_bytes;
	event.memory_use.reserved_bytes = device->reserved_bytes;
	event.memory_use.out_of_memory = device->full_ns != 0;
	return rls_event_output_add(sample->memory->parts.output, &event);
}

static int sample_devices(struct rls_memory *memory, uint64_t time_ns)
{
	uint64_t reports = rls_kernel_memory_count(memory->parts.kernel, RLS_MEMORY_REPORTS);
	struct device_sample sample = {memory, time_ns};

	if (reports == memory->reports)
		return 0;
	memory->reports = reports;
	return rls_kernel_each_device(memory->parts.kernel, take_device, &sample);
}

/* ---- budget ---- */

static int end_counting(struct rls_memory *memory, uint64_t time_ns)
{
	double seconds = (double)(time_ns - memory->start_ns) / 1e9;
	_cleanup_free_ char *text = NULL;

	memory->over = true;
	rls_kernel_count_memory(memory->parts.kernel, false);
	rls_kernel_detach_memory(memory->parts.kernel, UINT32_MAX);
	rls_kernel_detach_memory_of(memory->parts.kernel, 0, 0);
	if (asprintf(&text,
		     "memory is counted for the first %.1f s only: it costs %.1f %% of the time, "
		     "which is more than the overhead budget has for it (--memory all counts on)",
		     seconds,
		     100 * (double)memory->spent_ns / (double)(time_ns - memory->start_ns)) < 0)
		return -ENOMEM;
	return rls_event_output_warn(memory->parts.output, time_ns, text);
}

/* The sum over all threads: several that allocate side by side are taken for one. */
static int watch_budget(struct rls_memory *memory, uint64_t time_ns)
{
	uint64_t spent_ns = rls_kernel_memory_count(memory->parts.kernel, RLS_MEMORY_HIT_NS);
	double most_ns = memory->parts.share * (double)CREDIT_SPAN_NS;

	if (!memory->start_ns) {
		memory->start_ns = memory->credit_at_ns = time_ns;
		memory->credit_ns = most_ns;
	}
	memory->credit_ns += memory->parts.share * (double)(time_ns - memory->credit_at_ns);
	if (memory->credit_ns > most_ns)
		memory->credit_ns = most_ns;
	memory->credit_ns -= (double)(spent_ns - memory->spent_ns);
	memory->credit_at_ns = time_ns;
	memory->spent_ns = spent_ns;
	if (memory->parts.share < 0 || memory->over || memory->credit_ns >= 0)
		return 0;
	return end_counting(memory, time_ns);
}

/* ---- going on ---- */

int rls_memory_name(struct rls_memory *memory)
{
	return rls_memory_rows_name(memory->rows, 0, rls_monotonic_ns());
}

/* Many lines make many events. Peaks of the beginning matter most; later the process grows slowly. */
static int flush_rows_if_due(struct rls_memory *memory, uint64_t time_ns)
{
	bool late = time_ns - memory->start_ns > OFTEN_NS;

	if (late && time_ns - memory->rows_flushed_ns < SELDOM_NS)
		return 0;
	memory->rows_flushed_ns = time_ns;
	return rls_memory_rows_flush(memory->rows, time_ns);
}

int rls_memory_tick(struct rls_memory *memory, uint64_t time_ns)
{
	int r = rls_reporters_check(&memory->reporters, warn_of_written, memory);

	if (!r)
		r = rls_memory_rows_name(memory->rows, 0, time_ns);
	if (!r)
		r = watch_budget(memory, time_ns);
	if (r || time_ns - memory->flushed_ns < FLUSH_EVERY_NS)
		return r;
	memory->flushed_ns = time_ns;
	r = flush_rows_if_due(memory, time_ns);
	if (!r)
		r = sample_targets(memory, time_ns);
	if (!r)
		r = sample_devices(memory, time_ns);
	return r ? r : rls_memory_rows_losses(memory->rows, time_ns);
}

static int warn_of_copies(struct rls_memory *memory, uint64_t time_ns)
{
	uint64_t copies = rls_kernel_memory_count(memory->parts.kernel, RLS_MEMORY_LOST_COPIES);
	_cleanup_free_ char *text = NULL;

	int r = 0;

	if (copies) {
		if (asprintf(&text,
			     "memory: %" PRIu64 " copies of tensors could not be counted, as their "
			     "sizes could not be read in this version of PyTorch",
			     copies) < 0)
			return -ENOMEM;
		r = rls_event_output_warn(memory->parts.output, time_ns, text);
	}
	return r;
}

static int warn_of_losses(struct rls_memory *memory, uint64_t time_ns)
{
	uint64_t blocks = rls_kernel_memory_count(memory->parts.kernel, RLS_MEMORY_LOST_BLOCKS);
	uint64_t lines = rls_kernel_memory_count(memory->parts.kernel, RLS_MEMORY_LOST_LINES);
	_cleanup_free_ char *text = NULL;

	if (!blocks && !lines)
		return 0;
	if (asprintf(&text,
		     "memory: %" PRIu64 " blocks could not be followed, so they seem to live for "
		     "good; %" PRIu64 " allocations could not be counted",
		     blocks, lines) < 0)
		return -ENOMEM;
	return rls_event_output_warn(memory->parts.output, time_ns, text);
}

static void log_hits(const struct rls_memory *memory)
{
	uint64_t hits = rls_kernel_memory_count(memory->parts.kernel, RLS_MEMORY_HITS);

	if (hits)
		rls_debug("memory: %" PRIu64 " hits, of %" PRIu64 " ns each", hits,
			  rls_kernel_memory_count(memory->parts.kernel, RLS_MEMORY_HIT_NS) / hits);
}

int rls_memory_finish(struct rls_memory *memory, uint64_t stop_ns)
{
	int r = rls_memory_rows_end(memory->rows, 0, stop_ns);

	if (!r)
		r = sample_targets(memory, stop_ns);
	if (!r)
		r = sample_devices(memory, stop_ns);
	if (!r)
		r = rls_memory_rows_losses(memory->rows, stop_ns);
	log_hits(memory);
	if (!r)
		r = warn_of_copies(memory, stop_ns);
	return r ? r : warn_of_losses(memory, stop_ns);
}
