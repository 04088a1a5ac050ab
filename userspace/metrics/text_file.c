#include "userspace/metrics/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "analysis/base/cleanup.h"

/* Collectors read *.prom only, so they do not see it. */
#define UNFINISHED ".rlscope.prom.tmp"

static int write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t put = write(fd, text, bytes);

		if (put < 0 && errno != EINTR)
			return -errno;
		if (put > 0) {
			text += put;
			bytes -= (size_t)put;
		}
	}
	return 0;
}

int rls_text_file_write(const char *directory, const char *text, size_t bytes)
{
	_cleanup_close_ int folder = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = -1;
	int r;

	if (folder < 0)
		return -errno;
	if (unlinkat(folder, UNFINISHED, 0) && errno != ENOENT)
		return -errno;
	fd = openat(folder, UNFINISHED, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, text, bytes);
	if (!r && fchmod(fd, 0644))
		r = -errno;
	if (!r && renameat(folder, UNFINISHED, folder, RLS_TEXT_FILE_NAME))
		r = -errno;
	if (r)
		unlinkat(folder, UNFINISHED, 0);
	return r;
}

int rls_text_file_remove(const char *directory)
{
	_cleanup_close_ int folder = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0)
		return -errno;
	return unlinkat(folder, RLS_TEXT_FILE_NAME, 0) && errno != ENOENT ? -errno : 0;
}
