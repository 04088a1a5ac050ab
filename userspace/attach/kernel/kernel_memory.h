/* Memory: sites of allocators' reports, and what the kernel side counts there (bpf/wire/memory.h).
 * Only where options.memory was set; elsewhere nothing is attached, and there is nothing to read.
 */
#ifndef RLS_KERNEL_MEMORY_H
#define RLS_KERNEL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/memory.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/plan/memory_sites.h"

/* Puts probes on the sites of one file, of which `file` is the caller's number. path must open from here. 0 or -errno. */
int rls_kernel_attach_memory(struct rls_kernel *kernel, uint32_t file, const char *path,
			     const struct rls_memory_site *sites, size_t count);
/* The same of one site, in one process alone: of a file that half of the host maps. */
int rls_kernel_attach_memory_of(struct rls_kernel *kernel, pid_t pid, uint32_t file,
				const char *path, const struct rls_memory_site *site);
/* Takes such off again: those for a report (0: for any), of all processes (pid 0), or of one that has ended or
 * executes another program. */
void rls_kernel_detach_memory_of(struct rls_kernel *kernel, pid_t pid,
				 enum rls_memory_report report);
/* Takes off those of a file. */
void rls_kernel_detach_memory(struct rls_kernel *kernel, uint32_t file);

/* From now on, in files to come too. Counting begins when all probes are on, and ends before they go. A source whose blocks
 * were not followed for a time is not followed again. 0, or -errno: it is RLS_MEMORY_PROBE_NOTHING then. */
int rls_kernel_probe_memory(struct rls_kernel *kernel, uint32_t source,
			    enum rls_memory_probing probing);
/* Whether probes can go off and on again in a moment. */
bool rls_kernel_memory_has_windows(const struct rls_kernel *kernel);

/* RLS_MEMORY_LINES places, which go on changing; NULL: there are none. */
const volatile struct rls_wire_memory_line *
rls_kernel_memory_lines(const struct rls_kernel *kernel);
/* enum rls_memory_count. */
uint64_t rls_kernel_memory_count(const struct rls_kernel *kernel, enum rls_memory_count which);

/* The blocks that live, once each; others may come and go meanwhile. Until visit returns other than 0, which
 * is returned; -errno. */
int rls_kernel_each_block(struct rls_kernel *kernel,
			  int (*visit)(void *context, const struct rls_wire_block_key *key,
				       const struct rls_wire_block *block),
			  void *context);
int rls_kernel_drop_block(struct rls_kernel *kernel, const struct rls_wire_block_key *key);
/* Another place after which this one comes in the ring of its row, so that their peak is one. */
void rls_kernel_join_line(struct rls_kernel *kernel, uint32_t place, uint32_t before);
/* A line's process has ended: its place is given back. Its blocks have been dropped. */
void rls_kernel_drop_line(struct rls_kernel *kernel, uint32_t place);

int rls_kernel_each_device(struct rls_kernel *kernel,
			   int (*visit)(void *context, const struct rls_wire_device_key *key,
					const struct rls_wire_device *device),
			   void *context);

#endif
