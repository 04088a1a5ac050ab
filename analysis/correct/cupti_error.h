/* CUPTI error: what CUPTI, while it records, may have cost beyond what was charged for it. Pure.
 *
 * CUPTI costs each call into CUDA time. The part inside the call is found by name with `calibrate
 * --pid`, and recordings subtract it. The other part arises around the call: in libraries with a
 * runtime of their own (cuBLAS), and where CUPTI's data evicts other data from the caches. It
 * cannot be separated from the job's own time. On two GPUs launches took 2 to 4.3 us longer
 * inside, and jobs 3 to 7 us in all. Rows may be too long by the difference: the rows of the
 * calls, of their callers, and of threads that wait for another thread of the same operation.
 */
#ifndef RLS_CUPTI_ERROR_H
#define RLS_CUPTI_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/gpu/call_set.h"

/* Of a process's calls. Zeroed: none, or CUPTI did not record. */
struct rls_cupti_error {
	struct rls_cupti_error_sum {
		double inside_ns, around_ns;
	} * entries;
	size_t count, capacity;
	struct rls_index_map map; /* (tid, or 0 for all; phase and operation) -> 1 + index */
};

void rls_cupti_error_free(struct rls_cupti_error *error);

/* is_charged: is what CUPTI costs calls of that name taken from them? 0 or -ENOMEM. */
int rls_cupti_error_add(struct rls_cupti_error *error, const struct rls_call_total *calls,
			bool is_charged);

/* Of that thread's calls in that operation, by themselves and in what made them; and of all other threads' in it. */
struct rls_cupti_error_sum rls_cupti_error_own(const struct rls_cupti_error *error, uint32_t tid,
					       rls_string_id phase, rls_string_id operation);
double rls_cupti_error_others_ns(const struct rls_cupti_error *error, uint32_t tid,
				 rls_string_id phase, rls_string_id operation);

#endif
