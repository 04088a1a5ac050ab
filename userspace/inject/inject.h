/* Inject: loads a shared library into a running process, which then calls a function of it.
 *
 *     grounds    what must be known of the process; reasons to refuse it
 *     visible    the library's file where the process can open it, a copy if necessary
 *     carrier    one of its threads, at a moment when it holds no lock that matters, makes a
 *                thread as if a signal handler did, and continues where it was
 *                (moment: is this one? sandbox: would seccomp kill it? sigframe: the way back)
 *     guest      that thread, which loads the library, calls the function and ends
 *
 * The process never depends on us. The carrier returns through a signal frame, from which the
 * kernel restores every register, the vector state and the signal mask. The guest's stack returns
 * into the C library's own end of a thread. If we are killed at any moment, the process continues,
 * with the library loaded or not. No other thread is stopped, and the carrier stops for 0.1 ms.
 *
 * x86-64 and glibc 2.34 or newer. It needs the permissions of PTRACE_SEIZE. One thread of ours.
 */
#ifndef RLS_INJECT_H
#define RLS_INJECT_H

#include <stdint.h>
#include <sys/types.h>

#include "userspace/inject/refuse.h"

struct rls_injection {
	pid_t pid;
	const char *library; /* absolute, as we see it; not loaded again where it is */
	const char *start; /* a function of it, int (void); called each time */
	uint64_t limit_ns; /* until the library is in or we have let go */
};

/* 0; else -errno, and why[] holds a clause about the process ("is stopped"): it is then as it
 * was, or, with -ETIME, its own thread may still load the library, which does nothing by itself. */
int rls_inject(const struct rls_injection *injection, char why[RLS_INJECT_WHY_BYTES]);

#endif
