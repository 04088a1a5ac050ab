/* Memory limits: how much memory a process may use, and how much of that is used.
 *
 * The limit is the smallest of its cgroup and of those above it, in version 2 (memory.max) or 1
 * (memory.limit_in_bytes); where there is none, it is all that the machine has.
 */
#ifndef RLS_MEMORY_LIMITS_H
#define RLS_MEMORY_LIMITS_H

#include <stdint.h>
#include <sys/types.h>

struct rls_memory_limit {
	uint64_t limit_bytes; /* 0: not known */
	uint64_t used_bytes; /* of it, without files' pages that the kernel takes back first */
};

/* Where a process's limit is: found once, read often. */
struct rls_memory_group {
	char *path; /* of the cgroup that has it; NULL: none has; owned */
	int version;
};

/* Finds the one that is the tightest now, for a process. */
void rls_memory_group_find(pid_t pid, struct rls_memory_group *out);
void rls_memory_group_clear(struct rls_memory_group *group);
void rls_memory_limit_read(const struct rls_memory_group *group, struct rls_memory_limit *out);

/* For tests: cgroup_text as in /proc/PID/cgroup, mountinfo_text as in /proc/self/mountinfo. */
void rls_memory_group_find_in(const char *cgroup_text, const char *mountinfo_text,
			      struct rls_memory_group *out);

#endif
