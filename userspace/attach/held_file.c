#include "userspace/attach/held_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int rls_held_file_open(struct rls_held_file *file, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	file->fd = fd;
	snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", fd);
	return 0;
}

void rls_held_file_close(struct rls_held_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}
