/* Recorder: from the first probe to the end mark of the trace.
 *
 *     open ─▶ (add processes) ─▶ start ─▶ loop ─▶ finish
 *
 * One thread does everything: it drains the ring buffers every few milliseconds, scans what
 * processes map, attaches to libraries that appear, and writes the trace. It stops at a signal, at
 * the end of the duration, when the disk is full, or when every process it was given has ended
 * (unless it has a selection, to which new processes may belong). In every case it keeps what was
 * recorded so far.
 */
#ifndef RLS_RECORDER_H
#define RLS_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/record/recorder_options.h"

struct rls_kernel;
struct rls_libraries;
struct rls_calibration;
struct rls_cuda_cost;
struct rls_operation_cost;
struct rls_delta_in_vivo;
struct rls_recorder;

/* Loads and calibrates the kernel side. 0 or -errno, and has said why. */
int rls_recorder_open(const struct rls_recorder_options *options, struct rls_recorder **out);
void rls_recorder_free(struct rls_recorder *recorder);

/* A process whose end, with that of all others added, ends the recording. Its libraries
 * are looked at and probed now; its children too when they are followed. -ESRCH, -ENOEXEC
 * when neither it nor a followed child is Python, -errno; it has been said why. */
int rls_recorder_add(struct rls_recorder *recorder, pid_t pid);
/* Every process that is selected now, and its children when they are followed; those that
 * come to be selected while it records are found then. -ENOEXEC when there is no Python among
 * them, unless all are selected: then they may come. It has been said why. */
int rls_recorder_add_selected(struct rls_recorder *recorder);
/* An executable that its processes may begin to run: if it is Python, its stacks are walked from the exec on. */
void rls_recorder_expect(struct rls_recorder *recorder, const char *path);
/* As rls_recorder_add, for a process of ours that has not yet executed its program. */
int rls_recorder_add_launch(struct rls_recorder *recorder, pid_t pid);

enum rls_stop {
	RLS_STOP_ENDED, /* the processes ended */
	RLS_STOP_DURATION,
	RLS_STOP_SIGNAL,
	RLS_STOP_FAILED, /* the trace could not be written any further */
};

/* Each may be NULL. */
struct rls_recorder_hooks {
	/* Everything is counted from here on. */
	void (*started)(void *context);
	/* Sees each SIGINT and SIGTERM, and SIGHUP when there is a listener; true means: go on
	 * recording. */
	bool (*on_signal)(void *context, int signal, bool from_terminal);
	void *context;
};

/* Creates the trace file, prints the `recording` line, records until something stops it. SIGINT and SIGTERM are
 * blocked in the calling process from rls_recorder_open on. */
int rls_recorder_run(struct rls_recorder *recorder, const struct rls_recorder_hooks *hooks,
		     enum rls_stop *why);

/* With options.alternate, when the recording is over: what was found, as a share of what this calibration
 * says. -ENODATA when there was too little to see. */
int rls_recorder_in_vivo(const struct rls_recorder *recorder, struct rls_delta_in_vivo *out,
			 struct rls_calibration *calibration);

/* The factors of delta's parts, by name, RLS_OPERATION_COSTS_MAX at most; before the recording is
 * finished. Returns how many: those of names too long to be kept are left out. */
size_t rls_recorder_operation_costs(const struct rls_recorder *recorder,
				    const struct rls_delta_in_vivo *delta,
				    struct rls_operation_cost *out);

/* What CUPTI was found to add to calls into CUDA, by name; before the recording is finished.
 * Returns how many, max at most; *bridged: there was a bridge to arm and disarm. */
size_t rls_recorder_cuda_costs(const struct rls_recorder *recorder, struct rls_cuda_cost *out,
			       size_t max, bool *bridged);

/* Takes the last states, ends the trace, detaches. 0 or -errno; the trace is valid also
 * then, up to where writing failed. */
int rls_recorder_finish(struct rls_recorder *recorder);

/* For who listens. What belongs to the recorder, which it reads itself. */
struct rls_kernel *rls_recorder_kernel(struct rls_recorder *recorder);
const struct rls_libraries *rls_recorder_libraries(const struct rls_recorder *recorder);
/* Hands over what waits in the rings: 0 or -errno. */
int rls_recorder_consume(struct rls_recorder *recorder);

#endif
