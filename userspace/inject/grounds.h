/* Grounds: what injection must know of a process, and reasons to refuse it. */
#ifndef RLS_GROUNDS_H
#define RLS_GROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/inject/refuse.h"
#include "userspace/process/mappings.h"

#define RLS_UNSAFE_MAX 32

struct rls_range {
	uint64_t start, end;
};

struct rls_grounds {
	pid_t pid;
	/* Of the process's C library, runtime addresses. */
	uint64_t pthread_create, pthread_detach, sched_yield, dlopen;
	uint64_t restorer; /* mov $15, %rax; syscall: where signal handlers return to */
	/* The same through the nop before it. It distinguishes our frames, parts of which may stay on
	 * stacks, from those of signals. */
	uint64_t way_back;
	struct rls_range libc; /* its code */
	/* Code in which a thread may hold a lock that making a thread wants: the C library, the
	 * loader, and whatever else has an allocator of its own. Those last come first. */
	struct rls_range unsafe[RLS_UNSAFE_MAX];
	size_t unsafe_count, allocator_count;
};

/* 0; -errno with a clause in why. */
int rls_grounds_survey(pid_t pid, struct rls_grounds *out, char why[RLS_INJECT_WHY_BYTES]);

bool rls_range_holds(const struct rls_range *range, uint64_t address);
/* Whether any of the first count ranges does. */
bool rls_ranges_hold(const struct rls_range *ranges, size_t count, uint64_t address);

/* Runtime address of a function in the file that a mapping maps. 0 or -errno. */
int rls_grounds_function(pid_t pid, const struct rls_mapping *mapping, const char *name,
			 uint64_t *out);

#endif
