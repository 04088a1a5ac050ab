/* Stack tree: every stack of operations that was seen, once, known by a small id.
 *
 *     0 ─ step ─ inference          a stack is its innermost node; its parent is the stack
 *           └─── simulation         without the innermost operation; 0 is no operation
 *
 * A program that recurses over many names can make more stacks than memory holds. Beyond
 * RLS_STACKS_MAX a new one is known by its innermost operation alone, and `cut` says so.
 */
#ifndef RLS_STACK_TREE_H
#define RLS_STACK_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/base/index_map.h"
#include "analysis/event/event.h"

#define RLS_STACKS_MAX (1u << 16)

typedef uint32_t rls_stack_id;

struct rls_stack_node {
	rls_stack_id parent;
	rls_string_id name;
	uint32_t depth; /* operations on the stack */
};

/* Zeroed: only the empty stack. */
struct rls_stack_tree {
	struct rls_stack_node *nodes; /* of id i: nodes[i - 1] */
	size_t count, capacity;
	struct rls_index_map map; /* (parent, name) -> id */
	bool cut;
};

void rls_stack_tree_free(struct rls_stack_tree *tree);

/* The stack of these operations, outermost first. 0 and *out, or -ENOMEM. */
int rls_stack_tree_find(struct rls_stack_tree *tree, const rls_string_id *names, size_t depth,
			rls_stack_id *out);

/* Of an id that the tree gave; of 0 an empty node. */
struct rls_stack_node rls_stack_tree_node(const struct rls_stack_tree *tree, rls_stack_id id);

/* The operations of a stack into names[], outermost first. Returns how many, at most
 * RLS_OPERATION_DEPTH_MAX. */
size_t rls_stack_tree_names(const struct rls_stack_tree *tree, rls_stack_id id,
			    rls_string_id names[static RLS_OPERATION_DEPTH_MAX]);

/* The innermost stack that both lie on. */
rls_stack_id rls_stack_tree_common(const struct rls_stack_tree *tree, rls_stack_id a,
				   rls_stack_id b);

/* Of a thread that was in `before` and is in `now`, `continued` of whose outermost operations it
 * did not enter: the innermost stack that it was in, or did not enter. What lies above it in `now`
 * was entered. */
rls_stack_id rls_stack_tree_kept(const struct rls_stack_tree *tree, rls_stack_id before,
				 rls_stack_id now, uint32_t continued);

#endif
