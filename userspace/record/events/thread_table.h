/* Thread table: what the translator knows of the processes and threads that exist now. An entry is
 * removed when its thread or process ends, so memory follows the number of live threads.
 *
 * It is a table of its own beside the table of targets, since its processes begin and end with their
 * records, in the order of records: the recorder may meet a target before, or leave it later. One
 * thread.
 */
#ifndef RLS_THREAD_TABLE_H
#define RLS_THREAD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "analysis/event/event.h"
#include "userspace/record/cost/hit_cost.h"
#include "userspace/record/events/operation_stack.h"

struct rls_live_thread {
	struct rls_live_thread *next;
	uint32_t tid;
	bool announced; /* its life in the trace has begun */
	bool annotated; /* has had an operation of its own */
	uint64_t inherits_since_ns; /* its operation is not reported yet from then on; 0: it is */
	struct rls_hit_cost_state cost;
	struct rls_operation_stack operations;
};

/* For operation_inherit.h. */
struct rls_inheritance {
	struct rls_source_edge {
		uint64_t time_ns;
		struct rls_operation_stack operations; /* since then */
	} * edges; /* a ring of the latest; NULL before the first; owned */
	uint64_t edge_count; /* so far */
	struct rls_ended_helper {
		uint32_t tid;
		uint64_t since_ns; /* as inherits_since_ns */
		uint64_t until_ns;
	} * ended; /* owned */
	size_t ended_count, ended_room;
};

struct rls_live_process {
	struct rls_event event; /* as last described; kind 0 before that */
	rls_string_id phase;
	struct rls_index_map names; /* address → string id + 1 */
	struct rls_index_map threads; /* tid → struct rls_live_thread */
	struct rls_live_thread *all_threads;
	struct rls_hit_cost_factors cost;
	uint32_t annotated_tid; /* whose operation helper threads have; 0: nobody's */
	struct rls_inheritance heirs;
};

struct rls_thread_table {
	struct rls_index_map map; /* pid → struct rls_live_process */
	struct rls_live_process **all;
	size_t count, room;
};

void rls_thread_table_clear(struct rls_thread_table *living);

/* NULL when it is not known. */
struct rls_live_process *rls_thread_table_find(const struct rls_thread_table *living, uint32_t pid);

/* The process, the thread with its process: made when they are new. 0 or -ENOMEM. */
int rls_live_process(struct rls_thread_table *living, uint32_t pid, struct rls_live_process **out);
int rls_live_thread(struct rls_thread_table *living, uint32_t pid, uint32_t tid,
		    struct rls_live_process **process, struct rls_live_thread **out);

void rls_thread_table_forget_process(struct rls_thread_table *living, uint32_t pid);
void rls_thread_table_forget_thread(struct rls_live_process *process, uint32_t tid);

#endif
