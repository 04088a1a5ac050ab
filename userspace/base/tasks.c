#include "userspace/base/tasks.h"

#include <stdio.h>
#include <stdlib.h>

DIR *rls_tasks_open(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return opendir(path);
}

pid_t rls_tasks_next(DIR *tasks)
{
	struct dirent *entry;
	pid_t tid = 0;

	while (tasks && tid <= 0 && (entry = readdir(tasks)))
		tid = (pid_t)strtol(entry->d_name, NULL, 10);
	return tid;
}

void rls_tasks_close(DIR **tasks)
{
	if (*tasks)
		closedir(*tasks);
}
