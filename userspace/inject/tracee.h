/* Tracees: threads under ptrace, as far as injection needs it. The tracer is the calling thread. */
#ifndef RLS_TRACEE_H
#define RLS_TRACEE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* Waits for a stop (or the end) of a thread that we trace: its status; -ETIME; -ECHILD. */
int rls_tracee_wait(pid_t tid, uint64_t until_ns, int *status);

/* Takes a thread over without stopping it, then stops it. On failure it is let go again.
 * 0; -EAGAIN: not now (it ended, or was asleep); -ETIME; -EPERM and others of ptrace(2). */
int rls_tracee_stop(pid_t tid, uint64_t until_ns);

/* Lets a stopped thread run for about this long and stops it again, at the latest where it enters a
 * system call, so that it never waits in one meanwhile. 0: stopped again; -EBUSY: stopped at such an
 * entry; -EAGAIN: it has ended; -ETIME: it could not be stopped, and was released. */
int rls_tracee_run(pid_t tid, uint64_t for_ns);

/* From now on threads that this stopped one makes are traced too: rls_tracee_step reports each. */
int rls_tracee_follow_clone(pid_t tid);

/* Lets a stopped thread go. */
void rls_tracee_release(pid_t tid);
/* Stops one that runs in order to let it go. */
void rls_tracee_let_go(pid_t tid);

/* On to its next system call, or out of it: 0 and what it is at, -ETIME, -ESRCH (it has ended).
 * new_tid: of a thread that it makes meanwhile (call is then of no meaning), else 0. */
struct rls_tracee_call {
	int is_entry;
	uint64_t number, stack, ip;
	pid_t new_tid;
};
int rls_tracee_step(pid_t tid, uint64_t until_ns, struct rls_tracee_call *call);

int rls_tracee_get(pid_t tid, struct user_regs_struct *registers);
int rls_tracee_set(pid_t tid, const struct user_regs_struct *registers);

/* All of it, or -errno. Pages that the process itself could not write to are not written. */
int rls_tracee_read(pid_t tid, uint64_t address, void *bytes, size_t length);
int rls_tracee_write(pid_t tid, uint64_t address, const void *bytes, size_t length);

#endif
