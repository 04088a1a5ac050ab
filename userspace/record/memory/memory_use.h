/* Memory use: what each target uses, ten times a second, as MEMORY_USE events.
 *
 * Main memory is read from /proc and from cgroups. Of GPUs it is what caching allocators report.
 */
#ifndef RLS_MEMORY_USE_H
#define RLS_MEMORY_USE_H

#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/memory/memory_limits.h"

/* Of one target. Zeroed: nothing is known. */
struct rls_memory_use {
	struct rls_memory_group group;
	uint64_t found_ns; /* when the group was; 0: never */
	uint64_t emitted_ns;
	uint64_t rss_bytes;
};

void rls_memory_use_clear(struct rls_memory_use *use);

/* An event where its resident memory has changed, and once a second. 0 or -errno; a process that has ended has none. */
int rls_memory_use_sample(struct rls_memory_use *use, pid_t pid, struct rls_event_output *output,
			  uint64_t time_ns);

#endif
