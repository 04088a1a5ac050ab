#include "userspace/process/target_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/process/living_thread.h"

int rls_target_file_open(pid_t pid, const char *path)
{
	/* Plain open() would follow its links from our root, and wait for a writer of a pipe. */
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int root = -1;
	char root_path[RLS_PROCESS_PATH_BYTES] = "/";
	long fd;

	if (pid)
		rls_process_path(root_path, pid, "root");
	root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}
