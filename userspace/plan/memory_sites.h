/* Memory sites: where a library's allocators report each block of memory, whether anybody listens
 * or not.
 *
 *     c10   ProfiledCPUMemoryReporter::New, ::Delete       tensors on the CPU
 *           reportMemoryUsageToProfiler, …OutOfMemory…     caching allocators of GPUs
 *     libtorch_cpu
 *           at::native::copy_                              copies of tensors
 *     libpython, or a program that contains it
 *           PyTraceMalloc_Track, PyTraceMalloc_Untrack     NumPy's arrays, and others'
 *           Py_FinalizeEx, Py_Exit                         the end, from which on nothing is counted
 *
 * A site is the least expensive instruction at which the arguments are still in their registers.
 */
#ifndef RLS_MEMORY_SITES_H
#define RLS_MEMORY_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/memory.h"
#include "userspace/elf/elf.h"
#include "userspace/machine_code/site.h"

struct rls_memory_site {
	uint64_t file_offset;
	enum rls_memory_report report;
	enum rls_site_class site_class;
	uint8_t size_register; /* RLS_MEMORY_RUNG: as in struct rls_libc_rung */
};

/* What is probed of a source (enum rls_memory_source). */
enum rls_memory_probing {
	RLS_MEMORY_PROBE_BLOCKS, /* blocks are counted when they begin, and followed to their ends: so at first */
	RLS_MEMORY_PROBE_BIRTHS, /* they are counted when they begin */
	RLS_MEMORY_PROBE_NOTHING, /* what is rare is probed still: failed allocations, the end of an interpreter */
};

#define RLS_MEMORY_SITES_MAX                                                                       \
	RLS_MEMORY_COPY_TENSOR /* what follows is the C library's (libc_code.h) */

/* Whether a file of this name may have some: a cheap test before it is opened. The name is without folders. */
bool rls_memory_sites_library(const char *file_name);

/* Those of a file: their number. Reports of blocks that begin without those of their ends, or the reverse, are never
 * given. */
size_t rls_memory_sites(struct rls_elf *elf, struct rls_memory_site sites[RLS_MEMORY_SITES_MAX]);

#endif
