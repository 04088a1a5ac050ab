/* Choice: the least expensive safe instruction to probe, from a given one onwards.
 *
 * A probe costs 13 times as much on a single-stepped instruction as on an emulated one
 * (decoder.h), so the walk goes on from `start` over instructions that neither move rsp
 * nor branch, to the first emulated one: there rsp, and for an entry the arguments' place
 * on the stack, are still what they were at `start`. It is taken only if no direct jump of
 * the extent lands behind `start` and up to it, since such a jump (a loop's head) would
 * hit the probe without passing `start`.
 *
 * Targets of jump tables are not known; none can lie in the stretch, which ends at the
 * first branch and so before any table's jump, unless a switch inside a loop jumps back to
 * the function's first instructions, which no compiler was seen to do.
 */
#ifndef RLS_CHOICE_H
#define RLS_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "userspace/machine_code/code.h"

/* How far the walk may go. */
#define RLS_CHOICE_INSTRUCTIONS 8
#define RLS_CHOICE_BYTES 32

/* code: the extent that holds start, or NULL when unknown; then it is the instruction at
 * start or none. taken: addresses that must not be chosen, sorted, or NULL; the walk ends
 * at the first of them.
 *
 * 0; -ENOENT when nothing there can be probed; -EFAULT or -EILSEQ as rls_code_decode. */
int rls_choose_site(const struct rls_elf *elf, const struct rls_code *code, uint64_t start,
		    const struct rls_addresses *taken, struct rls_instruction *out);

/* Whether the instructions of [from, to) leave the registers of arguments as they are: a probe at to sees them as one at
 * from would. false too if one cannot be decoded. */
bool rls_choice_keeps_arguments(const struct rls_elf *elf, uint64_t from, uint64_t to);

#endif
