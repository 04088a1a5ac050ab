/* Memory: the part of a recorder that records it.
 *
 *     reporters     probes where allocators report blocks
 *     memory_rows   what the kernel side counts there, by line
 *     memory_use    what each process uses
 *     memory_windows  when blocks are counted, where counting all costs too much
 */
#ifndef RLS_MEMORY_H
#define RLS_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/samples/interpreters.h"
#include "userspace/record/targets/target_table.h"

struct rls_files;
struct rls_mappings;
struct rls_memory;

/* Borrowed; they stay. */
struct rls_memory_parts {
	struct rls_kernel *kernel;
	struct rls_interpreters *interpreters;
	const struct rls_translator *translator;
	struct rls_event_output *output;
	struct rls_targets *targets;
	/* Of the time, what counting may cost; below 0: no limit. What costs more is counted in windows, with a warning. */
	double share;
};

/* It observes the targets. 0 or -errno. */
int rls_memory_new(const struct rls_memory_parts *parts, struct rls_memory **out);
void rls_memory_free(struct rls_memory *memory);

/* The files that a process maps have changed: for rls_libraries_on_mappings. 0 or -ENOMEM. */
int rls_memory_mapped(void *memory, struct rls_files *files, pid_t pid,
		      const struct rls_mappings *mappings);
/* Names what has been counted since: before what it is of is gone. Cheap. 0 or -errno. */
int rls_memory_name(struct rls_memory *memory);
/* Recording has begun; what was mapped before has its probes. */
void rls_memory_begin(struct rls_memory *memory);
/* Each turn of the loop. 0 or -errno. */
int rls_memory_tick(struct rls_memory *memory, uint64_t time_ns);
/* The kernel side has stopped to count. 0 or -errno. */
int rls_memory_finish(struct rls_memory *memory, uint64_t stop_ns);

#endif
