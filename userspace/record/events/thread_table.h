/* The living: what the translator knows of the processes and threads that there are now.
 * What ends is forgotten, so memory follows the living. One thread. */
#ifndef RLS_THREAD_TABLE_H
#define RLS_THREAD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/event/event.h"
#include "analysis/base/index_map.h"
#include "userspace/record/cost/cost_carryover.h"
#include "userspace/record/cost/hit_cost_model.h"
#include "userspace/record/events/edge_queue.h"
#include "userspace/record/events/operation_stack.h"

struct rls_living_thread {
	struct rls_living_thread *next;
	uint32_t tid;
	bool announced;                 /* its life in the trace has begun */
	bool annotated;                 /* has had an operation of its own */
	uint64_t inherits_since_ns;     /* its operation is not told yet from then on; 0: it is */
	struct rls_density density;
	struct rls_arrears arrears;
	struct rls_operation_stack operations;
	uint64_t operations_since_ns;   /* when they were entered, or returned to */
	struct rls_edge_queue edges;    /* of it, what hits have not come to yet (charge.h) */
	rls_string_id charged_operation;        /* at the last hit */
};

struct rls_operation_factor {
	rls_string_id operation;
	double factor;                  /* as cost_factor */
};

struct rls_living_process {
	struct rls_event event;         /* as last described; kind 0 before that */
	rls_string_id phase;
	struct rls_index_map names;     /* address → string id + 1 */
	struct rls_index_map threads;   /* tid → struct rls_living_thread */
	struct rls_living_thread *all_threads;
	double cost_factor;             /* what its hits cost, as a share of the calibrated; 0: 1 */
	struct rls_operation_factor *factors;   /* where operations have their own (charge.h) */
	size_t factor_count, factor_room;
	uint32_t annotated_tid;         /* whose operation helper threads have; 0: nobody's */
};

struct rls_living {
	struct rls_index_map map;       /* pid → struct rls_living_process */
	struct rls_living_process **all;
	size_t count, room;
};

void rls_living_clear(struct rls_living *living);

/* NULL when it is not known. */
struct rls_living_process *rls_living_find(const struct rls_living *living, uint32_t pid);

/* The process, the thread with its process: made when they are new. 0 or -ENOMEM. */
int rls_living_process(struct rls_living *living, uint32_t pid, struct rls_living_process **out);
int rls_living_thread(struct rls_living *living, uint32_t pid, uint32_t tid,
		      struct rls_living_process **process, struct rls_living_thread **out);

void rls_living_forget_process(struct rls_living *living, uint32_t pid);
void rls_living_forget_thread(struct rls_living_process *process, uint32_t tid);

#endif
