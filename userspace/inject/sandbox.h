/* Sandbox: whether a thread's seccomp filters would kill it for what injection does. */
#ifndef RLS_SANDBOX_H
#define RLS_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sock_filter;

/* tid: of process pid, traced by us and stopped. 0: no filter, or all that is needed is allowed or fails as an
 * error; -EPERM: no; -EACCES: filters that cannot be read (they want CAP_SYS_ADMIN). */
int rls_sandbox_check(pid_t pid, pid_t tid);

/* What a classic BPF program says of a system call (a SECCOMP_RET_*), first arguments first; of one
 * that is not well formed, SECCOMP_RET_KILL_PROCESS. Pure. */
struct rls_sandbox_call {
	uint32_t number;
	uint64_t first; /* argument; the others are 0 */
};
uint32_t rls_sandbox_run(const struct sock_filter *program, size_t length,
			 const struct rls_sandbox_call *call);

#endif
