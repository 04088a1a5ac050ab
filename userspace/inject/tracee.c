#include "userspace/inject/tracee.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "userspace/base/clock.h"

#define POLL_NS 10000
#define RELEASE_NS 1000000000ULL
#define SYSCALL_STOP (SIGTRAP | 0x80) /* as PTRACE_O_TRACESYSGOOD has it */

/* EXITKILL is left out on purpose: our end must not be the process's. So is TRACECLONE to begin with: a
 * thread that was being made just then would be stopped, and ours to let go, unheard of. */
#define OPTIONS PTRACE_O_TRACESYSGOOD

int rls_tracee_wait(pid_t tid, uint64_t until_ns, int *status)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};

	for (;;) {
		pid_t answer = waitpid(tid, status, __WALL | WNOHANG);

		if (answer == tid)
			return 0;
		if (answer < 0 && errno != EINTR)
			return -errno;
		if (rls_monotonic_ns() > until_ns)
			return -ETIME;
		nanosleep(&pause, NULL);
	}
}

static int event_of(int status)
{
	return status >> 16;
}

static bool is_group_stop(int status)
{
	return event_of(status) == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;
}

/* A signal that is on its way is passed on; the stop that we asked for comes after it. */
static int wait_for_interrupt(pid_t tid, uint64_t until_ns)
{
	int status, r;

	for (;;) {
		r = rls_tracee_wait(tid, until_ns, &status);
		if (r)
			return r;
		if (!WIFSTOPPED(status))
			return -EAGAIN;
		if (is_group_stop(status))
			return -EBUSY;
		if (event_of(status) == PTRACE_EVENT_STOP)
			return 0;
		if (ptrace(PTRACE_CONT, tid, 0, event_of(status) ? 0 : WSTOPSIG(status)))
			return -EAGAIN;
	}
}

int rls_tracee_stop(pid_t tid, uint64_t until_ns)
{
	int r;

	if (ptrace(PTRACE_SEIZE, tid, 0, OPTIONS))
		return errno == ESRCH ? -EAGAIN : -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return -EAGAIN; /* it has ended */
	r = wait_for_interrupt(tid, until_ns);
	if (r == -ETIME)
		rls_tracee_let_go(tid);
	else if (r == -EBUSY)
		rls_tracee_release(tid);
	return r == -EBUSY ? -EAGAIN : r;
}

int rls_tracee_follow_clone(pid_t tid)
{
	return ptrace(PTRACE_SETOPTIONS, tid, 0, OPTIONS | PTRACE_O_TRACECLONE) ? -errno : 0;
}

void rls_tracee_release(pid_t tid)
{
	ptrace(PTRACE_DETACH, tid, 0, 0);
}

void rls_tracee_let_go(pid_t tid)
{
	uint64_t until_ns = rls_monotonic_ns() + RELEASE_NS;
	int status;

	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	if (!rls_tracee_wait(tid, until_ns, &status) && WIFSTOPPED(status))
		ptrace(PTRACE_DETACH, tid, 0,
		       event_of(status) || WSTOPSIG(status) == SYSCALL_STOP ? 0 : WSTOPSIG(status));
}

/* Leaves of system calls, and what is on its way, are passed over. */
static int await_stop(pid_t tid, uint64_t until_ns)
{
	struct __ptrace_syscall_info info;
	int status, r;

	for (;;) {
		r = rls_tracee_wait(tid, until_ns, &status);
		if (r)
			return r;
		if (!WIFSTOPPED(status))
			return -EAGAIN;
		if (is_group_stop(status))
			return -EBUSY;
		if (event_of(status) == PTRACE_EVENT_STOP)
			return 0;
		if (WSTOPSIG(status) == SYSCALL_STOP &&
		    ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) > 0 &&
		    info.op == PTRACE_SYSCALL_INFO_ENTRY)
			return -EBUSY;
		if (ptrace(PTRACE_SYSCALL, tid, 0,
			   event_of(status) || WSTOPSIG(status) == SYSCALL_STOP ? 0
										: WSTOPSIG(status)))
			return -EAGAIN;
	}
}

int rls_tracee_run(pid_t tid, uint64_t for_ns)
{
	int r;

	if (ptrace(PTRACE_SYSCALL, tid, 0, 0))
		return -EAGAIN;
	r = await_stop(tid, rls_monotonic_ns() + for_ns);
	if (r != -ETIME)
		return r;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return -EAGAIN;
	r = await_stop(tid, rls_monotonic_ns() + RELEASE_NS);
	if (r == -ETIME)
		rls_tracee_let_go(tid);
	return r;
}

static int tracee_describe(pid_t tid, struct rls_tracee_call *call)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) <= 0)
		return -errno;
	*call = (struct rls_tracee_call){
		.is_entry = info.op == PTRACE_SYSCALL_INFO_ENTRY,
		.number = info.op == PTRACE_SYSCALL_INFO_ENTRY ? info.entry.nr : 0,
		.stack = info.stack_pointer,
		.ip = info.instruction_pointer,
	};
	return 0;
}

static int describe_clone(pid_t tid, struct rls_tracee_call *call)
{
	unsigned long number;

	if (ptrace(PTRACE_GETEVENTMSG, tid, 0, &number))
		return -errno;
	*call = (struct rls_tracee_call){.new_tid = (pid_t)number};
	return 0;
}

int rls_tracee_step(pid_t tid, uint64_t until_ns, struct rls_tracee_call *call)
{
	enum __ptrace_request how = PTRACE_SYSCALL;
	int status, signal = 0, r;

	for (;;) {
		if (ptrace(how, tid, 0, signal))
			return -errno;
		r = rls_tracee_wait(tid, until_ns, &status);
		if (r)
			return r;
		if (!WIFSTOPPED(status))
			return -ESRCH;
		if (WSTOPSIG(status) == SYSCALL_STOP)
			return tracee_describe(tid, call);
		if (event_of(status) == PTRACE_EVENT_CLONE)
			return describe_clone(tid, call);
		/* Somebody stopped the whole process: it stays so until he continues it. */
		how = is_group_stop(status) ? PTRACE_LISTEN : PTRACE_SYSCALL;
		signal = event_of(status) ? 0 : WSTOPSIG(status);
	}
}

int rls_tracee_get(pid_t tid, struct user_regs_struct *registers)
{
	return ptrace(PTRACE_GETREGS, tid, 0, registers) ? -errno : 0;
}

int rls_tracee_set(pid_t tid, const struct user_regs_struct *registers)
{
	return ptrace(PTRACE_SETREGS, tid, 0, registers) ? -errno : 0;
}

int rls_tracee_read(pid_t tid, uint64_t address, void *bytes, size_t length)
{
	struct iovec local = {bytes, length};
	struct iovec remote = {(void *)(uintptr_t)address, length};
	ssize_t got = process_vm_readv(tid, &local, 1, &remote, 1, 0);

	if (got < 0)
		return -errno;
	return (size_t)got == length ? 0 : -EFAULT;
}

int rls_tracee_write(pid_t tid, uint64_t address, const void *bytes, size_t length)
{
	struct iovec local = {(void *)(uintptr_t)bytes, length};
	struct iovec remote = {(void *)(uintptr_t)address, length};
	ssize_t put = process_vm_writev(tid, &local, 1, &remote, 1, 0);

	if (put < 0)
		return -errno;
	return (size_t)put == length ? 0 : -EFAULT;
}
