/* Epilogue: where a probe on a function's end costs less than on its ret, which is single-stepped. Pure.
 *
 * With a stack protector, every way to the ret ends like this:
 *
 *     mov    %fs:0x28,%rax        or  mov 0x8(%rsp),%rax; sub %fs:0x28,%rax
 *     cmp    0x440(%rsp),%rax
 *     jne    fail                 <- probed: emulated, and passed unless the process is about to die
 *     add    $0x448,%rsp
 *     pop    %rbx ...
 *     ret
 *
 * At the check rsp is not yet at the return address; the instructions in between say how far below
 * it is. Where rsp is restored from a frame pointer (leave, lea) they do not, and the ret is probed.
 */
#ifndef RLS_EPILOGUE_H
#define RLS_EPILOGUE_H

#include "userspace/machine_code/decoder.h"

/* The instructions read so far. Zeroed: none. */
struct rls_epilogue {
	uint64_t
		check_vaddr; /* of a check that nothing but an epilogue has followed since; 0: none */
	uint32_t slot_bytes; /* how far above rsp at the check rsp is now */
	bool loaded; /* the last one read the canary into a register */
	bool compared; /* the last one compared it */
	bool over; /* it was the ret */
};

/* The next instruction, and its bytes; after a ret whose end the check tells, check_vaddr and slot_bytes are
 * of that, until the one after it. */
void rls_epilogue_read(struct rls_epilogue *epilogue, const struct rls_instruction *instruction,
		       const uint8_t *bytes);

#endif
