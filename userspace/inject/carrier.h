/* Carrier: one of the process's own threads, which makes a thread for us at a safe moment. */
#ifndef RLS_CARRIER_H
#define RLS_CARRIER_H

#include "userspace/inject/grounds.h"

/* The new thread is traced by us and has not run yet; its signals are all blocked, and it will
 * call sched_yield and end. The carrier has been released. 0; -EAGAIN: there was no safe moment
 * in time; -ENOMEM: the process could make no thread; -errno, with a clause in why. */
int rls_carrier_make_thread(const struct rls_grounds *grounds, uint64_t until_ns, pid_t *guest,
			    char why[RLS_INJECT_WHY_BYTES]);

#endif
