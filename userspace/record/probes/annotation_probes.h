/* Operation files: mapped files that tell of operations: our annotation library, and
 * libraries with ranges of their own (annotate/foreign_ranges.h). Probed once per file. */
#ifndef RLS_ANNOTATION_PROBES_H
#define RLS_ANNOTATION_PROBES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/process/mappings.h"

struct rls_operation_files {
	struct rls_kernel *kernel;
	struct rls_operation_file {
		dev_t device;
		ino_t inode;
	} *files;               /* those that have been looked at */
	size_t count, room;
};

void rls_operation_files_clear(struct rls_operation_files *files);

/* Probes what is new among the process's mappings. *annotation: where the process has its
 * rls_annotate_descriptor, 0 when it has none. Failures are debug messages: operations are
 * then less exact, nothing else. */
void rls_operation_files_scan(struct rls_operation_files *files, pid_t pid,
			      const struct rls_mappings *mappings, uint64_t *annotation);

#endif
