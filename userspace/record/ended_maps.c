#include "userspace/record/ended_maps.h"

#include <stdio.h>
#include <string.h>

static void remove_at(struct rls_ended_maps *maps, size_t at)
{
	maps->count--;
	memmove(&maps->all[at], &maps->all[at + 1], (maps->count - at) * sizeof(maps->all[0]));
}

static bool is_noted(const struct rls_ended_maps *maps, pid_t pid,
		     const struct rls_mapping *mapping)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct rls_ended_map *map = &maps->all[i];

		if (map->pid == pid && !map->ended_ns && map->mapping.inode == mapping->inode &&
		    map->mapping.device_major == mapping->device_major &&
		    map->mapping.device_minor == mapping->device_minor)
			return true;
	}
	return false;
}

void rls_ended_maps_note(struct rls_ended_maps *maps, pid_t pid, const struct rls_mapping *mapping,
			 uint64_t time_ns)
{
	struct rls_ended_map *map;

	/* A path that was cut names another file. */
	if (strlen(mapping->path) >= sizeof(map->path) - 1 || is_noted(maps, pid, mapping))
		return;
	if (maps->count == RLS_ENDED_MAPS_MAX)
		remove_at(maps, 0);
	map = &maps->all[maps->count++];
	*map = (struct rls_ended_map){.pid = pid, .since_ns = time_ns, .mapping = *mapping};
	map->mapping.path = NULL;
	snprintf(map->path, sizeof(map->path), "%s", mapping->path);
}

void rls_ended_maps_forget(struct rls_ended_maps *maps, pid_t pid, uint64_t before_ns)
{
	for (size_t i = maps->count; i-- > 0;) {
		if (maps->all[i].pid == pid && !maps->all[i].ended_ns &&
		    maps->all[i].since_ns < before_ns)
			remove_at(maps, i);
	}
}

void rls_ended_maps_ended(struct rls_ended_maps *maps, pid_t pid, uint64_t time_ns)
{
	for (size_t i = 0; i < maps->count; i++) {
		if (maps->all[i].pid == pid && !maps->all[i].ended_ns)
			maps->all[i].ended_ns = time_ns;
	}
}

bool rls_ended_maps_take(struct rls_ended_maps *maps, struct rls_ended_map *out)
{
	for (size_t i = 0; i < maps->count; i++) {
		if (!maps->all[i].ended_ns)
			continue;
		*out = maps->all[i];
		remove_at(maps, i);
		return true;
	}
	return false;
}
