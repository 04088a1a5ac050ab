/* Session: switches CUPTI on and off, and passes on what it delivers in between. One thread at a
 * time; only CUPTI's callbacks run elsewhere, and they are those of buffers.h and clock.h.
 */
#ifndef RLS_CUPTI_SESSION_H
#define RLS_CUPTI_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_bridge/clock.h"
#include "cupti_bridge/cupti.h"
#include "cupti_bridge/launch_history.h"
#include "cupti_bridge/sender.h"

struct rls_session {
	struct rls_cupti cupti; /* version 0: not found yet */
	struct rls_sender sender;
	struct rls_launch_history launches;
	/* A record a graph launch, not one a node. Asked for; possible, as before CUDA has run; and
	 * on, which then is for the process's life: CUPTI 13.0 crashes graph launches otherwise. */
	bool wants_whole_graphs, may_trace_whole_graphs, traces_whole_graphs;
	bool is_armed;
	bool is_ending; /* what CUPTI delivers now may lack its times, not having ended */
	bool can_watch_clock; /* cuptiGetTimestamp follows the clock that we registered */
	bool has_refused_buffer; /* said once a session */
	bool wants_to_leave; /* CUPTI is to leave, once disarmed (leave.h) */
	bool has_graphs; /* a CUDA graph was launched while armed */
	bool is_leaving;
	uint64_t leave_by_ns;
	uint32_t foreign_thread_id_type;
	uint64_t earliest_ns, latest_ns; /* between which a record's times can be */
	uint64_t unfinished; /* work that had not ended when CUPTI was switched off */
	void *subscriber;
	/* What was said last, for a profiler that comes later. */
	enum rls_cupti_status status;
	uint64_t status_value;
	char sentence[RLS_CUPTI_NAME_BYTES_MAX];
};

/* Switches CUPTI on. It calls nothing of CUPTI when libcuda is not loaded. Says by a status
 * record what became of it; `session->status` is RLS_CUPTI_ARMED when it is on, NO_DRIVER when
 * it is worth another try (said once), another one when it is not. */
void rls_session_arm(struct rls_session *session);

/* Has CUPTI deliver what has ended, and sends it; when another tool has taken the clock over,
 * says STOLEN and is armed no more, without touching what is the other tool's now. */
void rls_session_flush(struct rls_session *session);

/* Switches CUPTI off, delivers what is left, and restores its settings. Where that is requested and possible CUPTI
 * then leaves the process, when the target next waits for the GPU. */
void rls_session_disarm(struct rls_session *session);

/* Sees whether CUPTI has left, and has it stay where there was no chance to for too long. */
void rls_session_check_leave(struct rls_session *session);
/* It is not to leave any more. */
void rls_session_stay(struct rls_session *session);

/* Throws away what has come while nothing is recorded: whole graphs, or buffers from before another
 * tool took over. */
void rls_session_discard(void);

/* Says the last status again. */
void rls_session_repeat_status(struct rls_session *session);

/* In a forked child, where CUPTI may not be called: says so and nothing else. */
void rls_session_abandon(struct rls_session *session);

#endif
