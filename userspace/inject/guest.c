#include "userspace/inject/guest.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "userspace/inject/tracee.h"

#define YIELD_CODE_BYTES 32 /* sched_yield is a system call and its return */
#define TEXT_ROOM_BYTES 8192
#define TEXT_DEPTH_BYTES (128u << 10) /* further down its stack than loading a library comes */
#define PAGE_BYTES 4096

/* Runs on to where sched_yield has been entered with this stack pointer (0: any), and out of it. */
static int run_to_yield(struct rls_guest *guest, uint64_t stack)
{
	const struct rls_range yield = {guest->grounds->sched_yield,
					guest->grounds->sched_yield + YIELD_CODE_BYTES};
	struct rls_tracee_call call;
	int r;

	do {
		r = rls_tracee_step(guest->tid, guest->until_ns, &call);
		if (r)
			return r;
	} while (call.new_tid || !call.is_entry || call.number != SYS_sched_yield ||
		 !rls_range_holds(&yield, call.ip) || (stack && call.stack != stack));
	return rls_tracee_step(guest->tid, guest->until_ns, &call);
}

static int guest_leave(struct rls_guest *guest, int error)
{
	if (error == -ETIME)
		rls_tracee_let_go(guest->tid);
	else if (error != -ESRCH)
		rls_tracee_release(guest->tid);
	return error;
}

/* That sched_yield returns to the C library's start of threads, which ends this one. */
static int check_home(const struct rls_guest *guest)
{
	uint64_t back;
	int r = rls_tracee_read(guest->tid, guest->home.rsp, &back, sizeof(back));

	if (r)
		return r;
	return guest->home.rsp % 16 == 8 && rls_range_holds(&guest->grounds->libc, back) ? 0
											 : -EPROTO;
}

int rls_guest_receive(const struct rls_grounds *grounds, pid_t tid, uint64_t until_ns,
		      struct rls_guest *out)
{
	struct rls_guest guest = {.grounds = grounds, .tid = tid, .until_ns = until_ns};
	int status, r = rls_tracee_wait(tid, until_ns, &status);

	if (r)
		return guest_leave(&guest, r);
	if (!WIFSTOPPED(status))
		return -ESRCH;
	/* Threads that the library makes are none of our business. */
	if (ptrace(PTRACE_SETOPTIONS, tid, 0, PTRACE_O_TRACESYSGOOD))
		return guest_leave(&guest, -errno);
	r = run_to_yield(&guest, 0);
	if (!r)
		r = rls_tracee_get(tid, &guest.home);
	if (!r)
		r = check_home(&guest);
	if (r)
		return guest_leave(&guest, r);
	guest.home.orig_rax = ~0ULL;
	*out = guest;
	return 0;
}

/* The stack's end that mappings show is not always its own: with guard pages within a mapping (MADV_GUARD_INSTALL,
 * which glibc 2.42 uses) it may have others' stacks below it. */
static int find_room(const struct rls_guest *guest, uint64_t *address)
{
	struct rls_mappings mappings;
	const struct rls_mapping *stack;
	uint64_t top = guest->home.rsp;
	int r = rls_mappings_read(guest->grounds->pid, &mappings);

	if (r)
		return r;
	stack = rls_mappings_at(&mappings, top);
	if (!stack || !stack->writable || top - stack->start < 4 * TEXT_ROOM_BYTES)
		r = -EFAULT;
	else
		*address = top - stack->start > TEXT_DEPTH_BYTES ? (top - TEXT_DEPTH_BYTES) & -16ULL
								 : stack->start;
	rls_mappings_release(&mappings);
	return r;
}

/* No guard page lies in between: it is one stack. */
static int check_room(const struct rls_guest *guest, uint64_t address)
{
	uint64_t word;
	int r = 0;

	for (; !r && address < guest->home.rsp; address += PAGE_BYTES)
		r = rls_tracee_read(guest->tid, address, &word, sizeof(word));
	return r;
}

static int put_text(const struct rls_guest *guest, const char *text, uint64_t *address)
{
	int r = strlen(text) < TEXT_ROOM_BYTES ? find_room(guest, address) : -ENAMETOOLONG;

	if (!r)
		r = check_room(guest, *address);
	return r ? r : rls_tracee_write(guest->tid, *address, text, strlen(text) + 1);
}

/* The function returns into sched_yield, twice for the stack's alignment, and that to home's
 * caller: so the thread ends of itself, whatever becomes of us. */
static int begin_call(const struct rls_guest *guest, uint64_t function, uint64_t first,
		      uint64_t second)
{
	const uint64_t returns[] = {guest->grounds->sched_yield, guest->grounds->sched_yield};
	struct user_regs_struct registers = guest->home;
	int r;

	registers.rsp -= sizeof(returns);
	registers.rip = function;
	registers.rdi = first;
	registers.rsi = second;
	registers.rax = 0;
	r = rls_tracee_write(guest->tid, registers.rsp, returns, sizeof(returns));
	return r ? r : rls_tracee_set(guest->tid, &registers);
}

int rls_guest_call(struct rls_guest *guest, uint64_t function, const char *text, uint64_t first,
		   uint64_t second)
{
	int r = text ? put_text(guest, text, &first) : 0;

	if (!r)
		r = begin_call(guest, function, first, second);
	if (!r)
		r = run_to_yield(guest, guest->home.rsp - sizeof(uint64_t));
	if (!r)
		r = rls_tracee_set(guest->tid, &guest->home);
	return r ? guest_leave(guest, r) : 0;
}

uint64_t rls_guest_self(const struct rls_guest *guest)
{
	return guest->home.fs_base; /* glibc's thread descriptor, which is what pthread_t is */
}

void rls_guest_dismiss(struct rls_guest *guest)
{
	rls_tracee_release(guest->tid);
}
