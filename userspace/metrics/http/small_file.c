#include "userspace/metrics/http/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/log.h"

/* A pipe would make us wait, so it is not waited for and then refused. */
int rls_small_file_read(const char *path, char **out)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	struct stat status;
	size_t used = 0;
	ssize_t got;

	if (fd < 0 || fstat(fd, &status))
		return rls_error_r(-errno, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return rls_error_r(-EINVAL, "cannot read %s: it is not a file", path);
	text = malloc(RLS_SMALL_FILE_BYTES_MAX + 1);
	if (!text)
		return -ENOMEM;
	while (used <= RLS_SMALL_FILE_BYTES_MAX) {
		got = read(fd, text + used, RLS_SMALL_FILE_BYTES_MAX + 1 - used);
		if (got < 0 && errno != EINTR)
			return rls_error_r(-errno, "cannot read %s: %s", path, strerror(errno));
		if (!got)
			break;
		used += got > 0 ? (size_t)got : 0;
	}
	if (used > RLS_SMALL_FILE_BYTES_MAX || memchr(text, '\0', used))
		return rls_error_r(-EFBIG, "cannot read %s: it is not a text of less than 1 MiB",
				   path);
	text[used] = '\0';
	*out = rls_take(text);
	return 0;
}
