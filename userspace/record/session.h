/* The recorder from inside: what its files share.
 *
 *     recorder.c         recording, finishing
 *     recorder_parts.c   its parts, opened one after the other and closed in the opposite order
 *     record_dispatch.c  records of the kernel side, each to the parts that it concerns
 *     target_observers.c parts that are called at fork, exec and end of processes
 *     watch_targets.c    processes that appear, and what processes map
 *     follow.c           which processes belong to it
 */
#ifndef RLS_SESSION_H
#define RLS_SESSION_H

#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/base/clock.h"
#include "userspace/cpu/cpu_affinity.h"
#include "userspace/record/cost/calibration_cache.h"
#include "userspace/record/early_records.h"
#include "userspace/record/ended_maps.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/events/losses.h"
#include "userspace/record/gpu/cupti_toggle.h"
#include "userspace/record/late_probes.h"
#include "userspace/record/layers/layers.h"
#include "userspace/record/memory/memory.h"
#include "userspace/record/probes/libraries.h"
#include "userspace/record/process_events.h"
#include "userspace/record/progress.h"
#include "userspace/record/recorder_options.h"
#include "userspace/record/resync.h"
#include "userspace/record/targets/new_processes.h"
#include "userspace/record/targets/target_table.h"

struct rls_recorder {
	struct rls_recorder_options options;
	struct rls_kernel *kernel;
	struct rls_event_output output;
	struct rls_translator *translator;
	struct rls_libraries *libraries;
	struct rls_describer describer;
	struct rls_targets targets;
	struct rls_new_processes new_processes;
	struct rls_mmap_watch *mmap_watch;
	struct rls_progress progress;
	struct rls_calibration_file costs;
	struct rls_code_map *code_map;
	struct rls_samples *samples; /* NULL: not asked for */
	struct rls_interpreters
		*interpreters; /* also where nothing is sampled: who is in Python at all */
	struct rls_memory *memory; /* NULL: not asked for */
	struct rls_layers *layers; /* the same */
	struct rls_gpu *gpu;
	struct rls_probe_toggle *probe_toggle; /* NULL: not asked for */
	struct rls_cupti_toggle cupti_toggle; /* open where the probe_toggle is */
	struct rls_overhead_controller
		*controller; /* NULL: no budget, or nothing can go on and off here */
	struct rls_losses losses;
	struct rls_late_probes late;
	struct rls_ended_maps ended_maps;
	struct rls_catch_up catch_up;
	struct rls_early_records early;
	struct rls_affinity affinity;
	uint64_t start_ns, stop_ns;
	int signal_fd, epoll_fd;
	size_t parts_open;
	bool draining; /* recording is over: watchers no longer act */
	bool failed; /* it ended early */
};

static inline bool rls_recorder_is_python(const struct rls_recorder *recorder, pid_t pid)
{
	return rls_libraries_python(recorder->libraries, pid)[0] != '\0';
}

#define RLS_SCAN_DELAY_NS 20000000ULL /* a burst of dlopen is looked at once */

/* 0, or -errno after a message; what was opened by then is to be closed in either case. */
int rls_recorder_open_parts(struct rls_recorder *recorder);
void rls_recorder_close_parts(struct rls_recorder *recorder);

/* Every part that keeps something for each process is called when a target forks, executes or ends. 0 or -ENOSPC. */
int rls_recorder_observe_targets(struct rls_recorder *recorder);

struct rls_process_watcher rls_recorder_watcher(struct rls_recorder *recorder);
/* A rls_record_handler; its context is the recorder. */
int rls_recorder_take(const struct rls_wire_header *record, size_t size, void *context);

/* What the kernel side has reported from before recording began is over with: children that it reported become
 * targets, and are described as of the beginning. 0 or -errno. */
int rls_recorder_adopt_early(struct rls_recorder *recorder);

/* What is in the rings, but for samples at the very beginning of `attach`: the first native function to be named may have
 * symbols read for long. The number of records or -errno. */
int rls_recorder_consume_timely(struct rls_recorder *recorder, uint64_t time_ns);

/* Notes what has been mapped. Who begins to switch stacks must not wait until all is attached.
 * context: the recorder. */
void rls_recorder_drain_maps(void *context);
/* Of what ended processes had mapped and nobody had looked at: counts what was lost, and while recording goes on probes
 * the files. */
void rls_recorder_probe_ended(struct rls_recorder *recorder);
/* A process that has begun to be selected, and what it has started by now. context: the recorder. */
void rls_recorder_adopt(void *context, pid_t pid);
/* rls_libraries_scan, and for how long what it probes was there before. */
int rls_recorder_scan(struct rls_recorder *recorder, pid_t pid, uint64_t time_ns);
/* What threads wait for that waited when recording began, or when their process was met. 0 or -errno. */
int rls_recorder_read_open_waits(struct rls_recorder *recorder);
/* For who has come, and for what has been mapped: it may take a second where that is large. */
void rls_recorder_scan_targets(struct rls_recorder *recorder, uint64_t time_ns);

/* Follows a process and, where children are followed, all that it has started. 0 or -errno. */
int rls_recorder_follow_tree(struct rls_recorder *recorder, pid_t pid, bool root);

#endif
