#include "userspace/inject/moment.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>

#include "userspace/inject/tracee.h"

#define USER_CODE_64 0x33 /* CS of 64-bit programs */
#define STACK_ROOM_BYTES (64 << 10) /* for the frame, and for making a thread */
#define SCAN_UP_BYTES (256 << 10) /* how far up the stack is looked at */
#define CHUNK_WORDS 512
#define SYSCALL_BYTES 2

/* What an interrupted system call has returned that the kernel would make anew (the kernel's
 * include/linux/errno.h). */
#define ERESTARTSYS 512
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

/* Of the kernel's frame of a signal, from its return address on (rt_sigframe). */
#define FRAME_FLAGS_WORD 1 /* ucontext.uc_flags */
#define FRAME_FLAGS_MAX 7
#define FRAME_SEGMENT_WORD 24 /* cs in the lower half */
#define FRAME_WORDS 25

/* Linux 5.13 */
#define GET_RSEQ_CONFIGURATION 0x420f
struct rseq_configuration {
	uint64_t address;
	uint32_t size, signature, flags, padding;
};
#define RSEQ_SECTION_OFFSET 8 /* struct rseq.rseq_cs */

/* The kernel would restart the sequence if the thread went on from where it is, but not if it
 * came back by a return from a signal. */
static bool is_in_sequence(pid_t tid)
{
	struct rseq_configuration rseq = {0};
	uint64_t section = 0;

	if (ptrace(GET_RSEQ_CONFIGURATION, tid, sizeof(rseq), &rseq) <= 0 || !rseq.address)
		return false;
	return rls_tracee_read(tid, rseq.address + RSEQ_SECTION_OFFSET, &section,
			       sizeof(section)) ||
	       section;
}

/* Such a return address lies about on stacks of their own too: sigaction() has it there for the
 * kernel. Only a frame goes on as the kernel writes it. */
static bool is_signal_frame(pid_t tid, uint64_t address)
{
	uint64_t words[FRAME_WORDS];

	return rls_tracee_read(tid, address, words, sizeof(words)) ||
	       (words[FRAME_FLAGS_WORD] <= FRAME_FLAGS_MAX &&
		(uint16_t)words[FRAME_SEGMENT_WORD] == USER_CODE_64);
}

/* What lies on a stack may be left over from before: then a good moment is let pass, no more. */
static bool is_below_a_lock(pid_t tid, uint64_t from, uint64_t end,
			    const struct rls_grounds *grounds)
{
	uint64_t words[CHUNK_WORDS];

	for (uint64_t at = (from + 7) & ~7ULL; at < end; at += sizeof(words)) {
		size_t bytes = end - at < sizeof(words) ? end - at : sizeof(words);

		if (rls_tracee_read(tid, at, words, bytes))
			return true;
		for (size_t i = 0; i < bytes / sizeof(words[0]); i++) {
			if (words[i] == grounds->restorer && is_signal_frame(tid, at + 8 * i))
				return true;
			if (rls_ranges_hold(grounds->unsafe, grounds->allocator_count, words[i]))
				return true;
		}
	}
	return false;
}

/* With room below, and nothing above that forbids. */
static bool is_stack_good(pid_t tid, uint64_t pointer, const struct rls_grounds *grounds,
			  const struct rls_mappings *mappings)
{
	const struct rls_mapping *stack = rls_mappings_at(mappings, pointer);
	uint64_t end;

	if (!stack || !stack->writable || pointer - stack->start < STACK_ROOM_BYTES)
		return false;
	end = stack->end - pointer > SCAN_UP_BYTES ? pointer + SCAN_UP_BYTES : stack->end;
	return !is_below_a_lock(tid, pointer, end, grounds);
}

bool rls_moment_is_good(pid_t tid, const struct user_regs_struct *registers,
			const struct rls_grounds *grounds, const struct rls_mappings *mappings)
{
	const struct rls_mapping *code = rls_mappings_at(mappings, registers->rip);

	if ((int64_t)registers->orig_rax >= 0 || registers->cs != USER_CODE_64)
		return false;
	if (!code || !code->executable || !strcmp(code->path, "[vdso]") ||
	    rls_ranges_hold(grounds->unsafe, grounds->unsafe_count, registers->rip))
		return false;
	return !is_in_sequence(tid) && is_stack_good(tid, registers->rsp, grounds, mappings);
}

/* --- sleep -------------------------------------------------------------------------------- */

/* The C library waits with FUTEX_WAIT_BITSET, whose time is an instant, for what its users wait
 * for: conditions, semaphores, threads. For its own locks, and users' mutexes, with FUTEX_WAIT. */
bool rls_moment_may_repeat(uint64_t number, const uint64_t arguments[6])
{
	switch (number) {
	case SYS_futex:
		return (arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
	case SYS_clock_nanosleep:
		return arguments[1] == TIMER_ABSTIME;
	case SYS_poll:
		return (int32_t)arguments[2] < 0;
	case SYS_select:
		return !arguments[4];
	case SYS_pselect6: /* the last would change the signal mask meanwhile */
		return !arguments[4] && !arguments[5];
	default:
		return false;
	}
}

static bool is_interrupted(const struct user_regs_struct *registers)
{
	int64_t result = (int64_t)registers->rax;

	return result == -ERESTARTSYS || result == -ERESTARTNOHAND ||
	       result == -ERESTART_RESTARTBLOCK;
}

bool rls_moment_is_sleep(pid_t tid, struct user_regs_struct *registers,
			 const struct rls_grounds *grounds, const struct rls_mappings *mappings)
{
	static const uint8_t syscall_code[SYSCALL_BYTES] = {0x0f, 0x05};
	const uint64_t arguments[6] = {registers->rdi, registers->rsi, registers->rdx,
				       registers->r10, registers->r8,  registers->r9};
	uint64_t call = registers->rip - SYSCALL_BYTES;
	uint8_t code[SYSCALL_BYTES];

	if (!is_interrupted(registers) || registers->cs != USER_CODE_64 ||
	    !rls_range_holds(&grounds->libc, call) ||
	    !rls_moment_may_repeat(registers->orig_rax, arguments))
		return false;
	if (rls_tracee_read(tid, call, code, sizeof(code)) ||
	    memcmp(code, syscall_code, sizeof(code)) || is_in_sequence(tid) ||
	    !is_stack_good(tid, registers->rsp, grounds, mappings))
		return false;
	registers->rip = call;
	registers->rax = registers->orig_rax;
	registers->orig_rax = ~0ULL;
	return true;
}
