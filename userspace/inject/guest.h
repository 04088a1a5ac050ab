/* Guest: a thread in the process that was made for us and makes calls for us. */
#ifndef RLS_GUEST_H
#define RLS_GUEST_H

#include <sys/user.h>

#include "userspace/inject/grounds.h"

struct rls_guest {
	const struct rls_grounds *grounds;
	pid_t tid;
	uint64_t until_ns;
	struct user_regs_struct home; /* in sched_yield, from which it ends of itself */
};

/* Takes over a thread as rls_carrier_make_thread made it, and runs it to its home. On failure it
 * is let go. 0, -ETIME, -ESRCH, -errno. */
int rls_guest_receive(const struct rls_grounds *grounds, pid_t tid, uint64_t until_ns,
		      struct rls_guest *out);

/* Calls a function and returns to `home`; the function's result is ignored. 0; else the guest is let go,
 * finishes the call if it can, and ends. text: put on its stack and passed as the first
 * argument in place of `first`, or NULL. */
int rls_guest_call(struct rls_guest *guest, uint64_t function, const char *text, uint64_t first,
		   uint64_t second);

/* What its pthread_self() is. */
uint64_t rls_guest_self(const struct rls_guest *guest);

/* Lets it end. */
void rls_guest_dismiss(struct rls_guest *guest);

#endif
