#include "userspace/record/layers/layer_objects.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/base/log.h"
#include "userspace/record/events/event_sink.h"

#define WALK_EVERY_NS 100000000ULL
#define TRIES_MAX 3 /* to read of a process that has ended, maybe */

void rls_layer_objects_clear(struct rls_layer_objects *objects)
{
	for (size_t i = 0; i < objects->count; i++)
		free(objects->items[i].path);
	free(objects->items);
	rls_index_map_free(&objects->by_object);
	rls_index_map_free(&objects->by_number);
	rls_layer_tree_clear(&objects->tree);
	*objects = (struct rls_layer_objects){.pid = objects->pid};
}

static struct rls_layer_object *item_at(const struct rls_layer_objects *objects, void *place)
{
	return place ? &objects->items[(uintptr_t)place - 1] : NULL;
}

static struct rls_layer_object *find_number(const struct rls_layer_objects *objects,
					    uint32_t number)
{
	return item_at(objects, rls_index_map_get(&objects->by_number, number, 0));
}

/* ---- events ---- */

/* The number of the nearest layer above that has one: containers are never called. */
static uint32_t parent_of(const struct rls_layer_objects *objects,
			  const struct rls_layer_node *node)
{
	const struct rls_layer_tree *tree = &objects->tree;

	for (int i = 0; i < RLS_LAYER_TREE_DEPTH_MAX && node && node->parent; i++) {
		const struct rls_layer_object *above;

		node = rls_layer_tree_at(tree, node->parent);
		above = node ? item_at(objects, rls_index_map_get(&objects->by_object,
								  node->address, node->type))
			     : NULL;
		if (above)
			return above->number;
	}
	return 0;
}

static int emit_name(const struct rls_layer_objects *objects, const struct rls_layer_object *object,
		     const struct rls_layer_node *names, struct rls_event_output *output,
		     uint64_t time_ns)
{
	struct rls_event event = rls_event_at(RLS_EVENT_LAYER_NAME, objects->pid, 0, time_ns);
	int r = rls_event_output_string(output, names->path, &event.layer_name.path);

	event.layer_name.id = object->number;
	event.layer_name.parent = object->parent;
	if (!r && strcmp(names->raw_path, names->path) != 0)
		r = rls_event_output_string(output, names->raw_path, &event.layer_name.raw_path);
	if (!r)
		r = rls_event_output_string(output, names->class_name, &event.layer_name.type);
	rls_debug("layer %" PRIu32 " of process %" PRIu32 " is %s (%s)", object->number,
		  objects->pid, names->path, names->class_name);
	return r ? r : rls_event_output_add(output, &event);
}

/* Where it is in the tree, unless that has been said. A larger tree may have taken it over since. */
static int name_by_tree(struct rls_layer_objects *objects, struct rls_layer_object *object,
			struct rls_event_output *output, uint64_t time_ns)
{
	const struct rls_layer_node *node =
		rls_layer_tree_find(&objects->tree, object->address, object->type);
	uint32_t parent = node ? parent_of(objects, node) : 0;
	char *path;

	if (!node ||
	    (object->path && !strcmp(object->path, node->path) && object->parent == parent))
		return 0;
	path = strdup(node->path);
	if (!path)
		return -ENOMEM;
	free(object->path);
	object->path = path;
	object->parent = parent;
	objects->unnamed -= !object->named;
	object->named = true;
	return emit_name(objects, object, node, output, time_ns);
}

static int name_all_by_tree(struct rls_layer_objects *objects, struct rls_event_output *output,
			    uint64_t time_ns)
{
	int r = 0;

	for (size_t i = 0; !r && i < objects->count; i++)
		r = name_by_tree(objects, &objects->items[i], output, time_ns);
	return r;
}

/* The object is gone; its class mostly is not. */
static int name_by_class(struct rls_layer_objects *objects, struct rls_layer_object *object,
			 const struct rls_object_reader *reader, struct rls_event_output *output,
			 uint64_t time_ns)
{
	_cleanup_free_ char *name = NULL;
	int r = reader ? rls_class_name(reader, object->type, &name) : -EFAULT;
	struct rls_layer_node names;

	if (r == -ENOMEM || (r && ++object->tries < TRIES_MAX))
		return r == -ENOMEM ? r : 0;
	objects->unnamed--;
	object->named = true;
	if (r)
		return 0;
	names = (struct rls_layer_node){.path = name, .raw_path = name, .class_name = name};
	return emit_name(objects, object, &names, output, time_ns);
}

/* ---- naming ---- */

/* Where the tree of an object begins, as far as is known. */
static uint64_t root_of(const struct rls_layer_objects *objects,
			const struct rls_layer_object *object)
{
	const struct rls_layer_object *root =
		object->root ? find_number(objects, object->root) : NULL;
	const struct rls_layer_node *node;

	if (!root)
		root = object;
	node = rls_layer_tree_find(&objects->tree, root->address, root->type);
	return node ? node->root : root->address;
}

static int walk_for(struct rls_layer_objects *objects, const struct rls_layer_object *object,
		    const struct rls_object_reader *reader)
{
	int r = rls_layer_tree_walk(&objects->tree, reader, root_of(objects, object));

	/* Nobody has it: it begins a tree of its own. */
	if (!r && !rls_layer_tree_find(&objects->tree, object->address, object->type))
		r = rls_layer_tree_walk(&objects->tree, reader, object->address);
	return r;
}

static int name_object(struct rls_layer_objects *objects, size_t place,
		       const struct rls_object_reader *reader, struct rls_event_output *output,
		       uint64_t time_ns)
{
	int r = reader ? walk_for(objects, &objects->items[place], reader) : 0;

	objects->walked_ns = time_ns;
	if (!r)
		r = name_all_by_tree(objects, output, time_ns);
	if (!r && !objects->items[place].named)
		r = name_by_class(objects, &objects->items[place], reader, output, time_ns);
	return r;
}

static bool may_walk(const struct rls_layer_objects *objects, uint64_t time_ns)
{
	return !objects->walked_ns || time_ns >= objects->walked_ns + WALK_EVERY_NS;
}

static int add_object(struct rls_layer_objects *objects, const struct rls_wire_layer_object *record)
{
	void *place = (void *)(objects->count + 1); /* NOLINT: a number */
	int r = rls_grow(&objects->items, &objects->room, objects->count);

	if (!r)
		r = rls_index_map_put(&objects->by_object, record->address, record->type, place);
	if (!r)
		r = rls_index_map_put(&objects->by_number, record->number, 0, place);
	if (r)
		return r;
	objects->items[objects->count++] = (struct rls_layer_object){
		.address = record->address,
		.type = record->type,
		.number = record->number,
		.root = record->root,
	};
	objects->unnamed++;
	return 0;
}

int rls_layer_objects_add(struct rls_layer_objects *objects,
			  const struct rls_wire_layer_object *record,
			  const struct rls_object_reader *reader, struct rls_event_output *output)
{
	uint64_t time_ns = record->header.time_ns;
	int r;

	if (objects->count >= RLS_LAYER_OBJECTS)
		return 0;
	r = add_object(objects, record);
	if (r)
		return r;
	r = name_by_tree(objects, &objects->items[objects->count - 1], output, time_ns);
	/* An outermost one is the way to all others. */
	if (!r && !objects->items[objects->count - 1].named &&
	    (!record->root || may_walk(objects, time_ns)))
		r = name_object(objects, objects->count - 1, reader, output, time_ns);
	return r;
}

int rls_layer_objects_name(struct rls_layer_objects *objects,
			   const struct rls_object_reader *reader, struct rls_event_output *output,
			   uint64_t time_ns, bool now)
{
	int r = 0;

	if (!objects->unnamed || (!now && !may_walk(objects, time_ns)))
		return 0;
	for (size_t i = 0; !r && objects->unnamed && i < objects->count; i++)
		if (!objects->items[i].named)
			r = name_object(objects, i, reader, output, time_ns);
	return r;
}
