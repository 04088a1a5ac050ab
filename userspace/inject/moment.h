/* Moment: whether a stopped thread can be made to call something now. */
#ifndef RLS_MOMENT_H
#define RLS_MOMENT_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/user.h>

#include "userspace/inject/grounds.h"
#include "userspace/process/mappings.h"

/* It is in its own code and in no system call; in no code of the C library, the loader or an
 * allocator, nor below one on its stack; in no signal handler and no restartable sequence; on a
 * stack with room. mappings: read before it was stopped. */
bool rls_moment_is_good(pid_t tid, const struct user_regs_struct *registers,
			const struct rls_grounds *grounds, const struct rls_mappings *mappings);

/* Or it sleeps, by way of the C library, in a system call that means the same when it is made anew:
 * a wait without an end, or until an instant (pthread_cond_wait and its like, time.sleep of Python
 * since 3.11, poll and select without a timeout). Not one for a lock: who waits for one may hold
 * others. Then registers are set back to just before that call. Its stack as above. */
bool rls_moment_is_sleep(pid_t tid, struct user_regs_struct *registers,
			 const struct rls_grounds *grounds, const struct rls_mappings *mappings);

/* Is that such a call? Arguments as the kernel takes them. Pure. */
bool rls_moment_may_repeat(uint64_t number, const uint64_t arguments[6]);

#endif
