#include "userspace/process/seen_files.h"

#include <stdlib.h>

#include "analysis/base/grow.h"

struct seen_file {
	uint64_t device, inode;
};

/* A few hundred at most, looked up a few hundred times: a plain list, newest first checked
 * because the mappings of one file stand together. */
struct rls_seen_files {
	RLS_LIST(struct seen_file) files;
};

struct rls_seen_files *rls_seen_files_new(void)
{
	return calloc(1, sizeof(struct rls_seen_files));
}

void rls_seen_files_free(struct rls_seen_files *seen)
{
	if (!seen)
		return;
	free(seen->files.items);
	free(seen);
}

int rls_seen_files_add(struct rls_seen_files *seen, const struct rls_mapping *mapping)
{
	struct seen_file file = {
		.device = (uint64_t)mapping->device_major << 32 | mapping->device_minor,
		.inode = mapping->inode,
	};

	for (size_t i = seen->files.count; i > 0; i--)
		if (seen->files.items[i - 1].inode == file.inode &&
		    seen->files.items[i - 1].device == file.device)
			return 0;
	return rls_list_push(&seen->files, file) ? -ENOMEM : 1;
}
