/* Ended maps: libraries with a role that processes had mapped when they ended.
 *
 *     mapped ─▶ note ─▶ ended ─▶ take: its file is probed, if it is not yet, for those that come after it
 *
 * Of short processes, each of which ends before it can be looked at, nothing would ever be probed. One thread.
 */
#ifndef RLS_ENDED_MAPS_H
#define RLS_ENDED_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/process/mappings.h"

#define RLS_ENDED_MAPS_MAX 64
#define RLS_ENDED_PATH_BYTES 256

struct rls_ended_map {
	pid_t pid;
	uint64_t since_ns, ended_ns; /* ended_ns 0: it lives */
	struct rls_mapping mapping; /* without a path: it is below */
	char path[RLS_ENDED_PATH_BYTES];
};

/* Zeroed: empty. */
struct rls_ended_maps {
	struct rls_ended_map all[RLS_ENDED_MAPS_MAX]; /* the oldest first */
	size_t count;
};

/* Also of who is no target, or not known to be one yet: the kernel reports mappings and processes separately. One of a
 * file is enough for a process. The oldest gives way where there are too many. */
void rls_ended_maps_note(struct rls_ended_maps *maps, pid_t pid, const struct rls_mapping *mapping,
			 uint64_t time_ns);
/* The process began or executed then, or is known otherwise: what was noted before that is of no use. */
void rls_ended_maps_forget(struct rls_ended_maps *maps, pid_t pid, uint64_t before_ns);
void rls_ended_maps_ended(struct rls_ended_maps *maps, pid_t pid, uint64_t time_ns);
/* The oldest of an ended process, which leaves the list. False: there is none. out->mapping has no path. */
bool rls_ended_maps_take(struct rls_ended_maps *maps, struct rls_ended_map *out);

#endif
