/* Operation stack: what is active on one thread, from several sources at once.
 *
 * Our annotations come as edges, each with the depth after it. Ranges of other APIs (NVTX,
 * record_function) come as pushes and pops. They nest in the order of time: a pop of one source
 * removes that source's innermost entry, whatever lies above it.
 */
#ifndef RLS_OPERATION_STACK_H
#define RLS_OPERATION_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/event/event.h"

struct rls_operation_entry {
	rls_string_id name;
	uint16_t depth; /* among annotations; 0: a range */
	bool hidden; /* there for its pop only */
	uint64_t token; /* pairs a range's push and pop; 0: the innermost */
};

struct rls_operation_stack {
	uint32_t count; /* entries beyond RLS_OPERATION_DEPTH_MAX are not distinguished */
	uint32_t unkept; /* ranges without a token among those, open */
	bool overflowed; /* there were entries beyond */
	struct rls_operation_entry entries[RLS_OPERATION_DEPTH_MAX];
};

/* The annotation stack is now `depth` deep, `name` innermost: entered (push) or left to. */
void rls_operation_stack_push(struct rls_operation_stack *stack, uint16_t depth,
			      rls_string_id name);
void rls_operation_stack_pop(struct rls_operation_stack *stack, uint16_t depth);
void rls_operation_stack_push_range(struct rls_operation_stack *stack, rls_string_id name,
				    uint64_t token);
/* A range without a token that is not to be seen, as its pop must not end another. */
void rls_operation_stack_push_hidden(struct rls_operation_stack *stack);
/* Whether what is to be seen has changed. */
bool rls_operation_stack_pop_range(struct rls_operation_stack *stack, uint64_t token);
/* Drops the ranges, keeps the annotations. */
void rls_operation_stack_clear_ranges(struct rls_operation_stack *stack);
/* Drops the annotations, keeps the ranges. */
void rls_operation_stack_clear_annotations(struct rls_operation_stack *stack);

/* 0: none. */
rls_string_id rls_operation_stack_innermost(const struct rls_operation_stack *stack);

/* Fills the payload of an OPERATION event. */
void rls_operation_stack_fill(const struct rls_operation_stack *stack, struct rls_event *event);

#endif
