#include "analysis/event/stack_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/grow.h"

void rls_stack_tree_free(struct rls_stack_tree *tree)
{
	free(tree->nodes);
	rls_index_map_free(&tree->map);
	*tree = (struct rls_stack_tree){0};
}

struct rls_stack_node rls_stack_tree_node(const struct rls_stack_tree *tree, rls_stack_id id)
{
	return id ? tree->nodes[id - 1] : (struct rls_stack_node){0};
}

static rls_stack_id find_child(const struct rls_stack_tree *tree, rls_stack_id parent,
			       rls_string_id name)
{
	return (rls_stack_id)(uintptr_t)rls_index_map_get(&tree->map, parent, name);
}

static int add_child(struct rls_stack_tree *tree, rls_stack_id parent, rls_string_id name,
		     rls_stack_id *out)
{
	rls_stack_id id = (rls_stack_id)tree->count + 1;
	int err = rls_grow(&tree->nodes, &tree->capacity, tree->count);

	if (!err)
		err = rls_index_map_put(&tree->map, parent, name, (void *)(uintptr_t)id);
	if (err)
		return err;
	tree->nodes[tree->count++] = (struct rls_stack_node){
		.parent = parent,
		.name = name,
		.depth = rls_stack_tree_node(tree, parent).depth + 1,
	};
	*out = id;
	return 0;
}

int rls_stack_tree_find(struct rls_stack_tree *tree, const rls_string_id *names, size_t depth,
			rls_stack_id *out)
{
	rls_stack_id at = 0;

	for (size_t i = 0; i < depth; i++) {
		rls_stack_id child = find_child(tree, at, names[i]);
		int err = 0;

		if (!child && tree->count >= RLS_STACKS_MAX) {
			/* Names are few even where stacks are not. */
			tree->cut = true;
			i = depth - 1;
			at = 0;
			child = find_child(tree, at, names[i]);
		}
		if (!child)
			err = add_child(tree, at, names[i], &child);
		if (err)
			return err;
		at = child;
	}
	*out = at;
	return 0;
}

size_t rls_stack_tree_names(const struct rls_stack_tree *tree, rls_stack_id id,
			    rls_string_id names[static RLS_OPERATION_DEPTH_MAX])
{
	size_t depth = rls_stack_tree_node(tree, id).depth;

	for (size_t i = depth; i--; id = tree->nodes[id - 1].parent)
		names[i] = tree->nodes[id - 1].name;
	return depth;
}

rls_stack_id rls_stack_tree_common(const struct rls_stack_tree *tree, rls_stack_id a,
				   rls_stack_id b)
{
	while (a != b) {
		/* A child's id is above its parent's. */
		if (a > b)
			a = tree->nodes[a - 1].parent;
		else
			b = tree->nodes[b - 1].parent;
	}
	return a;
}

rls_stack_id rls_stack_tree_kept(const struct rls_stack_tree *tree, rls_stack_id before,
				 rls_stack_id now, uint32_t continued)
{
	rls_stack_id common = rls_stack_tree_common(tree, before, now);

	while (now != common && rls_stack_tree_node(tree, now).depth > continued)
		now = tree->nodes[now - 1].parent;
	return now;
}
