/* Sigframe: a thread's state as the kernel's signal frame on its own stack, so that a function
 * that it is made to call returns through rt_sigreturn into exactly where it was.
 *
 *     higher  ── stack pointer ── red zone (128 bytes, not ours) ── vector state ── ucontext ──
 *             return address (the C library's rt_sigreturn)   ◀─ the call's stack pointer  lower
 *
 * Pure: bytes in, bytes out. Layout: arch/x86/include/uapi/asm/{sigcontext,ucontext}.h of Linux.
 */
#ifndef RLS_SIGFRAME_H
#define RLS_SIGFRAME_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#define RLS_SIGFRAME_BYTES_MAX 16384

struct rls_sigframe_state {
	struct user_regs_struct registers; /* stopped outside of system calls */
	uint64_t signal_mask;
	const uint8_t *vectors; /* PTRACE_GETREGSET's NT_X86_XSTATE */
	size_t vector_bytes;
};

struct rls_sigframe {
	uint64_t address; /* of bytes[0], and the stack pointer of the call */
	uint64_t scratch; /* 64 bytes that the callee may be given to write to */
	size_t length;
	uint8_t bytes[RLS_SIGFRAME_BYTES_MAX];
};

/* restorer: an address of `mov $15, %rax; syscall`. 0; -ENOTSUP: vector state that a frame of
 * this kind does not hold (AMX tiles in use), or of an unknown shape. */
int rls_sigframe_make(const struct rls_sigframe_state *state, uint64_t restorer,
		      struct rls_sigframe *out);

#endif
