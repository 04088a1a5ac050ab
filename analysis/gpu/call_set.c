#include "analysis/gpu/call_set.h"

#include <stdlib.h>

#include "analysis/base/grow.h"
#include "analysis/event/bounded.h"

void rls_call_set_free(struct rls_call_set *set)
{
	free(set->totals);
	rls_index_map_free(&set->map);
	*set = (struct rls_call_set){0};
}

static uint64_t call_set_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static int call_set_find(struct rls_call_set *set, const struct rls_call_total *keys,
			 struct rls_call_total **out)
{
	uint64_t who = call_set_pair(keys->tid, keys->name),
		 where = call_set_pair(keys->phase, keys->operation);
	size_t place = (uintptr_t)rls_index_map_get(&set->map, who, where);
	int err = 0;

	if (!place) {
		err = rls_grow(&set->totals, &set->capacity, set->count);
		if (!err)
			err = rls_index_map_put(&set->map, who, where, (void *)(set->count + 1));
		if (err)
			return err;
		set->totals[set->count] = *keys;
		place = ++set->count;
	}
	*out = &set->totals[place - 1];
	return 0;
}

int rls_call_set_add(struct rls_call_set *set, const struct rls_event *event, rls_string_id phase,
		     rls_string_id operation)
{
	const struct rls_call_total keys = {
		.tid = event->tid,
		.phase = phase,
		.operation = operation,
		.name = event->cuda_call.name,
	};
	struct rls_call_total *total;
	int err = call_set_find(set, &keys, &total);

	if (err)
		return err;
	rls_add_bounded(&total->count, 1);
	rls_add_bounded(&total->wall_ns, event->cuda_call.duration_ns);
	rls_add_bounded(&total->launches, event->cuda_call.launches);
	return 0;
}
