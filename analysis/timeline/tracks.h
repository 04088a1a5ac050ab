/* Tracks: a trace as a picture shows it, passed to a sink while the sweep runs over it.
 *
 *     sweep ──spans, phases, launches, GPU intervals──▶ tracks ──begin, end, ...──▶ track sink
 *     (sweep.h)                                                      (writers/export/perfetto.c, ...)
 *
 *     process ─┬─ phases       phase
 *              ├─ thread       operation > operation > category
 *              ├─ GPU stream   kernel, copy, ... (a second lane where two overlap)
 *              ├─ GPU waits    synchronisation
 *              └─ GPU busy     1 while anything runs on the device, else 0
 *
 * On each track slices begin and end in time order and nest. Between tracks there is no order,
 * because a slice of the sweep is known once it has ended. The category slices on a thread's track
 * end wherever category, operations or phase change. They cover its life without a gap, so their
 * sums are the rows of the breakdown, to the nanosecond.
 *
 * Memory: the tracks, the names, and what is open. Nothing that has passed is kept.
 */
#ifndef RLS_TRACKS_H
#define RLS_TRACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/event/event.h"
#include "analysis/timeline/timeline.h"

struct rls_report; /* report/rows.h */

/* At most so many GPU intervals of one stream are shown side by side; more are left out. */
#define RLS_TRACK_LANES_MAX 16

enum rls_track_kind {
	RLS_TRACK_PROCESS = 0, /* holds the others, nothing else */
	RLS_TRACK_PHASES = 1,
	RLS_TRACK_THREAD = 2,
	RLS_TRACK_GPU_STREAM = 3,
	RLS_TRACK_GPU_WAITS = 4,
	RLS_TRACK_GPU_BUSY = 5, /* counted, no slices */
	RLS_TRACK_KIND_MAX = 6,
};

struct rls_track {
	uint32_t number; /* from 1, in order of appearance */
	enum rls_track_kind kind;
	const struct rls_track *process; /* itself for a process */
	uint32_t host; /* of a process: 0 for the first */
	uint32_t pid; /* unlike all others, on several hosts too (host_pid.h) */
	uint32_t tid; /* of a thread */
	const char *name; /* to be shown; never empty; valid while the tracks are */
};

enum rls_slice_kind {
	RLS_SLICE_PHASE = 0,
	RLS_SLICE_OPERATION = 1,
	RLS_SLICE_CATEGORY = 2,
	RLS_SLICE_GPU = 3,
	RLS_SLICE_LAUNCH = 4, /* an instant */
	RLS_SLICE_KIND_MAX = 5,
};

/* "phase", "operation", ... Static storage. */
const char *rls_slice_kind_name(enum rls_slice_kind kind);

struct rls_slice {
	enum rls_slice_kind kind;
	rls_string_id name; /* in the sink's names */
	uint64_t flow; /* shared by a launch and the work it began; 0: none */
};

/* A format's side. Every function returns 0 or -errno, which ends the reading; failures of a
 * stream are noticed at the end. begin, end, launch and count come after the track's track. */
struct rls_track_sink {
	int (*track)(struct rls_track_sink *sink, const struct rls_track *track);
	int (*begin)(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
		     const struct rls_slice *slice);
	int (*end)(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns);
	int (*launch)(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
		      const struct rls_slice *slice);
	int (*count)(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
		     uint64_t value);
	/* Nothing more will come. The report has what concerns the whole: warnings, losses. */
	int (*finish)(struct rls_track_sink *sink, const struct rls_report *report);
	void (*free)(struct rls_track_sink *sink);

	/* Set by rls_tracks_new. */
	const struct rls_string_pool *names;
	/* The first trace's beginning, set before the first call: subtract it where a format's
	 * numbers are doubles. Of several traces another may begin before it. */
	uint64_t base_ns;
};

struct rls_tracks;

/* The sink is the tracks' from here on, also on failure. NULL when out of memory. */
struct rls_tracks *rls_tracks_new(struct rls_track_sink *sink);
void rls_tracks_free(struct rls_tracks *tracks);

/* The trace whose sweep comes next; shift_ns is added to its times. */
void rls_tracks_begin_trace(struct rls_tracks *tracks, const struct rls_string_pool *strings,
			    int64_t shift_ns);

/* How many GPU intervals were left out for want of lanes. */
uint64_t rls_tracks_left_out(const struct rls_tracks *tracks);

int rls_tracks_finish(struct rls_tracks *tracks, const struct rls_report *report);

/* --- for the sweep ------------------------------------------------------------------ */

/* The trace's clock, to be passed before anything else of it: traces of other boots than the
 * first whose clock is known are shifted onto that one's. */
int rls_tracks_clock(struct rls_timeline *timeline, const struct rls_host_clock *clock);

/* The thread was in its present stack, category and phase for [start_ns, now). */
int rls_tracks_span(struct rls_timeline *timeline, struct rls_thread *thread, uint64_t start_ns);
/* The thread's life ends now. */
int rls_tracks_thread_end(struct rls_timeline *timeline, struct rls_thread *thread);
/* The process was in its present phase for [start_ns, now). */
int rls_tracks_phase(struct rls_timeline *timeline, struct rls_process *process, uint64_t start_ns);
int rls_tracks_launch(struct rls_timeline *timeline, struct rls_thread *thread,
		      const struct rls_event *event);
/* Sorted by start. */
int rls_tracks_gpu(struct rls_timeline *timeline, struct rls_process *process,
		   const struct rls_event *event);
/* No GPU interval of the process will come any more. */
int rls_tracks_process_end(struct rls_timeline *timeline, struct rls_process *process);

#endif
