/* Layer tree: what the layers of one process are called, read from its memory.
 *
 *     outermost layer ─ _modules ─▶ layers ─ _modules ─▶ ...      path: the names on the way, as named_modules() has it
 *
 * A layer is an object of a class with a base named "Module" (PyTorch's, and whoever follows it). A layer that several
 * have is called by the first way to it. A tree that is walked later and has an earlier one within takes its layers over.
 * Everything is hostile: layers, depth and lengths are bounded. One thread.
 */
#ifndef RLS_LAYER_TREE_H
#define RLS_LAYER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "userspace/python/objects.h"

#define RLS_LAYERS_MAX 16384 /* of a process */
#define RLS_LAYER_TREE_DEPTH_MAX 64
#define RLS_LAYER_PATH_BYTES 1024

struct rls_layer_node {
	uint64_t address, type;
	uint64_t parent; /* address; 0: it is an outermost one */
	uint64_t root; /* address of the outermost one */
	uint64_t walk; /* the walk that met it last */
	char *path, *raw_path, *class_name; /* owned */
};

/* Zeroed: empty. */
struct rls_layer_tree {
	struct rls_layer_node *nodes;
	size_t count, room;
	struct rls_index_map by_address; /* → 1 + its place */
	uint64_t walks;
};

void rls_layer_tree_clear(struct rls_layer_tree *tree);

/* Names the layer at an address and those within. Those that it cannot read are left out. 0 or -ENOMEM. */
int rls_layer_tree_walk(struct rls_layer_tree *tree, const struct rls_object_reader *reader,
			uint64_t root);

/* The layer that had the address at the last walk; NULL: none. Until the next walk. */
const struct rls_layer_node *rls_layer_tree_at(const struct rls_layer_tree *tree, uint64_t address);
/* NULL: it has not been met, or another object has its address. Until the next walk. */
const struct rls_layer_node *rls_layer_tree_find(const struct rls_layer_tree *tree,
						 uint64_t address, uint64_t type);

#endif
