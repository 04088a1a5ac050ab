#include "userspace/inject/carrier.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/clock.h"
#include "userspace/base/tasks.h"
#include "userspace/inject/moment.h"
#include "userspace/inject/refuse.h"
#include "userspace/inject/sandbox.h"
#include "userspace/inject/sigframe.h"
#include "userspace/inject/tracee.h"

#define TEXT_BYTES 256
#define STOP_NS 500000000ULL
#define CREATE_NS 2000000000ULL
#define BETWEEN_NS 1000000 /* looks at who runs; attempts too */
#define FIRST_RUN_NS 10000
#define RUNS 10 /* the last is 5 ms long */
#define SLEEPER_EACH 4 /* of so many attempts one is at who sleeps, if anybody does */
#define DENIALS 10 /* in a row; one alone is of a thread that has just ended */
#define CARRY_FLAGS 0x202 /* interrupts on, direction up, nothing else */

/* ---- who runs, and who sleeps ---- */

/* The first bytes of a file of a thread's. */
static bool read_of_thread(pid_t pid, pid_t tid, const char *name, char text[TEXT_BYTES])
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	text[fread(text, 1, TEXT_BYTES - 1, file)] = '\0';
	return true;
}

static bool is_running(pid_t pid, pid_t tid)
{
	char text[TEXT_BYTES];
	const char *end;

	if (!read_of_thread(pid, tid, "stat", text))
		return false;
	end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] == 'R';
}

/* Asked before it is disturbed: there are system calls that do not bear it. */
static bool is_asleep(pid_t pid, pid_t tid)
{
	uint64_t number, arguments[6];
	char text[TEXT_BYTES];

	return read_of_thread(pid, tid, "syscall", text) &&
	       sscanf(text,
		      "%" SCNu64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		      " %" SCNx64,
		      &number, &arguments[0], &arguments[1], &arguments[2], &arguments[3],
		      &arguments[4], &arguments[5]) == 7 &&
	       rls_moment_may_repeat(number, arguments);
}

/* One of those that are so, none twice in a row if there are others. 0: none is. */
static pid_t carrier_choose(pid_t pid, pid_t not_again, bool (*is_so)(pid_t pid, pid_t tid))
{
	_cleanup_tasks_ DIR *tasks = rls_tasks_open(pid);
	pid_t chosen = 0, tid;

	if (!tasks)
		return -1;
	while ((!chosen || chosen == not_again) && (tid = rls_tasks_next(tasks)))
		if (is_so(pid, tid))
			chosen = tid;
	return chosen;
}

/* Mostly threads that run: no system call of theirs needs to be restarted. */
static pid_t choose_any(pid_t pid, pid_t not_again, unsigned int attempts)
{
	bool is_for_sleeper = attempts % SLEEPER_EACH == SLEEPER_EACH - 1;
	pid_t tid = carrier_choose(pid, not_again, is_for_sleeper ? is_asleep : is_running);

	return tid ? tid : carrier_choose(pid, not_again, is_for_sleeper ? is_running : is_asleep);
}

/* ---- the call ---- */

struct carrier {
	pid_t tid;
	struct rls_sigframe_state state;
	uint8_t vectors[RLS_SIGFRAME_BYTES_MAX];
	struct rls_sigframe frame;
};

static int read_state(struct carrier *carrier)
{
	struct iovec vectors = {carrier->vectors, sizeof(carrier->vectors)};

	if (ptrace(PTRACE_GETSIGMASK, carrier->tid, sizeof(carrier->state.signal_mask),
		   &carrier->state.signal_mask) ||
	    ptrace(PTRACE_GETREGSET, carrier->tid, NT_X86_XSTATE, &vectors))
		return -errno;
	carrier->state.vectors = carrier->vectors;
	carrier->state.vector_bytes = vectors.iov_len;
	return 0;
}

/* pthread_create(scratch, NULL, sched_yield, NULL), to return into the frame. The registers go
 * before the mask: whoever kills us in between leaves a thread whose frame restores both. */
static int begin_call(struct carrier *carrier, const struct rls_grounds *grounds)
{
	struct user_regs_struct registers = carrier->state.registers;
	const uint64_t all = ~0ULL;
	int r = rls_tracee_write(carrier->tid, carrier->frame.address, carrier->frame.bytes,
				 carrier->frame.length);

	if (!r)
		r = rls_tracee_follow_clone(carrier->tid);
	if (r)
		return r;
	registers.rsp = carrier->frame.address;
	registers.rip = grounds->pthread_create;
	registers.rdi = carrier->frame.scratch;
	registers.rsi = 0;
	registers.rdx = grounds->sched_yield;
	registers.rcx = 0;
	registers.rax = 0;
	registers.eflags = CARRY_FLAGS;
	registers.orig_rax = ~0ULL;
	r = rls_tracee_set(carrier->tid, &registers);
	if (!r && ptrace(PTRACE_SETSIGMASK, carrier->tid, sizeof(all), &all))
		r = 0; /* it is not needed, only better */
	return r;
}

/* Until the thread is there, or the carrier is on its way back without one. */
static int await_thread(struct carrier *carrier, pid_t *guest)
{
	uint64_t until_ns = rls_monotonic_ns() + CREATE_NS;
	struct rls_tracee_call call;
	int r;

	do {
		r = rls_tracee_step(carrier->tid, until_ns, &call);
		if (r == -ETIME)
			rls_tracee_let_go(carrier->tid);
		if (r)
			return r;
	} while (!call.new_tid && !(call.is_entry && call.number == SYS_rt_sigreturn));
	rls_tracee_release(carrier->tid);
	if (!call.new_tid)
		return -ENOMEM;
	*guest = call.new_tid;
	return 0;
}

/* Filters do not change with the moment. */
static int check_filters(pid_t pid, pid_t tid)
{
	int r = rls_sandbox_check(pid, tid);

	return r == -EPERM ? -EKEYREJECTED : r;
}

/* A thread is seldom found at a safe place: one that has just been woken is still in the C library. So
 * it runs on for a little, longer each time. 0: it is stopped at a safe moment; -EAGAIN: it is stopped,
 * but not safely; -ESRCH: it is no longer traced. */
static int find_moment(struct carrier *carrier, const struct rls_grounds *grounds,
		       const struct rls_mappings *mappings)
{
	uint64_t run_ns = FIRST_RUN_NS;

	for (int i = 0; i < RUNS; i++) {
		int r = rls_tracee_get(carrier->tid, &carrier->state.registers);

		if (r)
			return -EAGAIN;
		if (rls_moment_is_good(carrier->tid, &carrier->state.registers, grounds,
				       mappings) ||
		    rls_moment_is_sleep(carrier->tid, &carrier->state.registers, grounds, mappings))
			return 0;
		r = rls_tracee_run(carrier->tid, run_ns);
		if (r)
			return r == -EBUSY ? -EAGAIN : -ESRCH;
		run_ns *= 2;
	}
	return -EAGAIN;
}

/* -EAGAIN: not at this moment, or not this thread. */
static int attempt(struct carrier *carrier, const struct rls_grounds *grounds,
		   const struct rls_mappings *mappings, pid_t *guest)
{
	int r = rls_tracee_stop(carrier->tid, rls_monotonic_ns() + STOP_NS);

	if (r)
		return r == -ETIME ? -EAGAIN : r;
	r = find_moment(carrier, grounds, mappings);
	if (r == -ESRCH)
		return -EAGAIN;
	if (!r)
		r = check_filters(grounds->pid, carrier->tid);
	if (!r)
		r = read_state(carrier);
	if (!r)
		r = rls_sigframe_make(&carrier->state, grounds->way_back, &carrier->frame);
	if (!r)
		r = begin_call(carrier, grounds);
	if (!r)
		return await_thread(carrier, guest);
	rls_tracee_release(carrier->tid); /* as it was */
	return r == -ENOTSUP || r == -EFAULT ? -EAGAIN : r;
}

int rls_carrier_make_thread(const struct rls_grounds *grounds, uint64_t until_ns, pid_t *guest,
			    char why[RLS_INJECT_WHY_BYTES])
{
	const struct timespec pause = {.tv_nsec = BETWEEN_NS};
	_cleanup_free_ struct carrier *carrier = calloc(1, sizeof(*carrier));
	unsigned int denied = 0, attempts = 0;
	int r = -EAGAIN;

	if (!carrier)
		return rls_refuse(why, -ENOMEM,
				  "cannot be given a library: the profiler has no memory left");
	while (r == -EAGAIN && rls_monotonic_ns() < until_ns) {
		struct rls_mappings mappings;

		nanosleep(&pause, NULL);
		carrier->tid = choose_any(grounds->pid, carrier->tid, attempts++);
		if (carrier->tid <= 0 || rls_mappings_read(grounds->pid, &mappings))
			continue;
		r = attempt(carrier, grounds, &mappings, guest);
		rls_mappings_release(&mappings);
		denied = r == -EPERM ? denied + 1 : 0;
		if (denied && denied < DENIALS)
			r = -EAGAIN;
	}
	switch (-r) {
	case 0:
		return 0;
	case EAGAIN:
		return rls_refuse(why, r,
				  "was never seen in a state in which it could safely start a "
				  "thread (it waits for something that must not be interrupted, or "
				  "is always within its C library)");
	case ENOMEM:
		return rls_refuse(why, r, "could start no more threads");
	case EKEYREJECTED:
		return rls_refuse(
			why, r,
			"is in a sandbox (seccomp) that would kill it for the system calls needed");
	case EACCES:
		return rls_refuse(why, r, "is in a sandbox (seccomp) whose filters cannot be read");
	case EPERM:
		return rls_refuse(why, r,
				  "may not be traced (ptrace(2); Yama, or a container's limits)");
	default:
		return rls_refuse(why, r, "could not be given a thread: %s", strerror(-r));
	}
}
