#include "userspace/record/memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/attach/kernel/kernel_memory.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/record/memory/memory_rows.h"
#include "userspace/record/memory/memory_use.h"
#include "userspace/record/memory/memory_windows.h"
#include "userspace/record/memory/reporters.h"

#define FLUSH_EVERY_NS 100000000ULL
/* Rows are flushed as often for so long, and after that as seldom. */
#define OFTEN_NS 20000000000ULL
#define SELDOM_NS 500000000ULL
/* How long a rung of the C library's malloc is watched, and what part of the share it may have. */
#define RUNG_NS 1000000000ULL
#define RUNG_PART 0.5

struct rls_memory {
	struct rls_memory_parts parts;
	struct rls_reporters reporters;
	struct rls_memory_rows *rows;
	size_t place; /* of struct rls_memory_use among a target's states */
	uint64_t flushed_ns, rows_flushed_ns;
	uint64_t reports; /* of devices that have been taken */
	uint64_t start_ns; /* of the first tick */
	struct rls_memory_windows windows;
	uint64_t hits, hit_ns; /* when a window opened */
	uint64_t earned_ns; /* time that targets have run, not more than has passed */
	uint64_t earned_at_ns, ran_ns; /* when that was last added to; what all had run by then */
	struct {
		uint64_t since_ns,
			spent_ns; /* when it was last judged, and what all rungs had cost then */
		uint64_t changed_ns; /* when it was last changed */
	} rung;
};

/* ---- targets ---- */

static int memory_forked(void *context, const struct rls_target *parent, struct rls_target *child,
			 uint64_t time_ns)
{
	struct rls_memory *memory = context;

	int r = rls_memory_rows_forked(memory->rows, child->pid);

	return r || !parent || parent == child
		       ? r
		       : rls_reporters_forked(&memory->reporters, parent->pid, child->pid);
}

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
	const struct rls_target_observer observer = {memory_forked, memory_forget, memory};
	int r;

	if (!memory)
		return -ENOMEM;
	memory->parts = *parts;
	memory->windows.share = parts->share;
	r = rls_memory_rows_new(parts->kernel, parts->interpreters, parts->translator,
				parts->output, &memory->rows);
	if (!r)
		r = rls_targets_observe(parts->targets, &observer, &memory->place);
	if (r) {
		rls_memory_rows_free(memory->rows);
		free(memory);
		return r;
	}
	rls_reporters_open(&memory->reporters, parts->kernel, parts->share < 0);
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

	return rls_reporters_scan(&memory->reporters, files, pid, mappings);
}

static int warn_of_written(void *context, const char *path)
{
	struct rls_memory *memory = context;

	return rls_event_output_warn(
		memory->parts.output, rls_monotonic_ns(),
		"%s is written to while it is probed: its probes are off, and memory is not "
		"counted there any more",
		path);
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
		if (!r)
			r = rls_memory_rows_clock(memory->rows, target->pid);
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

/* ---- rungs ---- */

static void change_rung(struct rls_memory *memory, uint8_t rung, uint64_t time_ns)
{
	uint8_t before = memory->reporters.rung;

	rls_reporters_set_rung(&memory->reporters, rung);
	if (memory->reporters.rung == before)
		return;
	rls_debug("malloc: rung %u after %u", memory->reporters.rung, before);
	memory->rung.changed_ns = time_ns;
}

/* One rung up as soon as this one costs too much, for good. */
static void watch_rung(struct rls_memory *memory, uint64_t time_ns)
{
	uint64_t spent_ns = rls_kernel_memory_count(memory->parts.kernel,
						    RLS_MEMORY_SOURCE_NS + RLS_MEMORY_MALLOC);
	uint8_t rung = memory->reporters.rung;
	double share = memory->parts.share, spent, passed;

	if (share < 0 || rung >= RLS_LIBC_RUNGS)
		return;
	if (!memory->rung.since_ns)
		memory->rung.since_ns = time_ns;
	spent = (double)(spent_ns - memory->rung.spent_ns);
	passed = (double)(time_ns - memory->rung.since_ns);
	if (spent > RUNG_PART * share * (passed + (double)RUNG_NS))
		change_rung(memory, rung + 1, time_ns);
	else if (passed < (double)RUNG_NS)
		return;
	memory->rung.spent_ns = spent_ns;
	memory->rung.since_ns = time_ns;
}

/* ---- budget ---- */

static const char *const block_names[RLS_MEMORY_SOURCES] = {
	[RLS_MEMORY_TENSOR] = "tensors",
	[RLS_MEMORY_ARRAY] = "arrays",
	[RLS_MEMORY_GPU] = "blocks of GPUs",
};

static int warn_of_copies_end(struct rls_memory *memory, uint64_t time_ns)
{

	return rls_event_output_warn(
		memory->parts.output, time_ns,
		"memory: copies are counted for the first %.1f s only: that costs more than "
		"the "
		"overhead budget has for memory (--memory all counts all)",
		(double)(time_ns - memory->start_ns) / 1e9);
}

static int warn_of_windows(struct rls_memory *memory, uint32_t source, uint64_t time_ns)
{
	double lasted_ns = (double)(time_ns - memory->start_ns);
	const char *what = block_names[source] ? block_names[source] : "blocks";
	bool windows = rls_kernel_memory_has_windows(memory->parts.kernel);

	return rls_event_output_warn(
		memory->parts.output, time_ns,
		"memory: to count all %s takes %.1f %% of the time, which is more than the "
		"overhead "
		"budget has for memory; from %.1f s on %s, volumes are estimates, and growth, "
		"live bytes and leaks are not known (--memory all counts all)",
		what, 100 * (double)memory->windows.source_ns[source] / fmax(lasted_ns, 1),
		lasted_ns / 1e9, windows ? "they are counted in windows" : "they are not counted");
}

/* Frees of what begins between windows are not of use. */
static int narrow_source(struct rls_memory *memory, uint32_t source, uint64_t time_ns)
{
	struct rls_kernel *kernel = memory->parts.kernel;
	int r = rls_kernel_probe_memory(kernel, source, RLS_MEMORY_PROBE_NOTHING);

	if (r)
		return r;
	if (source == RLS_MEMORY_COPY_COST)
		return warn_of_copies_end(memory, time_ns);
	/* What is counted elsewhere could not be taken out of it any more. */
	if (source != RLS_MEMORY_GPU && memory->reporters.rung < RLS_LIBC_RUNGS) {
		change_rung(memory, RLS_LIBC_RUNGS, time_ns);
	}
	if (source == RLS_MEMORY_MALLOC)
		return 0;
	r = rls_memory_rows_narrow(memory->rows, source, time_ns);
	return r ? r : warn_of_windows(memory, source, time_ns);
}

static int probe_windowed(struct rls_memory *memory, enum rls_memory_probing probing)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < RLS_MEMORY_SOURCES; i++)
		if (memory->windows.windowed >> i & 1 && i != RLS_MEMORY_COPY_COST &&
		    i != RLS_MEMORY_MALLOC)
			r = rls_kernel_probe_memory(memory->parts.kernel, i, probing);
	return r;
}

/* Without probes there is no window, and the next one stands for its time too. */
static void open_window(struct rls_memory *memory)
{
	struct rls_kernel *kernel = memory->parts.kernel;
	int r = rls_kernel_memory_has_windows(kernel)
			? probe_windowed(memory, RLS_MEMORY_PROBE_BIRTHS)
			: -ENOTSUP;

	if (r) {
		rls_debug("memory: no window: %s", strerror(-r));
		probe_windowed(memory, RLS_MEMORY_PROBE_NOTHING);
		return;
	}
	memory->hits = rls_kernel_memory_count(kernel, RLS_MEMORY_HITS);
	memory->hit_ns = rls_kernel_memory_count(kernel, RLS_MEMORY_HIT_NS);
	rls_memory_rows_open(memory->rows);
}

static int close_window(struct rls_memory *memory, uint64_t time_ns)
{
	struct rls_kernel *kernel = memory->parts.kernel;
	uint64_t hits = rls_kernel_memory_count(kernel, RLS_MEMORY_HITS) - memory->hits;
	uint64_t hit_ns = rls_kernel_memory_count(kernel, RLS_MEMORY_HIT_NS) - memory->hit_ns;
	int r = probe_windowed(memory, RLS_MEMORY_PROBE_NOTHING);

	return r ? r
		 : rls_memory_rows_close(memory->rows, time_ns,
					 hits ? (double)hit_ns / (double)hits : 0);
}

/* What is allowed is a share of this. Several targets that run side by side are taken for one. */
static void earn(struct rls_memory *memory, uint64_t time_ns)
{
	uint64_t all_ns = rls_memory_rows_ran_ns(memory->rows), ran_ns = all_ns - memory->ran_ns;
	uint64_t passed_ns = memory->earned_at_ns ? time_ns - memory->earned_at_ns : 0;

	memory->earned_ns += ran_ns < passed_ns ? ran_ns : passed_ns;
	memory->earned_at_ns = time_ns;
	memory->ran_ns = all_ns;
}

/* The sum over all threads: several that allocate side by side are taken for one. */
static int watch_budget(struct rls_memory *memory, uint64_t time_ns)
{
	uint64_t source_ns[RLS_MEMORY_SOURCES];
	uint32_t source = 0;

	for (uint32_t i = 0; i < RLS_MEMORY_SOURCES; i++)
		source_ns[i] =
			rls_kernel_memory_count(memory->parts.kernel, RLS_MEMORY_SOURCE_NS + i);
	switch (rls_memory_windows_step(&memory->windows, time_ns, memory->earned_ns, source_ns,
					&source)) {
	case RLS_MEMORY_STEP_NARROW:
		return narrow_source(memory, source, time_ns);
	case RLS_MEMORY_STEP_OPEN:
		open_window(memory);
		return 0;
	case RLS_MEMORY_STEP_CLOSE:
		return close_window(memory, rls_monotonic_ns());
	default:
		return 0;
	}
}

/* Lines of source malloc have less than they would have without a budget. */
static int warn_of_rung(struct rls_memory *memory, uint64_t time_ns)
{
	double after_s = (double)(memory->rung.changed_ns - memory->start_ns) / 1e9;
	struct rls_event_output *output = memory->parts.output;

	if (memory->parts.share < 0 || !memory->reporters.libc.tried ||
	    memory->reporters.libc.rungs_reason || !memory->rung.changed_ns)
		return 0;
	if (memory->reporters.rung < RLS_LIBC_RUNGS)
		return rls_event_output_warn(
			output, time_ns,
			"memory that only the C library knows of is counted in blocks of %u bytes "
			"and more from %.1f s on, and in smaller ones before that, to keep to the "
			"overhead budget (--memory all counts from %u bytes on)",
			rls_libc_rung_bytes[memory->reporters.rung], after_s,
			rls_libc_rung_bytes[0]);
	return rls_event_output_warn(
		output, time_ns,
		"memory that only the C library knows of is counted for the first %.1f s only: "
		"more exceeds the overhead budget (--memory all counts on)",
		after_s);
}

static int warn_of_late(struct rls_memory *memory, uint64_t time_ns)
{
	if (!memory->reporters.late)
		return 0;
	return rls_event_output_warn(
		memory->parts.output, time_ns,
		"blocks and copies of the C library are counted from 5 s after a process begins "
		"(--memory all: at once)");
}

/* ---- going on ---- */

void rls_memory_begin(struct rls_memory *memory)
{
	rls_reporters_begin(&memory->reporters);
}

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
	int r = rls_reporters_check(&memory->reporters, time_ns, warn_of_written, memory);

	if (!memory->start_ns)
		memory->start_ns = time_ns;
	if (!r)
		r = rls_memory_rows_name(memory->rows, 0, time_ns);
	if (!r)
		watch_rung(memory, time_ns);
	if (!r)
		r = watch_budget(memory, time_ns);
	if (r || time_ns - memory->flushed_ns < FLUSH_EVERY_NS)
		return r;
	memory->flushed_ns = time_ns;
	r = flush_rows_if_due(memory, time_ns);
	if (!r)
		r = sample_targets(memory, time_ns);
	earn(memory, time_ns);
	if (!r)
		r = sample_devices(memory, time_ns);
	return r ? r : rls_memory_rows_losses(memory->rows, time_ns);
}

static int warn_of_copies(struct rls_memory *memory, uint64_t time_ns)
{
	uint64_t copies = rls_kernel_memory_count(memory->parts.kernel, RLS_MEMORY_LOST_COPIES);

	if (!copies)
		return 0;
	return rls_event_output_warn(memory->parts.output, time_ns,
				     "memory: %" PRIu64
				     " copies of tensors could not be counted, as their sizes "
				     "could not be read in this version of PyTorch",
				     copies);
}

static int warn_of_losses(struct rls_memory *memory, uint64_t time_ns)
{
	uint64_t blocks = rls_kernel_memory_count(memory->parts.kernel, RLS_MEMORY_LOST_BLOCKS);
	uint64_t lines = rls_kernel_memory_count(memory->parts.kernel, RLS_MEMORY_LOST_LINES);

	if (!blocks && !lines)
		return 0;
	return rls_event_output_warn(memory->parts.output, time_ns,
				     "memory: %" PRIu64
				     " blocks could not be followed, so they seem to live for "
				     "good; %" PRIu64 " allocations could not be counted",
				     blocks, lines);
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
	int r = memory->windows.open ? close_window(memory, stop_ns) : 0;

	if (!r)
		r = rls_memory_rows_end(memory->rows, 0, stop_ns);
	if (!r)
		r = sample_targets(memory, stop_ns);
	if (!r)
		r = sample_devices(memory, stop_ns);
	if (!r)
		r = rls_memory_rows_losses(memory->rows, stop_ns);
	log_hits(memory);
	if (!r)
		r = warn_of_rung(memory, stop_ns);
	if (!r)
		r = warn_of_late(memory, stop_ns);
	if (!r)
		r = warn_of_copies(memory, stop_ns);
	return r ? r : warn_of_losses(memory, stop_ns);
}
