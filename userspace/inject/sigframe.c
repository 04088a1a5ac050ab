#include "userspace/inject/sigframe.h"

#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#define RED_ZONE_BYTES 128
#define VECTOR_ALIGNMENT 64
#define LEGACY_BYTES 512 /* FXSAVE's area */
#define MINIMUM_BYTES 576 /* with XSAVE's header */
#define SOFTWARE_OFFSET 464 /* struct _fpx_sw_bytes in it; ptrace: the mask XCR0 */
#define IN_USE_OFFSET 512 /* XSTATE_BV */
#define TILES (3ULL << 17) /* AMX: not in every task's frame */
#define COMPONENTS 63

/* ucontext.uc_flags */
#define HAS_VECTORS 1
#define HAS_SS 2
#define STRICT_SS 4

#define MAGIC_BEGIN 0x46505853u
#define MAGIC_END 0x46505845u

struct software_bytes {
	uint32_t magic, extended_bytes;
	uint64_t components;
	uint32_t bytes;
	uint32_t padding[7];
};
_Static_assert(SOFTWARE_OFFSET + sizeof(struct software_bytes) == LEGACY_BYTES, "_fpx_sw_bytes");

struct frame {
	uint64_t restorer;
	ucontext_t context;
	uint8_t scratch[64];
};

/* Up to the end of the last component, which the processor tells. */
static size_t extent(uint64_t components)
{
	size_t end = MINIMUM_BYTES;

	for (unsigned int i = 2; i < COMPONENTS; i++) {
		unsigned int size, offset, flags, unused;

		if (components & (1ULL << i) &&
		    __get_cpuid_count(0xd, i, &size, &offset, &flags, &unused) &&
		    (size_t)offset + size > end)
			end = (size_t)offset + size;
	}
	return end;
}

static uint64_t word_at(const uint8_t *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

/* As the kernel would have written them: it takes them back only if they say what they are. */
static void put_vectors(uint8_t *to, const struct rls_sigframe_state *state, uint64_t components,
			size_t bytes)
{
	const struct software_bytes software = {
		.magic = MAGIC_BEGIN,
		.extended_bytes = (uint32_t)(bytes + sizeof(uint32_t)),
		.components = components,
		.bytes = (uint32_t)bytes,
	};
	const uint32_t end = MAGIC_END;

	memcpy(to, state->vectors, bytes);
	memcpy(to + SOFTWARE_OFFSET, &software, sizeof(software));
	memcpy(to + bytes, &end, sizeof(end));
}

static void put_registers(greg_t *to, const struct user_regs_struct *from)
{
	const greg_t values[NGREG] = {
		[REG_R8] = from->r8,
		[REG_R9] = from->r9,
		[REG_R10] = from->r10,
		[REG_R11] = from->r11,
		[REG_R12] = from->r12,
		[REG_R13] = from->r13,
		[REG_R14] = from->r14,
		[REG_R15] = from->r15,
		[REG_RDI] = from->rdi,
		[REG_RSI] = from->rsi,
		[REG_RBP] = from->rbp,
		[REG_RBX] = from->rbx,
		[REG_RDX] = from->rdx,
		[REG_RAX] = from->rax,
		[REG_RCX] = from->rcx,
		[REG_RSP] = from->rsp,
		[REG_RIP] = from->rip,
		[REG_EFL] = from->eflags,
		[REG_CSGSFS] = (greg_t)((from->cs & 0xffff) | (from->ss & 0xffff) << 48),
	};

	memcpy(to, values, sizeof(values));
}

int rls_sigframe_make(const struct rls_sigframe_state *state, uint64_t restorer,
		      struct rls_sigframe *out)
{
	const uint64_t top = state->registers.rsp - RED_ZONE_BYTES;
	uint64_t components, vectors;
	struct frame frame = {.restorer = restorer};
	size_t bytes;

	if (state->vector_bytes < MINIMUM_BYTES)
		return -ENOTSUP;
	components = word_at(state->vectors, SOFTWARE_OFFSET);
	bytes = extent(components & ~TILES);
	if (word_at(state->vectors, IN_USE_OFFSET) & TILES || bytes > state->vector_bytes ||
	    bytes + sizeof(frame) + 256 > sizeof(out->bytes))
		return -ENOTSUP;

	vectors = (top - bytes - sizeof(uint32_t)) & ~(uint64_t)(VECTOR_ALIGNMENT - 1);
	out->address = ((vectors - sizeof(frame)) & ~15ULL) - 8; /* as after a call */
	out->scratch = out->address + offsetof(struct frame, scratch);
	out->length = vectors - out->address + bytes + sizeof(uint32_t);

	frame.context.uc_flags = HAS_VECTORS | HAS_SS | STRICT_SS;
	frame.context.uc_stack.ss_flags =
		-1; /* not valid: the thread's signal stack stays as it is */
	put_registers(frame.context.uc_mcontext.gregs, &state->registers);
	frame.context.uc_mcontext.fpregs = (fpregset_t)(uintptr_t)vectors;
	memcpy(&frame.context.uc_sigmask, &state->signal_mask, sizeof(state->signal_mask));

	memset(out->bytes, 0, out->length);
	memcpy(out->bytes, &frame, sizeof(frame));
	put_vectors(out->bytes + (vectors - out->address), state, components & ~TILES, bytes);
	return 0;
}
