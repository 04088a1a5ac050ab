/* Layer objects: the layers of one process that were called, by the numbers that the kernel side gave them, and the
 * events that name them.
 *
 * A layer is named when its number comes. Its tree is walked where it is not known by then, at most ten times a
 * second: a model may be as large as it likes, and layers may be added to it at any time. Those that must wait for
 * that are named later. One thread; functions that return int: 0 or -errno.
 */
#ifndef RLS_LAYER_OBJECTS_H
#define RLS_LAYER_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "bpf/wire/layer.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/layers/layer_tree.h"

struct rls_layer_object {
	uint64_t address, type;
	uint32_t number;
	uint32_t root; /* number of the outermost layer at its first call; 0: it was that itself */
	uint32_t parent; /* as named */
	bool named; /* or given up */
	uint8_t tries; /* in vain */
	char *path; /* the same; owned */
};

/* Zeroed: none. */
struct rls_layer_objects {
	uint32_t pid;
	struct rls_layer_tree tree;
	struct rls_layer_object *items;
	size_t count, room, unnamed;
	struct rls_index_map by_object; /* (address, type) → 1 + its place */
	struct rls_index_map by_number;
	uint64_t walked_ns;
};

void rls_layer_objects_clear(struct rls_layer_objects *objects);

/* Takes a record, and names what can be named. reader: NULL: nothing can be read. */
int rls_layer_objects_add(struct rls_layer_objects *objects,
			  const struct rls_wire_layer_object *record,
			  const struct rls_object_reader *reader, struct rls_event_output *output);
/* Names what waits, if it is time to; `now`: in any case. */
int rls_layer_objects_name(struct rls_layer_objects *objects,
			   const struct rls_object_reader *reader, struct rls_event_output *output,
			   uint64_t time_ns, bool now);

#endif
