#include "userspace/record/probes/file_table.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"

void rls_files_clear(struct rls_files *files)
{
	for (size_t i = 0; i < files->by_identity.capacity; i++)
		free(files->by_identity.entries[i].value);
	rls_index_map_free(&files->by_identity);
	*files = (struct rls_files){0};
}

struct rls_file *rls_files_find(const struct rls_files *files, dev_t device, ino_t inode)
{
	return rls_index_map_get(&files->by_identity, device, inode);
}

int rls_files_get(struct rls_files *files, dev_t device, ino_t inode, struct rls_file **out)
{
	struct rls_file *file = rls_files_find(files, device, inode);

	if (!file) {
		file = calloc(1, sizeof(*file));
		if (!file || rls_index_map_put(&files->by_identity, device, inode, file)) {
			free(file);
			return -ENOMEM;
		}
		file->device = device;
		file->inode = inode;
	}
	*out = file;
	return 0;
}

int rls_files_locate(struct rls_files *files, pid_t pid, const struct rls_mapping *mapping,
		     char **path, struct rls_file **out)
{
	_cleanup_free_ char *found = NULL;
	dev_t device;
	ino_t inode;
	int r = rls_mapping_locate(pid, mapping, &found, &device, &inode);

	if (!r)
		r = rls_files_get(files, device, inode, out);
	if (!r)
		*path = rls_take(found);
	return r;
}
