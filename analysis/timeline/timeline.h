/* Timeline: the processes and threads of a trace and what each is doing at this instant.
 *
 *     process ── threads ── scopes: one per (phase, operation stack) the thread was ever in
 *        │           └── open span: since when, in which scope and category
 *        └── GPU busy so far, GPU work by device
 *
 * The sweep (sweep.h) moves it from event to event; what has passed is only in the cells of
 * the scopes and of each thread's overview, so memory is that of the report, not of the trace.
 */
#ifndef RLS_TIMELINE_H
#define RLS_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "analysis/correct/induced_wait.h"
#include "analysis/correct/overhead_correction.h"
#include "analysis/event/event.h"
#include "analysis/event/stack_tree.h"
#include "analysis/gpu/call_set.h"
#include "analysis/gpu/gpu_busy.h"
#include "analysis/gpu/gpu_work.h"
#include "analysis/layers/layer_names.h"
#include "analysis/layers/layer_totals.h"
#include "analysis/memory/memory_totals.h"
#include "analysis/samples/operation_rules.h"
#include "analysis/samples/operation_samples.h"
#include "analysis/samples/sample_totals.h"
#include "analysis/timeline/overview.h"
#include "analysis/timeline/trace_metadata.h"
#include "analysis/timeline/untraced_state.h"

/* Everything added up for a thread, or for a process without one, in a phase and operation stack. */
struct rls_scope {
	struct rls_scope *next;
	rls_string_id phase;
	rls_stack_id stack;
	rls_string_id operation; /* innermost of the stack */
	uint64_t entries; /* how often it was entered, with this stack below it */
	uint64_t
		visits; /* how often the thread came to be in it, by entering or by leaving another */
	struct rls_cell cells[RLS_CATEGORY_MAX];
	uint64_t transitions[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX]; /* [from][to] */
	float scaled_error[RLS_CATEGORY_MAX]
			  [RLS_CATEGORY_MAX]; /* of them; once estimated (untraced_time.h) */
	float scaled_cost
		[RLS_CATEGORY_MAX]
		[RLS_CATEGORY_MAX]; /* share by which they change if no hit had cost anything */
	struct rls_calls_scale calls_scale; /* of its CUDA calls */
	struct rls_untraced *unseen; /* NULL: all was traced */
	struct rls_sample_pair *python; /* of its traced Python time; NULL: none */
	struct rls_operation_samples
		*sampled; /* without an operation: by rules (sampled_operations.h) */
	uint64_t gpu_alone_ns; /* of a process: GPU busy while none of its threads is traced */
};

struct rls_tracks;
struct rls_shown_track;

struct rls_thread {
	struct rls_thread *next;
	struct rls_process *process;
	uint32_t tid;
	rls_string_id name;

	struct rls_thread *next_alive; /* of the process; see alive_link */
	struct rls_thread **alive_link; /* what points here; NULL: not alive */

	bool unseen; /* tracing is off, or has reported nothing since it is on */
	bool unreported; /* unseen: tracing was on all along since it began, or went on to nothing known */
	bool reported; /* a category, at some time */
	bool sampled; /* at, while it was unseen */
	enum rls_category category; /* while unseen: by the latest category sample */
	rls_stack_id stack;
	uint16_t continued; /* so many of its outermost operations the thread has not entered */
	struct rls_scope *
		scope; /* of the stack, in the process's phase; NULL: not used yet (thread_life.h) */
	uint64_t open_ns; /* added up to here */
	uint64_t open_busy_ns; /* the process's G(open_ns) */
	struct rls_span_window window;
	struct rls_thread_layers layers;
	struct rls_overview overview;
	uint64_t state_ns; /* since when in this category, stack and phase */
	struct rls_shown_track *track; /* tracks.h; borrowed */

	struct rls_scope *scopes;
};

struct rls_process_library {
	rls_string_id path;
	rls_string_id role;
	uint32_t sites;
};

struct rls_process {
	struct rls_process *next;
	uint32_t pid;
	uint32_t ppid;
	uint32_t ns_pid;
	rls_string_id name;
	rls_string_id python;
	rls_string_id cmdline;
	rls_string_id container;
	bool started; /* start_ns holds: more than its libraries is known */
	bool ended; /* end_ns holds */
	uint64_t start_ns;
	uint64_t end_ns;

	struct rls_truth truth;
	rls_string_id phase;
	uint64_t phase_ns; /* since when */
	struct rls_shown_track *track; /* tracks.h; borrowed */
	struct rls_gpu_busy busy; /* of all devices */
	struct rls_gpu_work gpu;
	struct rls_gpu_clock {
		uint64_t readings;
		uint64_t width_ns; /* the widest */
		double gap_ns; /* the one farthest from 0 */
		double drift_ppm; /* of the last */
	} clock;
	struct rls_call_set calls;
	struct rls_process_memory memory;
	uint32_t layers_begun; /* so many of its layers */
	struct rls_induced_wait others_cost; /* while more than one thread is alive */
	uint64_t alone_busy_ns; /* while no thread is alive: G(added up to here) */

	struct rls_thread *threads;
	struct rls_thread *alive;
	struct rls_scope *scopes; /* for gpu_alone_ns only */
	struct rls_process_library *libraries;
	size_t library_count, library_capacity;
};

struct rls_timeline {
	struct rls_process *processes; /* latest first */
	size_t living; /* processes not ended */
	struct rls_index_map process_map; /* pid -> the latest process of that pid */
	struct rls_index_map thread_map; /* (process, tid) */
	struct rls_index_map scope_map; /* (thread or process, phase and stack) */
	struct rls_index_map library_map; /* (process, path and role) -> 1 + index */
	struct rls_stack_tree stacks;
	struct rls_trace_metadata facts;
	struct rls_sample_totals samples;
	struct rls_memory_totals memory;
	struct rls_layer_names layers;
	struct rls_operation_rules rules;
	const struct rls_string_pool
		*strings; /* of the events; NULL: rules are not applied; borrowed */

	bool any; /* the instants below hold */
	uint64_t first_ns;
	uint64_t now_ns;
	uint64_t last_gpu_ns; /* latest end of a GPU interval */
	bool end_seen;
	bool end_complete;
	uint64_t end_ns; /* of the end mark, or of all there is */

	bool closed; /* tracing is off (untraced_time.h) */
	bool closed_first; /* it was from the first instant on */
	uint32_t windows; /* begun so far, after the one that begins with the trace */
	uint64_t opened_ns; /* the window that is open */
	uint64_t *window_lengths; /* of those that are over, by number */
	size_t window_capacity;
	uint64_t category_samples; /* at threads in closed time */

	uint64_t hits;
	uint64_t hits_cost_ns;
	uint64_t hits_unplaced_ns; /* of it, what found no time that it could lie in */
	uint64_t hits_under_gpu_ns; /* of it, what lies in cpu+gpu time, and so is not taken away */
	uint64_t emitted; /* category, operation, phase and launch events */
	uint64_t impossible_gpu; /* records left out */
	uint64_t unsorted; /* events whose time went back */
	uint64_t strays; /* events of processes that had ended */

	struct rls_thread *recent; /* the thread of the last event */
	struct rls_tracks
		*tracks; /* called with everything that the sweep passes; NULL: none; borrowed */
};

void rls_timeline_free(struct rls_timeline *timeline);

/* The latest process of this pid, or NULL. */
struct rls_process *rls_timeline_process(const struct rls_timeline *timeline, uint32_t pid);

/* A new process of this pid, from now on the latest, not yet started. 0, or -ENOMEM. */
int rls_timeline_add_process(struct rls_timeline *timeline, uint32_t pid, struct rls_process **out);

struct rls_thread *rls_timeline_thread(struct rls_timeline *timeline,
				       const struct rls_process *process, uint32_t tid);

/* A new thread, not yet alive. 0, or -ENOMEM. */
int rls_timeline_add_thread(struct rls_timeline *timeline, struct rls_process *process,
			    uint32_t tid, struct rls_thread **out);

/* The scope of a phase and stack in the list of an owner (a thread or process), made if it is
 * not there. 0, or -ENOMEM. */
int rls_timeline_scope(struct rls_timeline *timeline, const void *owner, struct rls_scope **list,
		       rls_string_id phase, rls_stack_id stack, struct rls_scope **out);

/* What is kept of the scope's untraced time, made if it is not there. NULL: no memory. */
struct rls_untraced *rls_timeline_scope_untraced(struct rls_scope *scope);

/* All of it that is in no category yet. */
void rls_untraced_all(const struct rls_untraced *untraced, struct rls_cell *out);

/* A thread's overview is bounded; this bounds all together, the longest being folded first. */
#define RLS_TIMELINE_CELLS_MAX 131072
void rls_timeline_shrink_overviews(struct rls_timeline *timeline);

/* Adds a library to a process or updates its sites. 0, or -ENOMEM. */
int rls_timeline_add_library(struct rls_timeline *timeline, struct rls_process *process,
			     const struct rls_process_library *library);

/* Makes a MEMORY_LINE, MEMORY_AGES or COPY_LINE event the part of it after what was swept (memory_slice.h). False:
 * there is none. */
bool rls_timeline_slice_memory(const struct rls_timeline *before, struct rls_event *event);

#endif
