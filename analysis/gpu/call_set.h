/* Call set: the calls into CUDA of one process, summed by thread, phase, operation and name. */
#ifndef RLS_CALL_SET_H
#define RLS_CALL_SET_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "analysis/event/event.h"

struct rls_call_total {
	uint32_t tid;
	rls_string_id phase;
	rls_string_id operation;
	rls_string_id name;
	uint64_t count;
	uint64_t wall_ns;
	uint64_t launches;
};

/* Zeroed: none yet. */
struct rls_call_set {
	struct rls_call_total *totals;
	size_t count, capacity;
	struct rls_index_map map; /* (tid and name, phase and operation) -> 1 + index */
};

void rls_call_set_free(struct rls_call_set *set);

/* Adds a CUDA_CALL event of a thread that is in this phase and operation. 0, or -ENOMEM. */
int rls_call_set_add(struct rls_call_set *set, const struct rls_event *event, rls_string_id phase,
		     rls_string_id operation);

#endif
