#include "userspace/record/targets/followed.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/grow.h"

void rls_processes_clear(struct rls_processes *processes)
{
	free(processes->entries);
	*processes = (struct rls_processes){ 0 };
}

struct rls_followed *rls_processes_find(const struct rls_processes *processes, pid_t pid)
{
	for (size_t i = 0; i < processes->count; i++) {
		if (processes->entries[i].pid == pid)
			return &processes->entries[i];
	}
	return NULL;
}

int rls_processes_add(struct rls_processes *processes, pid_t pid, bool root)
{
	struct rls_followed *found = rls_processes_find(processes, pid);

	if (found) {
		found->root |= root;
		return 0;
	}
	if (rls_grow(&processes->entries, &processes->room, processes->count))
		return -ENOMEM;
	processes->entries[processes->count++] = (struct rls_followed){ .pid = pid, .root = root };
	return 0;
}

void rls_processes_remove(struct rls_processes *processes, pid_t pid)
{
	struct rls_followed *found = rls_processes_find(processes, pid);

	if (found)
		*found = processes->entries[--processes->count];
}

size_t rls_processes_roots(const struct rls_processes *processes)
{
	size_t roots = 0;

	for (size_t i = 0; i < processes->count; i++)
		roots += processes->entries[i].root;
	return roots;
}

void rls_processes_look(struct rls_processes *processes, pid_t pid, uint64_t when_ns)
{
	for (size_t i = 0; i < processes->count; i++) {
		struct rls_followed *entry = &processes->entries[i];

		if (pid && entry->pid != pid)
			continue;
		if (!entry->look_ns || when_ns < entry->look_ns)
			entry->look_ns = when_ns;
	}
}
