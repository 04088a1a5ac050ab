#include "userspace/inject/moment.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>

#include "userspace/inject/tracee.h"

#define USER_CODE_64 0x33               /* CS of 64-bit programs */
#define STACK_ROOM_BYTES (64 << 10)     /* for the frame, and for making a thread */
#define LOOK_UP_BYTES (256 << 10)       /* how far up the stack is looked at */
#define CHUNK_WORDS 512

/* Linux 5.13 */
#define GET_RSEQ_CONFIGURATION 0x420f
struct rseq_configuration {
	uint64_t address;
	uint32_t size, signature, flags, padding;
};
#define RSEQ_SECTION_OFFSET 8           /* struct rseq.rseq_cs */

/* The kernel would restart the sequence if the thread went on from where it is, but not if it
 * came back by a return from a signal. */
static bool is_in_sequence(pid_t tid)
{
	struct rseq_configuration rseq = { 0 };
	uint64_t section = 0;

	if (ptrace(GET_RSEQ_CONFIGURATION, tid, sizeof(rseq), &rseq) <= 0 || !rseq.address)
		return false;
	return rls_tracee_read(tid, rseq.address + RSEQ_SECTION_OFFSET, &section, sizeof(section)) ||
	       section;
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
			if (words[i] == grounds->restorer ||
			    rls_ranges_hold(grounds->unsafe, grounds->allocator_count, words[i]))
				return true;
		}
	}
	return false;
}

bool rls_moment_is_good(pid_t tid, const struct user_regs_struct *registers,
			const struct rls_grounds *grounds, const struct rls_mappings *mappings)
{
	const struct rls_mapping *code = rls_mappings_at(mappings, registers->rip);
	const struct rls_mapping *stack = rls_mappings_at(mappings, registers->rsp);
	uint64_t end;

	if ((int64_t)registers->orig_rax >= 0 || registers->cs != USER_CODE_64)
		return false;
	if (!code || !code->executable || !strcmp(code->path, "[vdso]") ||
	    rls_ranges_hold(grounds->unsafe, grounds->unsafe_count, registers->rip))
		return false;
	if (!stack || !stack->writable || registers->rsp - stack->start < STACK_ROOM_BYTES)
		return false;
	end = stack->end - registers->rsp > LOOK_UP_BYTES ? registers->rsp + LOOK_UP_BYTES :
							    stack->end;
	return !is_in_sequence(tid) && !is_below_a_lock(tid, registers->rsp, end, grounds);
}
