#include "userspace/record/layers/layer_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/python/text_object.h"

#define CHILDREN "_modules"

/* Parts of paths that wrappers add: always, or below a class of that name. */
static const struct wrapper {
	const char *part, *class_name;
} wrappers[] = {
	{"_orig_mod", NULL}, /* torch.compile */
	{"_fsdp_wrapped_module", NULL},
	{"_checkpoint_wrapped_module", NULL},
	{"module", "DistributedDataParallel"},
	{"module", "DataParallel"},
	{"module", "FullyShardedDataParallel"},
};

/* A layer that is about to be walked. */
struct visit {
	uint64_t address, type, parent;
	unsigned int depth;
	char *path, *raw_path, *class_name; /* owned */
};

struct layer_walk {
	struct rls_layer_tree *tree;
	const struct rls_object_reader *reader;
	uint64_t root;
	struct visit *waiting; /* the next one last */
	size_t count, room;
};

static void node_clear(struct rls_layer_node *node)
{
	free(node->path);
	free(node->raw_path);
	free(node->class_name);
	*node = (struct rls_layer_node){0};
}

void rls_layer_tree_clear(struct rls_layer_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		node_clear(&tree->nodes[i]);
	free(tree->nodes);
	rls_index_map_free(&tree->by_address);
	*tree = (struct rls_layer_tree){0};
}

static struct rls_layer_node *node_at(const struct rls_layer_tree *tree, uint64_t address)
{
	size_t place = (uintptr_t)rls_index_map_get(&tree->by_address, address, 0);

	return place ? &tree->nodes[place - 1] : NULL;
}

const struct rls_layer_node *rls_layer_tree_at(const struct rls_layer_tree *tree, uint64_t address)
{
	return node_at(tree, address);
}

const struct rls_layer_node *rls_layer_tree_find(const struct rls_layer_tree *tree,
						 uint64_t address, uint64_t type)
{
	const struct rls_layer_node *node = node_at(tree, address);

	return node && node->type == type ? node : NULL;
}

static void visit_clear(struct visit *visit)
{
	free(visit->path);
	free(visit->raw_path);
	free(visit->class_name);
	*visit = (struct visit){0};
}

/* ---- names ---- */

static bool is_wrapping(const char *part, const char *class_name)
{
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
		if (!strcmp(part, wrappers[i].part) &&
		    (!wrappers[i].class_name || !strcmp(class_name, wrappers[i].class_name)))
			return true;
	return false;
}

/* NULL: no memory. */
static char *join(const char *path, const char *part)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", path, *path && *part ? "." : "", part) < 0)
		return NULL;
	if (strlen(joined) >= RLS_LAYER_PATH_BYTES) {
		size_t end = RLS_LAYER_PATH_BYTES - 1;

		while (end && ((unsigned char)joined[end] & 0xc0) == 0x80)
			end--; /* not within a character */
		joined[end] = '\0';
	}
	return joined;
}

/* ---- the walk ---- */

/* A node for the visit, new or that of a layer known before; NULL: there is no room, or it is another tree's. */
static int take_node(struct layer_walk *walk, const struct visit *visit,
		     struct rls_layer_node **out)
{
	struct rls_layer_tree *tree = walk->tree;
	struct rls_layer_node *node = node_at(tree, visit->address);
	int r;

	*out = NULL;
	if (node) {
		const struct rls_layer_node *root = node_at(tree, node->root);
		bool ours = node->type != visit->type || node->root == walk->root ||
			    node->root == node->address || !root || root->walk == walk->tree->walks;

		*out = ours ? node : NULL;
		return 0;
	}
	if (tree->count >= RLS_LAYERS_MAX)
		return 0;
	r = rls_grow(&tree->nodes, &tree->room, tree->count);
	if (!r)
		r = rls_index_map_put(&tree->by_address, visit->address, 0,
				      (void *)(tree->count + 1)); /* NOLINT: a number */
	if (r)
		return r;
	*out = &tree->nodes[tree->count++];
	**out = (struct rls_layer_node){.address = visit->address};
	return 0;
}

/* Takes the visit's names over. */
static void fill_node(const struct layer_walk *walk, struct rls_layer_node *node,
		      struct visit *visit)
{
	node_clear(node);
	*node = (struct rls_layer_node){
		.address = visit->address,
		.type = visit->type,
		.parent = visit->parent,
		.root = walk->root,
		.walk = walk->tree->walks,
		.path = rls_take(visit->path),
		.raw_path = rls_take(visit->raw_path),
		.class_name = rls_take(visit->class_name),
	};
	/* The outermost one, and what wraps nothing but that, are called by their classes. */
	if (!*node->path) {
		free(node->path);
		node->path = strdup(node->class_name);
	}
	if (node->raw_path && !*node->raw_path) {
		free(node->raw_path);
		node->raw_path = strdup(node->class_name);
	}
}

/* The layer at an address, not known yet by a name. False: it is none, or cannot be read. */
static bool read_layer(const struct rls_object_reader *reader, uint64_t address, struct visit *out)
{
	uint64_t type = rls_object_class(reader, address);
	char *class_name;

	if (!type || !rls_class_has_base(reader, type, RLS_LAYER_BASE) ||
	    rls_class_name(reader, type, &class_name))
		return false;
	*out = (struct visit){.address = address, .type = type, .class_name = class_name};
	return true;
}

/* `path`: the parent's, without what wrappers add. */
static int wait_for(struct layer_walk *walk, const struct visit *parent, uint64_t key,
		    struct visit *child)
{
	_cleanup_free_ char *part = NULL;
	int r = rls_text_object_read(walk->reader->space, walk->reader->layout, key,
				     RLS_OBJECT_NAME_BYTES, &part);

	if (r)
		return r == -ENOMEM ? r : 0;
	child->parent = parent->address;
	child->depth = parent->depth + 1;
	child->raw_path = join(parent->raw_path, part);
	child->path = is_wrapping(part, parent->class_name) ? strdup(parent->path)
							    : join(parent->path, part);
	if (!child->path || !child->raw_path || rls_grow(&walk->waiting, &walk->room, walk->count))
		return -ENOMEM;
	walk->waiting[walk->count++] = *child;
	*child = (struct visit){0};
	return 0;
}

/* The last is put first, so that the first is visited first. */
static int wait_for_children(struct layer_walk *walk, const struct visit *parent)
{
	struct rls_dict attributes, children;
	uint64_t modules;
	int r = 0;

	if (parent->depth >= RLS_LAYER_TREE_DEPTH_MAX ||
	    !rls_object_attributes(walk->reader, parent->address, &attributes))
		return 0;
	modules = rls_dict_find(walk->reader, &attributes, CHILDREN);
	if (!modules || !rls_dict_open(walk->reader, modules, &children))
		return 0;
	if (children.count > RLS_LAYERS_MAX)
		children.count = RLS_LAYERS_MAX;
	for (uint32_t i = children.count; !r && i-- && walk->count < 2 * RLS_LAYERS_MAX;) {
		struct visit child = {0};
		uint64_t key, value;

		if (!rls_dict_entry(walk->reader, &children, i, &key, &value) ||
		    !read_layer(walk->reader, value, &child))
			continue;
		r = wait_for(walk, parent, key, &child);
		visit_clear(&child);
	}
	return r;
}

/* The names of a visit are its children's beginning, so they are made before the node takes them. */
static int visit_layer(struct layer_walk *walk, struct visit *visit)
{
	struct rls_layer_node *node = node_at(walk->tree, visit->address);
	int r = 0;

	if (node && node->type == visit->type && node->walk == walk->tree->walks)
		return 0; /* shared: named by the first way */
	r = take_node(walk, visit, &node);
	if (r || !node)
		return r;
	node->walk = walk->tree->walks;
	r = wait_for_children(walk, visit);
	if (!r)
		fill_node(walk, node, visit);
	return !r && (!node->path || !node->raw_path) ? -ENOMEM : r;
}

int rls_layer_tree_walk(struct rls_layer_tree *tree, const struct rls_object_reader *reader,
			uint64_t root)
{
	struct layer_walk walk = {.tree = tree, .reader = reader, .root = root};
	struct visit first = {0};
	int r = 0;

	if (!read_layer(reader, root, &first))
		return 0;
	tree->walks++;
	first.path = strdup("");
	first.raw_path = strdup("");
	if (!first.path || !first.raw_path || rls_grow(&walk.waiting, &walk.room, walk.count)) {
		visit_clear(&first);
		return -ENOMEM;
	}
	walk.waiting[walk.count++] = first;
	for (size_t visits = 0; !r && walk.count && visits < 2 * RLS_LAYERS_MAX; visits++) {
		struct visit visit = walk.waiting[--walk.count];

		r = visit_layer(&walk, &visit);
		visit_clear(&visit);
	}
	for (size_t i = 0; i < walk.count; i++)
		visit_clear(&walk.waiting[i]);
	free(walk.waiting);
	return r;
}
