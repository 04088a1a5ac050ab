/* Effect: what one x86-64 instruction does to 64-bit values: which it moves where, and what it
 * overwrites. For following a pointer through a function (pointer_trace.h).
 */
#ifndef RLS_EFFECT_H
#define RLS_EFFECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of general registers, as in the encoding. */
enum { RLS_RSP = 4, RLS_RBP = 5, RLS_NO_REGISTER = 16 };

enum rls_spot_kind {
	RLS_SPOT_NONE, /* something else: not followed */
	RLS_SPOT_ZERO, /* a null pointer */
	RLS_SPOT_REGISTER, /* what base holds */
	RLS_SPOT_MEMORY, /* the word at base + index * scale + displacement */
	RLS_SPOT_ADDRESS, /* that address itself */
};

/* Where a 64-bit value is. */
struct rls_spot {
	enum rls_spot_kind kind;
	uint8_t base, index; /* RLS_NO_REGISTER: none */
	uint8_t scale;
	int64_t displacement; /* rip-relative: the address, without a base */
};

struct rls_effect {
	struct rls_spot source; /* of a 64-bit mov, cmov, lea, push or pop; of an indirect call or
	                             * jump where to. In terms of the registers before it */
	struct rls_spot target; /* where source goes, in terms of the registers after it */
	bool may_keep; /* cmov: or the target keeps what it has */
	uint16_t written; /* registers written, in whole or in part, a bit each */
	struct rls_spot stored; /* memory written, other than by push and call */
	uint16_t stored_bytes;
	bool nop; /* of any length */
	bool stack_known; /* rsp goes down by lowered_bytes, or by nothing */
	int lowered_bytes;
};

/* bytes: a whole instruction, at vaddr. A call's effect is the instruction's own, not that of what it
 * calls. 0, or -EILSEQ. */
int rls_decode_effect(const uint8_t *bytes, size_t length, uint64_t vaddr, struct rls_effect *out);

#endif
