/* Lone file: a library that is probed by what its file says, as the process that mapped it has ended.
 *
 * Exports, calls into Python and tables of methods are in the file. What modules make while they run is found once a
 * process that maps it is looked at.
 */
#ifndef RLS_LONE_FILE_H
#define RLS_LONE_FILE_H

#include <sys/types.h>

#include "userspace/discover/roles/roles.h"
#include "userspace/process/mappings.h"
#include "userspace/python/python.h"
#include "userspace/record/probes/probed_files.h"

/* pid: a process that finds the file by the mapping's path, the same by device and inode. python: what the process ran that
 * has ended, or NULL. Once for each file. 0 or -ENOMEM; another failure is a message. */
int rls_lone_file_probe(struct rls_probed_files *files, pid_t pid,
			const struct rls_mapping *mapping, const struct rls_python *python,
			const struct rls_roles *roles);

#endif
