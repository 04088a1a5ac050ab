/* A recording of this very process: what its own calls of probed.h make the kernel tell. */
#ifndef RLS_TEST_RECORDING_H
#define RLS_TEST_RECORDING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "probed.h"
#include "userspace/attach/kernel/kernel.h"

union control_record {
	struct rls_wire_header header;
	struct rls_wire_thread thread;
	struct rls_wire_fork fork;
	struct rls_wire_exec exec;
	struct rls_wire_exit exit;
	struct rls_wire_name name;
	struct rls_wire_edge edge;
	struct rls_wire_loss loss;
	struct rls_wire_final final;
};

struct recording {
	struct rls_kernel *kernel;
	enum rls_attach_way way;
	bool totals_mode; /* set before it is opened */
	struct rls_wire_category *transitions;
	size_t transition_count, transition_room;
	union control_record *controls;
	size_t control_count, control_room;
};

/* Prints why and returns 77 where there can be no probes, 0 elsewhere. */
int recording_possible(void);

/* Group fixture pieces; all fail the test when they fail. Ring sizes 0: large enough. */
void recording_open(struct recording *recording, size_t transitions_bytes, size_t control_bytes);
void recording_track(struct recording *recording, uint32_t flags, uint64_t annotate_offset);
/* Every site of probed.h. */
void recording_attach(struct recording *recording);
void recording_start(struct recording *recording);
void recording_consume(struct recording *recording);
/* Stops, and takes what is left. */
void recording_stop(struct recording *recording);
void recording_close(struct recording *recording);
/* Waits until a site's code, every site's (SITES), is its own again: probes of the perf-event
 * way are taken off by a process of their own. Fails after a minute. */
void recording_wait_unprobed(enum probed_site site);

/* open, track with these flags, attach, start. */
void recording_begin(struct recording *recording, uint32_t flags);

/* The transitions of one thread as text: "?>P P>B B>P". Static storage. */
const char *recording_path(const struct recording *recording, pid_t tid);
size_t recording_transitions(const struct recording *recording, pid_t tid);
/* Hits in all piles of the thread. */
uint64_t recording_hits(const struct recording *recording, pid_t tid);
/* The n-th control record of this kind from pid (0: of anybody), or NULL. */
const union control_record *recording_control(const struct recording *recording,
					      enum rls_wire_kind kind, pid_t pid, size_t n);
size_t recording_controls(const struct recording *recording, enum rls_wire_kind kind, pid_t pid);
uint64_t recording_dropped(const struct recording *recording, enum rls_drop_counter which);

pid_t own_tid(void);

/* Both ways of attaching, one test each. A test's *state is a struct recording to begin. */
int recording_set_up(void **state);
int recording_tear_down(void **state);
extern enum rls_attach_way multi_way, perf_way;

#define BOTH_WAYS(test)                                                                            \
	{#test " (uprobe_multi)", test, recording_set_up, recording_tear_down, &multi_way},        \
	{                                                                                          \
#test " (perf events)", test, recording_set_up, recording_tear_down, &perf_way     \
	}

#endif
