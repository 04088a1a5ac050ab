/* Moment: is a thread, stopped where it is, one that can be made to call something now? */
#ifndef RLS_MOMENT_H
#define RLS_MOMENT_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/user.h>

#include "userspace/discover/mappings.h"
#include "userspace/inject/grounds.h"

/* It is in its own code and in no system call; in no code of the C library, the loader or an
 * allocator, nor below one on its stack; in no signal handler and no restartable sequence; on a
 * stack with room. mappings: read before it was stopped. */
bool rls_moment_is_good(pid_t tid, const struct user_regs_struct *registers,
			const struct rls_grounds *grounds, const struct rls_mappings *mappings);

#endif
