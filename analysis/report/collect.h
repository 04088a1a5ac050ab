/* What the two halves of collecting share: the report being filled, and the first failure. */
#ifndef RLS_COLLECT_H
#define RLS_COLLECT_H

#include <string.h>

#include "analysis/correct/cupti_error.h"
#include "analysis/base/grow.h"
#include "analysis/report/report_private.h"

struct rls_collector {
	struct rls_report *report;
	const struct rls_timeline *timeline;
	const struct rls_string_pool *strings;
	double calibration_error;   /* relative */
	double operation_error;     /* the same, of the operation at hand */
	double cupti_error;         /* of what CUPTI costs calls into CUDA, relative */
	struct rls_cupti_doubt doubt;   /* of the process at hand */
	double lost_share;          /* of the thread-state events */
	double spill_share;         /* how much of others' cost rows of that operation may have borne */
	double cost_density;        /* of the thread at hand: what was subtracted, of its running time */
	uint64_t looked_ns;         /* of the threads' time, what was not traced */
	size_t process_capacity, thread_capacity, breakdown_capacity, transition_capacity,
		operation_capacity, stack_capacity, gpu_capacity, overview_capacity,
		line_capacity, function_capacity, sample_capacity, sampled_stack_capacity,
		cuda_call_capacity, cuda_operation_capacity, gpu_clock_capacity,
		check_capacity;
	int err;                    /* the first failure; nothing is done after it */
};

static inline const char *rls_collect_string(struct rls_collector *c, rls_string_id id)
{
	return rls_report_keep(c->report, rls_string_pool_get(c->strings, id), &c->err);
}

/* The next free element of a growing array of the report, zeroed, or NULL. */
#define rls_collect_append(c, items, capacity, count)            \
	({                                                       \
		__typeof__(*(items)) item_ = NULL;               \
		if (!(c)->err)                                   \
			(c)->err = rls_grow(items, capacity, *(count)); \
		if (!(c)->err) {                                 \
			item_ = &(*(items))[(*(count))++];       \
			memset(item_, 0, sizeof(*item_));        \
		}                                                \
		item_;                                           \
	})

/* Adds a thread with its breakdown, transitions, operations, stacks and overview. */
void rls_collect_thread(struct rls_collector *c, const struct rls_thread *thread);

/* Adds what the GPU did for a process while none of its threads was traced. */
void rls_collect_gpu_alone(struct rls_collector *c, const struct rls_process *process);

/* Adds what samples say: lines, functions, kinds. */
void rls_collect_samples(struct rls_collector *c);

/* Adds what samples say of the trace. */
void rls_collect_check(struct rls_collector *c);

/* Adds the stacks that samples were taken in, with their frames. */
void rls_collect_sampled_stacks(struct rls_collector *c);

/* The operations of a stack, outermost first: *depth of them. The caller frees the array;
 * NULL for none, or after a failure. */
const char **rls_collect_operations(struct rls_collector *c, rls_stack_id stack, size_t *depth);

/* Adds the process's GPUs, its calls into CUDA, and what each operation had of both. */
void rls_collect_cuda(struct rls_collector *c, const struct rls_process *process);

#endif
