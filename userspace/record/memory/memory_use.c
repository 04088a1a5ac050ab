#include "userspace/record/memory/memory_use.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"

#define EMIT_EVERY_NS 1000000000ULL
/* Processes are moved between groups, and limits are set. */
#define FIND_EVERY_NS 5000000000ULL

void rls_memory_use_clear(struct rls_memory_use *use)
{
	rls_memory_group_clear(&use->group);
	*use = (struct rls_memory_use){0};
}

/* 0: it has ended, or is about to. */
static uint64_t read_rss(pid_t pid)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[64];
	uint64_t pages = 0;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%*u %" SCNu64, &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int rls_memory_use_sample(struct rls_memory_use *use, pid_t pid, struct rls_event_output *output,
			  uint64_t time_ns)
{
	struct rls_event event = rls_event_at(RLS_EVENT_MEMORY_USE, (uint32_t)pid, 0, time_ns);
	uint64_t rss_bytes = read_rss(pid);
	struct rls_memory_limit limit;

	if (!rss_bytes)
		return 0;
	if (!use->found_ns || time_ns - use->found_ns >= FIND_EVERY_NS) {
		rls_memory_group_clear(&use->group);
		rls_memory_group_find(pid, &use->group);
		use->found_ns = time_ns;
	}
	if (rss_bytes == use->rss_bytes && time_ns - use->emitted_ns < EMIT_EVERY_NS)
		return 0;
	rls_memory_limit_read(&use->group, &limit); /* the kernel adds it up when it is read */
	use->rss_bytes = rss_bytes;
	use->emitted_ns = time_ns;
	event.memory_use.rss_bytes = rss_bytes;
	event.memory_use.used_bytes = limit.used_bytes;
	event.memory_use.limit_bytes = limit.limit_bytes;
	return rls_event_output_add(output, &event);
}
