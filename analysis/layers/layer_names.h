/* Layer names: what the layers of all processes are called, and in which order they began.
 *
 * Functions that return int: 0 or -ENOMEM.
 */
#ifndef RLS_LAYER_NAMES_H
#define RLS_LAYER_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "analysis/event/event.h"

struct rls_layer_name {
	uint32_t pid, id;
	uint32_t parent; /* 0: none */
	uint32_t index; /* so many layers of its process began before it did */
	rls_string_id path, raw_path, type;
};

/* Zeroed: none. */
struct rls_layer_names {
	struct rls_layer_name *all;
	size_t count, capacity;
	struct rls_index_map by_id; /* (pid, id) → 1 + its place */
};

void rls_layer_names_free(struct rls_layer_names *names);

/* A LAYER_NAME event. */
int rls_layer_names_add(struct rls_layer_names *names, const struct rls_event *event);
/* A layer of the process has begun; so many others of it did before. */
int rls_layer_names_begun(struct rls_layer_names *names, uint32_t pid, uint32_t id,
			  uint32_t *begun_before);
/* NULL: it was never heard of. */
const struct rls_layer_name *rls_layer_names_find(const struct rls_layer_names *names, uint32_t pid,
						  uint32_t id);

#endif
