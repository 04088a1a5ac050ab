#include "userspace/record/probes/lone_file.h"

#include <errno.h>
#include <sys/sysmacros.h>

#include "userspace/base/log.h"
#include "userspace/discover/discover.h"

static int probe_found(struct rls_probed_files *files, const struct rls_process_image *image)
{
	for (size_t i = 0; i < image->library_count; i++) {
		int r = rls_probed_files_add(files, image->libraries[i]);

		if (r == -ENOMEM)
			return r;
		if (!r)
			rls_debug("a process has ended: its %s is probed",
				  image->libraries[i]->path);
	}
	return 0;
}

int rls_lone_file_probe(struct rls_probed_files *files, pid_t pid,
			const struct rls_mapping *mapping, const struct rls_python *python,
			const struct rls_roles *roles)
{
	struct rls_process_image *image;
	struct rls_file *file;
	int r = rls_files_get(files->table, makedev(mapping->device_major, mapping->device_minor),
			      mapping->inode, &file);

	if (r || file->read_alone)
		return r;
	file->read_alone = true;
	r = rls_discover_mapping(pid, mapping, python, roles, &image);
	if (r)
		return r == -ENOMEM ? r : 0;
	r = probe_found(files, image);
	rls_process_image_free(image);
	return r;
}
