/* CUDA calls: from transitions into `cuda_api` and out of it, the calls by name.
 *
 *     probed files ─▶ site → name           ┌─▶ CUDA_CALL at a call's end, with its duration
 *     RLS_WIRE_CATEGORY ─▶ open calls of each thread
 *
 * A transition happens where a thread enters CUDA from outside, so a driver call inside a
 * runtime call is part of it and no call of its own, while one from cuBLAS or Triton is. A
 * call whose beginning or end was lost is none.
 *
 * While CUPTI is armed in a process its calls take longer. Where it is known by how much
 * (cupti_overhead.h), a HITS event of no hits at the call's end says so, and the correction subtracts it
 * from the call. One thread.
 */
#ifndef RLS_CUDA_CALLS_H
#define RLS_CUDA_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "bpf/wire/record.h"
#include "userspace/record/events/event_output.h"

/* Zeroed but for output: nothing yet. */
struct rls_cuda_calls {
	struct rls_event_output *output; /* borrowed */
	int (*on_call)(void *context, rls_string_id name, uint64_t start_ns,
		       uint64_t duration_ns); /* or NULL */
	void *on_call_context;
	struct rls_index_map sites; /* site → struct rls_cuda_site */
	struct rls_index_map processes; /* pid → struct rls_cuda_process */
	struct rls_cuda_ended {
		uint64_t time_ns;
		uint32_t pid, tid; /* 0: the process */
	} * ended; /* to be forgotten, first come first */
	size_t ended_count, ended_room;
};

void rls_cuda_calls_clear(struct rls_cuda_calls *calls);

/* A site at an entry point of CUDA. 0 or -ENOMEM. */
int rls_cuda_calls_site(struct rls_cuda_calls *calls, uint32_t site, const char *name);

/* on_call gets each call: its name, when it began and how long it took. It returns 0 or -errno. */
void rls_cuda_calls_listen(struct rls_cuda_calls *calls,
			   int (*on_call)(void *context, rls_string_id name, uint64_t start_ns,
					  uint64_t duration_ns),
			   void *context);
/* What a call of that name takes longer in that process while CUPTI is armed. 0 or -ENOMEM. */
int rls_cuda_calls_set_cost(struct rls_cuda_calls *calls, uint32_t pid, const char *name,
			    uint64_t cost_ns);
/* It is armed there, or no longer. 0 or -ENOMEM. */
int rls_cuda_calls_arm(struct rls_cuda_calls *calls, uint32_t pid, bool armed);

/* Has the process made any that was seen? */
bool rls_cuda_calls_made(const struct rls_cuda_calls *calls, uint32_t pid);

/* A transition. 0, or -errno from writing. */
int rls_cuda_calls_add(struct rls_cuda_calls *calls, const struct rls_wire_category *record);
/* A thread has ended. Its last transitions may be yet to come, on another ring. 0 or -ENOMEM. */
int rls_cuda_calls_end(struct rls_cuda_calls *calls, const struct rls_wire_header *header);
/* The same of a process, also where its threads' ends were missed. */
int rls_cuda_calls_end_process(struct rls_cuda_calls *calls, uint32_t pid, uint64_t time_ns);
/* It runs another program: what the one before has called, and what its calls cost, is not that one's. */
void rls_cuda_calls_forget(struct rls_cuda_calls *calls, uint32_t pid);
/* Forgets those that have ended a while ago. */
void rls_cuda_calls_tick(struct rls_cuda_calls *calls, uint64_t now_ns);

#endif
