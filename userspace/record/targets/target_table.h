/* Target table: the processes that are recorded, and what each part of the recorder knows of them.
 *
 *     fork      ─▶ rls_targets_forked   ─▶ every observer's forked()
 *     exec      ─▶ rls_targets_execed   ─┐
 *     end       ─▶ rls_targets_ended    ─┼▶ every observer's forget()
 *     left out  ─▶ rls_targets_unfollow ─┘
 *
 * There is one target per process. A part that keeps something for each process observes the
 * table, and gets a place in every target for it. The table alone calls the observers, so an event
 * of a process reaches all of them or none. One thread.
 */
#ifndef RLS_TARGET_TABLE_H
#define RLS_TARGET_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "analysis/base/index_map.h"

#define RLS_TARGET_OBSERVERS_MAX 16

struct rls_target {
	pid_t pid;
	uint64_t
		start_ticks; /* when it began, as /proc has it: numbers are used again; 0: not known */
	bool root; /* named by the user: recording ends when all of these have */
	uint64_t scan_ns; /* when to scan its mappings next; 0: not by itself */
	uint64_t checked_ns;
	uint64_t execed_ns; /* when it executed its program; 0: before it was a target */
	uint64_t
		mapped_ns; /* when it first mapped something that has not been looked at; 0: nothing */
	uint64_t late_ns; /* for so long in all something was mapped and not probed yet */
	uint64_t
		called_ns; /* when it was first found to have called CUDA, with no bridge; 0: not */
	bool blind_reported; /* that its GPU times are not known */
	bool warned_of_tracer;
	size_t index; /* in the table's array */
	void *state[RLS_TARGET_OBSERVERS_MAX]; /* each its observer's, at the observer's place */
};

/* Why what is known of a target is of no use any more. */
enum rls_target_over {
	RLS_TARGET_EXECED, /* it runs another program, and stays a target */
	RLS_TARGET_ENDED,
	RLS_TARGET_UNFOLLOWED, /* it lives on, but is not recorded any more */
	RLS_TARGET_CLOSED, /* the observer leaves */
};

struct rls_target_observer {
	/* The child goes on in its parent's memory. parent: NULL when it is no target. The child may
	 * have a state, when it was found before its fork was. 0 or -errno. NULL: nothing is inherited. */
	int (*forked)(void *context, const struct rls_target *parent, struct rls_target *child,
		      uint64_t time_ns);
	/* Frees the state and has it be NULL. */
	void (*forget)(void *context, struct rls_target *target, enum rls_target_over why,
		       uint64_t time_ns);
	void *context;
};

/* Zeroed: empty. */
struct rls_targets {
	struct rls_target **all; /* in no order that lasts */
	size_t count, room;
	struct rls_index_map by_pid;
	struct rls_target_observer observers[RLS_TARGET_OBSERVERS_MAX];
	size_t observer_count;
	size_t tracer_at; /* whose tracer is looked for next, modulo count */
};

/* The observers have left. */
void rls_targets_clear(struct rls_targets *targets);

/* *place: where its state is in each target. 0 or -ENOSPC. */
int rls_targets_observe(struct rls_targets *targets, const struct rls_target_observer *observer,
			size_t *place);
/* Has it forget all targets. The last to come leaves first. */
void rls_targets_leave(struct rls_targets *targets, size_t place);

/* 0 (also when it is there already) or -ENOMEM. */
int rls_targets_add(struct rls_targets *targets, pid_t pid, bool root);
struct rls_target *rls_targets_find(const struct rls_targets *targets, pid_t pid);
size_t rls_targets_roots(const struct rls_targets *targets);
/* Asks for a scan of pid (0: at all) not later than when_ns. */
void rls_targets_scan_at(struct rls_targets *targets, pid_t pid, uint64_t when_ns);

/* The child becomes a target. All observers are called, those after one that fails too: 0 or the first -errno. */
int rls_targets_forked(struct rls_targets *targets, pid_t parent, pid_t child, uint64_t time_ns);
/* It becomes a target if its fork was missed. Observers forget in the opposite order. 0 or -ENOMEM. */
int rls_targets_execed(struct rls_targets *targets, pid_t pid, uint64_t time_ns);
void rls_targets_ended(struct rls_targets *targets, pid_t pid, uint64_t time_ns);
void rls_targets_unfollow(struct rls_targets *targets, pid_t pid, uint64_t time_ns);

#endif
