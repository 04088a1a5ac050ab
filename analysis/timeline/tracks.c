#include "analysis/timeline/tracks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "analysis/base/host_pid.h"
#include "analysis/trace/text_form.h"

#define NAME_BYTES 128

static const char *const slice_kind_names[] = {
	[RLS_SLICE_PHASE] = "phase",       [RLS_SLICE_OPERATION] = "operation",
	[RLS_SLICE_CATEGORY] = "category", [RLS_SLICE_GPU] = "gpu",
	[RLS_SLICE_LAUNCH] = "launch",
};
_Static_assert(sizeof(slice_kind_names) / sizeof(*slice_kind_names) == RLS_SLICE_KIND_MAX,
	       "a name each");

struct rls_shown_track {
	struct rls_track track;
	struct rls_shown_track *next; /* of all */
	struct rls_shown_track *next_lane; /* of a stream */

	bool open; /* thread: a category's slice is open, and these operations' */
	rls_stack_id stack;
	uint64_t end_ns; /* GPU lane: of its last interval */
	struct rls_gpu_busy busy; /* GPU busy: the run that may still grow is not reported yet */
};

struct rls_tracks {
	struct rls_track_sink *sink;
	struct rls_shown_track *all;
	uint32_t count;
	uint64_t left_out;

	/* The sink's names, and what the strings of the present trace are there. */
	struct rls_string_pool *names;
	const struct rls_string_pool *strings;
	rls_string_id *known; /* by the trace's id; 0: not yet asked for */
	size_t known_count;

	int64_t shift_ns;
	uint32_t count_before; /* tracks of the traces before the present one */
	int64_t offset_ns; /* of the first trace whose clock is known */
	rls_string_id *boots; /* in names: of each host, that trace's first */
	size_t host_count, host_capacity;
	uint32_t host; /* of the present trace */
	/* Of the present trace: (process, device and stream) -> track. */
	struct rls_index_map maps[RLS_TRACK_KIND_MAX];
};

const char *rls_slice_kind_name(enum rls_slice_kind kind)
{
	return (unsigned int)kind < RLS_SLICE_KIND_MAX ? slice_kind_names[kind] : "";
}

/* --- the whole ---------------------------------------------------------------------- */

struct rls_tracks *rls_tracks_new(struct rls_track_sink *sink)
{
	struct rls_tracks *tracks = calloc(1, sizeof(*tracks));

	if (tracks)
		tracks->names = rls_string_pool_new();
	if (!tracks || !tracks->names) {
		free(tracks);
		sink->free(sink);
		return NULL;
	}
	tracks->sink = sink;
	sink->names = tracks->names;
	return tracks;
}

static void forget_trace(struct rls_tracks *tracks)
{
	for (int kind = 0; kind < RLS_TRACK_KIND_MAX; kind++)
		rls_index_map_free(&tracks->maps[kind]);
	free(tracks->known);
	tracks->known = NULL;
	tracks->known_count = 0;
}

void rls_tracks_free(struct rls_tracks *tracks)
{
	if (!tracks)
		return;
	forget_trace(tracks);
	while (tracks->all) {
		struct rls_shown_track *track = tracks->all;

		tracks->all = track->next;
		free(track);
	}
	tracks->sink->free(tracks->sink);
	rls_string_pool_free(tracks->names);
	free(tracks->boots);
	free(tracks);
}

void rls_tracks_begin_trace(struct rls_tracks *tracks, const struct rls_string_pool *strings,
			    int64_t shift_ns)
{
	forget_trace(tracks);
	tracks->strings = strings;
	tracks->shift_ns = shift_ns;
	tracks->host = 0;
	tracks->count_before = tracks->count;
}

uint64_t rls_tracks_left_out(const struct rls_tracks *tracks)
{
	return tracks->left_out;
}

int rls_tracks_finish(struct rls_tracks *tracks, const struct rls_report *report)
{
	return tracks->sink->finish(tracks->sink, report);
}

/* --- names and times ---------------------------------------------------------------- */

static uint64_t shifted(const struct rls_tracks *tracks, uint64_t ns)
{
	if (tracks->shift_ns < 0 && ns < (uint64_t)-tracks->shift_ns)
		return 0;
	return ns + (uint64_t)tracks->shift_ns;
}

static int tracks_intern(struct rls_tracks *tracks, const char *text, rls_string_id *out)
{
	return rls_string_pool_add(tracks->names, text, strlen(text), out);
}

/* By its boot, in the order of the traces. */
static int find_host(struct rls_tracks *tracks, rls_string_id boot, uint32_t *out)
{
	size_t i = 0;
	int err;

	while (i < tracks->host_count && tracks->boots[i] != boot)
		i++;
	*out = (uint32_t)i;
	if (i < tracks->host_count)
		return 0;
	if (i == RLS_HOSTS_MAX)
		return -E2BIG;
	err = rls_grow(&tracks->boots, &tracks->host_capacity, i);
	if (!err)
		tracks->boots[tracks->host_count++] = boot;
	return err;
}

int rls_tracks_clock(struct rls_timeline *timeline, const struct rls_host_clock *clock)
{
	struct rls_tracks *tracks = timeline->tracks;
	rls_string_id boot;
	uint32_t host;
	int err = tracks_intern(tracks, rls_string_pool_get(tracks->strings, clock->boot), &boot);

	if (err)
		return err;
	if (!tracks->host_count)
		tracks->offset_ns = clock->offset_ns;
	err = find_host(tracks, boot, &host);
	/* Too late where something has been shown already: half a trace is not moved. */
	if (err || tracks->count != tracks->count_before)
		return err;
	tracks->host = host;
	if (host)
		tracks->shift_ns += clock->offset_ns - tracks->offset_ns;
	return 0;
}

/* The sink's name for a string of the trace. */
static int translate(struct rls_tracks *tracks, rls_string_id id, rls_string_id *out)
{
	int err = 0;

	/* An id the source never gave is the empty string, and no reason for a table. */
	if (id >= rls_string_pool_count(tracks->strings))
		id = 0;
	err = rls_grow_to(&tracks->known, &tracks->known_count, id);
	if (!err && !tracks->known[id])
		err = tracks_intern(tracks, rls_string_pool_get(tracks->strings, id),
				    &tracks->known[id]);
	if (!err)
		*out = tracks->known[id];
	return err;
}

/* --- tracks ------------------------------------------------------------------------- */

static int new_track(struct rls_tracks *tracks, enum rls_track_kind kind,
		     const struct rls_shown_track *process, struct rls_shown_track **out,
		     const char *format, ...) __attribute__((format(printf, 5, 6)));

static int new_track(struct rls_tracks *tracks, enum rls_track_kind kind,
		     const struct rls_shown_track *process, struct rls_shown_track **out,
		     const char *format, ...)
{
	struct rls_shown_track *track = calloc(1, sizeof(*track));
	char name[NAME_BYTES];
	rls_string_id id;
	va_list arguments;
	int err;

	if (!track)
		return -ENOMEM;
	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	err = tracks_intern(tracks, name, &id);
	if (err) {
		free(track);
		return err;
	}
	track->next = tracks->all;
	tracks->all = track;
	track->track = (struct rls_track){
		.number = ++tracks->count,
		.kind = kind,
		.process = process ? &process->track : &track->track,
		.pid = process ? process->track.pid : 0,
		.name = rls_string_pool_get(tracks->names, id),
	};
	*out = track;
	return 0;
}

static int tracks_report(struct rls_tracks *tracks, const struct rls_shown_track *track)
{
	return tracks->sink->track(tracks->sink, &track->track);
}

/* A pid that a process of another host has already is shown under another (host_pid.h). */
static uint32_t shown_pid(const struct rls_tracks *tracks, uint32_t pid)
{
	if (tracks->host_count < 2 || !rls_host_pid_fits(pid))
		return pid;
	for (const struct rls_shown_track *track = tracks->all; track; track = track->next) {
		if (track->track.kind == RLS_TRACK_PROCESS && track->track.pid == pid &&
		    track->track.host != tracks->host)
			return rls_host_pid(tracks->host, pid);
	}
	return pid;
}

static int process_track(struct rls_timeline *timeline, struct rls_process *process,
			 struct rls_shown_track **out)
{
	struct rls_tracks *tracks = timeline->tracks;
	const char *name = rls_string_pool_get(tracks->strings, process->name);
	int err = 0;

	if (!process->track) {
		if (!tracks->count)
			tracks->sink->base_ns = shifted(tracks, timeline->first_ns);
		err = tracks->host ? new_track(tracks, RLS_TRACK_PROCESS, NULL, &process->track,
					       "%s on host %" PRIu32, *name ? name : "process",
					       tracks->host + 1)
				   : new_track(tracks, RLS_TRACK_PROCESS, NULL, &process->track,
					       "%s", *name ? name : "process");
		if (err)
			return err;
		process->track->track.host = tracks->host;
		process->track->track.pid = shown_pid(tracks, process->pid);
		err = tracks_report(tracks, process->track);
	}
	*out = process->track;
	return err;
}

static int thread_track(struct rls_timeline *timeline, struct rls_thread *thread,
			struct rls_shown_track **out)
{
	struct rls_tracks *tracks = timeline->tracks;
	const char *name = rls_string_pool_get(tracks->strings, thread->name);
	struct rls_shown_track *process;
	int err = 0;

	if (!thread->track) {
		err = process_track(timeline, thread->process, &process);
		if (!err)
			err = new_track(tracks, RLS_TRACK_THREAD, process, &thread->track, "%s",
					*name ? name : "thread");
		if (err)
			return err;
		thread->track->track.tid = thread->tid;
		err = tracks_report(tracks, thread->track);
	}
	*out = thread->track;
	return err;
}

/* The only track of a kind that a process has for this key; *out is NULL when it is not there. */
static struct rls_shown_track *tracks_find(const struct rls_tracks *tracks,
					   enum rls_track_kind kind,
					   const struct rls_process *process, uint64_t key)
{
	return rls_index_map_get(&tracks->maps[kind], (uintptr_t)process, key);
}

static int tracks_store(struct rls_tracks *tracks, const struct rls_process *process, uint64_t key,
			struct rls_shown_track *track)
{
	int err =
		rls_index_map_put(&tracks->maps[track->track.kind], (uintptr_t)process, key, track);

	return err ? err : tracks_report(tracks, track);
}

/* --- slices ------------------------------------------------------------------------- */

static int tracks_begin(struct rls_tracks *tracks, const struct rls_shown_track *track,
			uint64_t at_ns, const struct rls_slice *slice)
{
	return tracks->sink->begin(tracks->sink, &track->track, shifted(tracks, at_ns), slice);
}

static int tracks_end(struct rls_tracks *tracks, const struct rls_shown_track *track,
		      uint64_t at_ns)
{
	return tracks->sink->end(tracks->sink, &track->track, shifted(tracks, at_ns));
}

/* Ends the open category, and the operations above `stay`. */
static int close_slices(struct rls_timeline *timeline, struct rls_shown_track *track,
			rls_stack_id stay, uint64_t at_ns)
{
	int err = 0;

	if (!track->open)
		return 0;
	err = tracks_end(timeline->tracks, track, at_ns);
	while (!err && track->stack != stay) {
		err = tracks_end(timeline->tracks, track, at_ns);
		track->stack = rls_stack_tree_node(&timeline->stacks, track->stack).parent;
	}
	track->open = false;
	return err;
}

static int open_operations(struct rls_timeline *timeline, struct rls_shown_track *track,
			   rls_stack_id stack, uint64_t at_ns)
{
	size_t below = rls_stack_tree_node(&timeline->stacks, track->stack).depth;
	rls_string_id names[RLS_OPERATION_DEPTH_MAX];
	size_t depth = rls_stack_tree_names(&timeline->stacks, stack, names);
	int err = 0;

	for (size_t i = below; !err && i < depth; i++) {
		struct rls_slice slice = {.kind = RLS_SLICE_OPERATION};

		err = translate(timeline->tracks, names[i], &slice.name);
		if (!err)
			err = tracks_begin(timeline->tracks, track, at_ns, &slice);
	}
	track->stack = stack;
	return err;
}

int rls_tracks_span(struct rls_timeline *timeline, struct rls_thread *thread, uint64_t start_ns)
{
	struct rls_tracks *tracks = timeline->tracks;
	struct rls_slice slice = {.kind = RLS_SLICE_CATEGORY};
	struct rls_shown_track *track;
	int err = thread_track(timeline, thread, &track);

	if (err)
		return err;
	err = close_slices(timeline, track,
			   rls_stack_tree_common(&timeline->stacks, track->stack, thread->stack),
			   start_ns);
	if (!err)
		err = open_operations(timeline, track, thread->stack, start_ns);
	if (!err)
		err = tracks_intern(tracks, rls_category_name(thread->category), &slice.name);
	if (!err)
		err = tracks_begin(tracks, track, start_ns, &slice);
	track->open = !err;
	return err;
}

int rls_tracks_thread_end(struct rls_timeline *timeline, struct rls_thread *thread)
{
	return thread->track ? close_slices(timeline, thread->track, 0, timeline->now_ns) : 0;
}

int rls_tracks_phase(struct rls_timeline *timeline, struct rls_process *process, uint64_t start_ns)
{
	struct rls_tracks *tracks = timeline->tracks;
	struct rls_slice slice = {.kind = RLS_SLICE_PHASE};
	struct rls_shown_track *parent, *track = tracks_find(tracks, RLS_TRACK_PHASES, process, 0);
	int err = translate(tracks, process->phase, &slice.name);

	if (!err && !track) {
		err = process_track(timeline, process, &parent);
		if (!err)
			err = new_track(tracks, RLS_TRACK_PHASES, parent, &track, "phase");
		if (!err)
			err = tracks_store(tracks, process, 0, track);
	}
	if (!err)
		err = tracks_begin(tracks, track, start_ns, &slice);
	return err ? err : tracks_end(tracks, track, timeline->now_ns);
}

/* --- GPU ---------------------------------------------------------------------------- */

/* The same for a launch and its work; of two processes, or two traces, never in practice. */
static uint64_t flow_of(const struct rls_shown_track *process, uint64_t correlation)
{
	uint64_t mixed = correlation ^ (uint64_t)process->track.number << 40;

	if (!correlation)
		return 0;
	mixed *= 0x9e3779b97f4a7c15u;
	mixed ^= mixed >> 32;
	return mixed ? mixed : 1;
}

int rls_tracks_launch(struct rls_timeline *timeline, struct rls_thread *thread,
		      const struct rls_event *event)
{
	struct rls_tracks *tracks = timeline->tracks;
	struct rls_slice slice = {.kind = RLS_SLICE_LAUNCH};
	struct rls_shown_track *track;
	int err = thread_track(timeline, thread, &track);

	if (!err)
		err = event->launch.name ? translate(tracks, event->launch.name, &slice.name)
					 : tracks_intern(tracks, "launch", &slice.name);
	if (err)
		return err;
	slice.flow = flow_of(thread->process->track, event->launch.correlation);
	return tracks->sink->launch(tracks->sink, &track->track, shifted(tracks, event->time_ns),
				    &slice);
}

/* The lane on which an interval fits; *out NULL when there are too many. */
static int find_lane(struct rls_tracks *tracks, struct rls_process *process,
		     const struct rls_event *event, struct rls_shown_track **out)
{
	bool waits = event->gpu.kind == RLS_GPU_SYNC;
	enum rls_track_kind kind = waits ? RLS_TRACK_GPU_WAITS : RLS_TRACK_GPU_STREAM;
	uint32_t device = event->gpu.device, stream = waits ? 0 : event->gpu.stream;
	uint64_t key = (uint64_t)device << 32 | stream;
	struct rls_shown_track *last = NULL, *lane = tracks_find(tracks, kind, process, key);
	int lanes = 1, err;
	char suffix[16] = "";

	for (; lane && lane->end_ns > event->time_ns; lane = lane->next_lane, lanes++)
		last = lane;
	*out = lane;
	if (lane || lanes > RLS_TRACK_LANES_MAX)
		return 0;
	if (last)
		snprintf(suffix, sizeof(suffix), " (%d)", lanes);
	if (waits)
		err = new_track(tracks, kind, process->track, &lane, "GPU %" PRIu32 " waits%s",
				device, suffix);
	else
		err = new_track(tracks, kind, process->track, &lane,
				"GPU %" PRIu32 " stream %" PRIu32 "%s", device, stream, suffix);
	if (err)
		return err;
	*out = lane;
	if (!last)
		return tracks_store(tracks, process, key, lane);
	last->next_lane = lane;
	return tracks_report(tracks, lane);
}

/* Tells of the run that can grow no more, if there is one. */
static int report_run(struct rls_tracks *tracks, const struct rls_shown_track *track)
{
	uint64_t start_ns = track->busy.run_start_ns, end_ns = track->busy.run_end_ns;
	int err;

	if (start_ns == end_ns)
		return 0;
	err = tracks->sink->count(tracks->sink, &track->track, shifted(tracks, start_ns), 1);
	return err ? err
		   : tracks->sink->count(tracks->sink, &track->track, shifted(tracks, end_ns), 0);
}

static int count_busy(struct rls_tracks *tracks, struct rls_process *process,
		      const struct rls_event *event)
{
	uint32_t device = event->gpu.device;
	struct rls_shown_track *track = tracks_find(tracks, RLS_TRACK_GPU_BUSY, process, device);
	int err = 0;

	if (!track) {
		err = new_track(tracks, RLS_TRACK_GPU_BUSY, process->track, &track,
				"GPU %" PRIu32 " busy", device);
		if (!err)
			err = tracks_store(tracks, process, device, track);
		if (err)
			return err;
	}
	if (event->time_ns > track->busy.run_end_ns)
		err = report_run(tracks, track);
	rls_gpu_busy_add(&track->busy, event->time_ns, event->gpu.end_ns);
	return err;
}

int rls_tracks_gpu(struct rls_timeline *timeline, struct rls_process *process,
		   const struct rls_event *event)
{
	struct rls_tracks *tracks = timeline->tracks;
	struct rls_slice slice = {.kind = RLS_SLICE_GPU};
	struct rls_shown_track *lane, *parent;
	int err;

	if (event->gpu.end_ns == event->time_ns)
		return 0;
	err = process_track(timeline, process, &parent);
	if (!err && event->gpu.kind != RLS_GPU_SYNC)
		err = count_busy(tracks, process, event);
	if (!err)
		err = find_lane(tracks, process, event, &lane);
	if (err)
		return err;
	if (!lane) {
		tracks->left_out++;
		return 0;
	}
	lane->end_ns = event->gpu.end_ns;
	slice.flow = flow_of(parent, event->gpu.correlation);
	err = event->gpu.name
		      ? translate(tracks, event->gpu.name, &slice.name)
		      : tracks_intern(tracks, rls_gpu_kind_name(event->gpu.kind), &slice.name);
	if (!err)
		err = tracks_begin(tracks, lane, event->time_ns, &slice);
	return err ? err : tracks_end(tracks, lane, event->gpu.end_ns);
}

int rls_tracks_process_end(struct rls_timeline *timeline, struct rls_process *process)
{
	struct rls_tracks *tracks = timeline->tracks;
	int err = 0;

	for (const struct rls_gpu_device *d = process->gpu.devices; !err && d; d = d->next) {
		const struct rls_shown_track *track =
			tracks_find(tracks, RLS_TRACK_GPU_BUSY, process, d->device);

		if (track)
			err = report_run(tracks, track);
	}
	return err;
}
