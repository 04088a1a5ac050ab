/* File table: every mapped file that probes concern, once, and what is known of it.
 *
 * A file is identified by device and inode, as rls_mapping_locate reports them. Where every mount
 * of an overlay has a device of its own, size and time of change replace the device. An entry
 * keeps its address until the table is cleared. One thread.
 */
#ifndef RLS_FILE_TABLE_H
#define RLS_FILE_TABLE_H

#include <stdbool.h>
#include <sys/types.h>

#include "analysis/base/index_map.h"
#include "userspace/process/mappings.h"

struct rls_probed_file;

struct rls_file {
	dev_t device;
	ino_t inode;
	struct rls_probed_file
		*probed; /* NULL: none with a role, or not seen as such yet (probed_files.h) */
	bool switches_stacks; /* a process that does maps it (stack_switching.h) */
	bool reports_memory; /* it has been looked at for that (memory/reporters.h) */
	bool has_operation_probes; /* it has been probed for them (annotation_probes.h) */
	bool read_alone; /* without a process that maps it (lone_file.h) */
};

/* Zeroed: empty. */
struct rls_files {
	struct rls_index_map by_identity; /* device, inode → struct rls_file */
};

void rls_files_clear(struct rls_files *files);

/* NULL when it is not there. */
struct rls_file *rls_files_find(const struct rls_files *files, dev_t device, ino_t inode);
/* Made when it is new. 0 or -ENOMEM. */
int rls_files_get(struct rls_files *files, dev_t device, ino_t inode, struct rls_file **out);

/* The file of a process's mapping, made when it is new, and where the host finds it, which is the caller's.
 * 0; -ENOMEM; another -errno when it cannot be found. */
int rls_files_locate(struct rls_files *files, pid_t pid, const struct rls_mapping *mapping,
		     char **path, struct rls_file **out);

#endif
