/* Builder: a report being filled from a finished timeline. Each build_*.c fills some tables.
 *
 * The first failure stays in err; nothing is done after it.
 */
#ifndef RLS_BUILDER_H
#define RLS_BUILDER_H

#include <string.h>

#include "analysis/base/grow.h"
#include "analysis/base/index_map.h"
#include "analysis/correct/cupti_error.h"
#include "analysis/report/report_edit.h"
#include "analysis/report/tables.h"

struct rls_builder {
	struct rls_report *report;
	const struct rls_timeline *timeline;
	const struct rls_string_pool *strings;
	double calibration_error; /* relative */
	double operation_error; /* the same, of the operation at hand */
	double cupti_error; /* of what CUPTI costs calls into CUDA, relative */
	struct rls_cupti_error cupti_calls; /* of the process at hand */
	double lost_share; /* of the thread-state events */
	double pollution_share; /* how much of others' cost rows of that operation may have borne */
	double cost_density; /* of the thread at hand: what was subtracted, of its running time */
	uint64_t thread_corrected_ns; /* of the thread at hand, over its rows so far, */
	struct rls_row_error thread_error; /* and how far that may be wrong */
	uint64_t sampled_ns; /* of the threads' time, what was not traced */
	double worst_thread_percent; /* what hits and samples took of the thread that paid most */
	struct rls_index_map ran; /* how long each process did */
	size_t capacity[RLS_TABLE_ALL];
	int err; /* the first failure */
};

static inline const char *rls_build_string(struct rls_builder *b, rls_string_id id)
{
	return rls_report_keep(b->report, rls_string_pool_get(b->strings, id), &b->err);
}

/* A new row of the table, zeroed, or NULL. It stays where it is until the next one of the table. */
void *rls_build_row(struct rls_builder *b, enum rls_report_table table);

/* The next free element of an array that a row holds, zeroed, or NULL. */
#define rls_build_append(b, items, capacity, count)                                                \
	({                                                                                         \
		__typeof__(*(items)) item_ = NULL;                                                 \
		if (!(b)->err)                                                                     \
			(b)->err = rls_grow(items, capacity, *(count));                            \
		if (!(b)->err) {                                                                   \
			item_ = &(*(items))[(*(count))++];                                         \
			memset(item_, 0, sizeof(*item_));                                          \
		}                                                                                  \
		item_;                                                                             \
	})

/* Adds a thread with its breakdown, transitions, operations, stacks, layers and overview. */
void rls_build_thread(struct rls_builder *b, const struct rls_thread *thread);

/* Adds what the GPU did for a process while none of its threads was traced. */
void rls_build_gpu_alone(struct rls_builder *b, const struct rls_process *process);

/* How far a sum of samples of running code may be off, beyond its variance, because there are so few, or none: as a standard
 * deviation. Not more than the process ran. All threads of the process are there. */
double rls_build_few_ns(const struct rls_builder *b, const struct rls_process *process);

/* Adds what samples say: lines, functions, kinds. */
void rls_build_samples(struct rls_builder *b);

/* Adds what samples say of the trace. */
void rls_build_check(struct rls_builder *b);

/* Whether such samples were taken in code of another category than the trace said, or while it said
 * nothing of their thread. */
bool rls_build_is_unseen(const struct rls_sample_tally *tally);

/* Notes what the thread's hits and samples cost it. */
void rls_build_thread_cost(struct rls_builder *b, const struct rls_thread_entry *entry,
			   uint64_t cost_ns);

/* Warns where more than the budget was spent; when all else is there. */
void rls_build_budget(struct rls_builder *b);

/* Adds what samples say of libraries. */
void rls_build_sampled_libraries(struct rls_builder *b);

/* Warns of what ran and was not traced, when all tables that it reads are there. */
void rls_build_coverage(struct rls_builder *b);
/* The same for each process, by samples that were taken while everything was traced. */
void rls_build_unseen(struct rls_builder *b);

/* Adds the stacks that samples were taken in, with their frames. */
void rls_build_sampled_stacks(struct rls_builder *b);

/* The operations of a stack, outermost first: *depth of them. The caller frees the array;
 * NULL for none, or after a failure. */
const char **rls_build_operations(struct rls_builder *b, rls_stack_id stack, size_t *depth);

/* Adds the process's memory, and the lines that allocated. */
void rls_build_memory(struct rls_builder *b, const struct rls_process *process);

/* Adds the process's GPUs, its calls into CUDA, and what each operation had of both. */
void rls_build_cuda(struct rls_builder *b, const struct rls_process *process);

#endif
