#include "analysis/layers/layer_names.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/grow.h"

#define NOT_BEGUN UINT32_MAX

void rls_layer_names_free(struct rls_layer_names *names)
{
	free(names->all);
	rls_index_map_free(&names->by_id);
	*names = (struct rls_layer_names){0};
}

static struct rls_layer_name *layer_names_get(const struct rls_layer_names *names, uint32_t pid,
					      uint32_t id)
{
	size_t place = (uintptr_t)rls_index_map_get(&names->by_id, pid, id);

	return place ? &names->all[place - 1] : NULL;
}

static int make_name(struct rls_layer_names *names, uint32_t pid, uint32_t id,
		     struct rls_layer_name **out)
{
	int err = 0;

	*out = layer_names_get(names, pid, id);
	if (*out)
		return 0;
	err = rls_grow(&names->all, &names->capacity, names->count);
	if (!err)
		err = rls_index_map_put(&names->by_id, pid, id,
					(void *)(names->count + 1)); /* NOLINT: a number */
	if (err)
		return err;
	*out = &names->all[names->count++];
	**out = (struct rls_layer_name){.pid = pid, .id = id, .index = NOT_BEGUN};
	return 0;
}

int rls_layer_names_add(struct rls_layer_names *names, const struct rls_event *event)
{
	struct rls_layer_name *name;
	int err = make_name(names, event->pid, event->layer_name.id, &name);

	if (err)
		return err;
	name->parent = event->layer_name.parent;
	name->path = event->layer_name.path;
	name->raw_path = event->layer_name.raw_path;
	name->type = event->layer_name.type;
	return 0;
}

int rls_layer_names_begun(struct rls_layer_names *names, uint32_t pid, uint32_t id,
			  uint32_t *begun_before)
{
	struct rls_layer_name *name;
	int err = make_name(names, pid, id, &name);

	if (!err && name->index == NOT_BEGUN)
		name->index = (*begun_before)++;
	return err;
}

const struct rls_layer_name *rls_layer_names_find(const struct rls_layer_names *names, uint32_t pid,
						  uint32_t id)
{
	return layer_names_get(names, pid, id);
}
