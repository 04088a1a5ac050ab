/* Brief: small functions that are probed inside, because probes on their first instruction and on
 * their rets are expensive. Pure.
 *
 *        sub  $8,%rsp          single-stepped
 *        mov  %rsi,%rdi
 *        xor  %esi,%esi
 *        call check         <- the entry: emulated, and the return address is 8 above rsp
 *        test %al,%al
 *        je   1f            <- the way out: from here on nothing is called
 *        mov  True(%rip),%rax
 *        add  $8,%rsp
 *        ret                   single-stepped
 *     1: ...
 *
 * A return probe cannot be used there: it needs the return address at rsp. PyTorch's
 * _has_torch_function_unary is an example: it has 2 % of a training loop's hits, which had 40 % of
 * the overhead.
 *
 * The function may jump forward only. One pass then finds how deep the stack is at each
 * instruction, what is still called after it, and that each way through passes a way out.
 */
#ifndef RLS_BRIEF_H
#define RLS_BRIEF_H

#include "userspace/machine_code/code.h"

#define RLS_BRIEF_INSTRUCTIONS 48
#define RLS_BRIEF_WAYS_OUT 4

struct rls_brief {
	struct rls_instruction
		entry; /* there the return address is RLS_SITE_ENTER_SLOT_BYTES above rsp */
	struct rls_way_out ways_out[RLS_BRIEF_WAYS_OUT]; /* ascending; all emulated. No ret_vaddr */
	size_t way_out_count;
};

/* code: the extent that begins with the function. taken: as of rls_choose_site(); none of them is an
 * entry or a way out.
 *
 * 0, or -ENOENT when the function is none of these; then *out is untouched. */
int rls_brief_find(const struct rls_elf *elf, const struct rls_code *code,
		   const struct rls_addresses *taken, struct rls_brief *out);

#endif
