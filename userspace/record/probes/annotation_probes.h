/* Annotation probes: mapped files that report operations, which are our annotation library and
 * libraries with ranges of their own (annotate/foreign_ranges.h). Each file is probed once.
 */
#ifndef RLS_ANNOTATION_PROBES_H
#define RLS_ANNOTATION_PROBES_H

#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/process/mappings.h"
#include "userspace/record/probes/file_table.h"

/* Probes what is new among the process's mappings. *annotation: where the process has its
 * rls_annotate_descriptor, 0 when it has none. Failures are debug messages: operations are
 * then less exact, nothing else. */
void rls_annotation_probes_scan(struct rls_kernel *kernel, struct rls_files *files, pid_t pid,
				const struct rls_mappings *mappings, uint64_t *annotation);

#endif
