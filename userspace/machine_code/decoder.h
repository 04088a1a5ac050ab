/* Decoder: what the planner asks about one x86-64 instruction.
 *
 * A thin layer over Zydis. The site class follows arch/x86/kernel/uprobes.c of Linux 5.15
 * to 6.18: an instruction is `emulated` only if every one of those kernels emulates it, and
 * probeable only if none of them refuses it.
 *   - emulated: 90; 50-57, alone or with REX 41; e8, e9, eb, 70-7f and 0f 80-8f without a
 *     66 prefix.
 *   - nop5: exactly 0f 1f 44 00 00. Kernels before 6.16 single-step it.
 *   - refused: a lock or cs/ds/es/ss prefix (so `notrack jmp` and the longest nops too),
 *     66-prefixed branches and nops, int3, int, hlt, in, out, cli, sti, iret, syscall,
 *     sysret, ud2, the 0f 01 and 0f ae groups, mov to ss, EVEX, and VEX encodings whose
 *     opcode byte falls among the refused ones (the kernel looks at that byte alone). Also
 *     41 90 (xchg), which the kernel takes for a nop.
 */
#ifndef RLS_DECODER_H
#define RLS_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/machine_code/site.h"

enum rls_flow {
	RLS_FLOW_NEXT, /* falls through */
	RLS_FLOW_JUMP, /* direct jmp */
	RLS_FLOW_BRANCH, /* direct and conditional: jcc, loop, jrcxz, xbegin */
	RLS_FLOW_CALL, /* direct call */
	RLS_FLOW_JUMP_INDIRECT,
	RLS_FLOW_CALL_INDIRECT,
	RLS_FLOW_RETURN, /* near ret, any prefix */
	RLS_FLOW_STOP, /* traps and system calls: what follows comes later, or never */
};

/* Whether the instruction behind it may come next. */
static inline bool rls_flow_falls_through(enum rls_flow flow)
{
	return flow == RLS_FLOW_NEXT || flow == RLS_FLOW_BRANCH || flow == RLS_FLOW_CALL ||
	       flow == RLS_FLOW_CALL_INDIRECT;
}

struct rls_instruction {
	uint64_t vaddr;
	uint64_t target; /* direct: where to; indirect through a word at a
	                             * rip-relative address: that word; else 0 */
	uint8_t length; /* bytes */
	enum rls_flow flow;
	enum rls_site_class site_class;
	bool probeable;
	bool endbr; /* endbr64 */
	bool notrack; /* of an indirect jump: compilers mark jump tables so */
};

/* Decodes the instruction at the beginning of bytes, which lies at vaddr; needs no more
 * than 15 bytes. 0, or -EILSEQ when there is none (bad or cut off). */
int rls_decode(const uint8_t *bytes, size_t available, uint64_t vaddr, struct rls_instruction *out);

/* Whether a successfully decoded instruction writes rsp, a call's own push included. */
bool rls_decode_moves_stack(const uint8_t *bytes, size_t length);

/* Whether it may write a register that has one of a function's first six integer arguments. */
bool rls_decode_writes_argument(const uint8_t *bytes, size_t length);

/* By how many bytes one that is no branch, call or ret lowers rsp; negative where it raises it. 0, -EILSEQ,
 * or -EOPNOTSUPP when that is not in the instruction (leave, and) or is RLS_SITE_SLOT_BYTES_MAX or more. */
int rls_decode_lowers_stack(const uint8_t *bytes, size_t length, int *lowered_bytes);

#endif
