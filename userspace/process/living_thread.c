#include "userspace/process/living_thread.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/tasks.h"

/* Anybody may read it, and it costs little: "0 0 0 ..." where there is no memory. */
static bool has_memory(pid_t pid, pid_t tid)
{
	_cleanup_close_ int fd = -1;
	char path[RLS_PROCESS_PATH_BYTES], text[2];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/statm", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, text, sizeof(text)) == sizeof(text) && text[0] != '0';
}

pid_t rls_living_thread(pid_t pid)
{
	_cleanup_tasks_ DIR *tasks = NULL;
	pid_t living = pid, tid;

	if (has_memory(pid, pid))
		return pid;
	tasks = rls_tasks_open(pid);
	while (living == pid && (tid = rls_tasks_next(tasks)))
		if (tid != pid && has_memory(pid, tid))
			living = tid;
	return living;
}

void rls_process_path(char path[RLS_PROCESS_PATH_BYTES], pid_t pid, const char *name)
{
	snprintf(path, RLS_PROCESS_PATH_BYTES, "/proc/%d/%.40s", rls_living_thread(pid), name);
}
