/* Evaluation loop: where an interpreter evaluates Python code, with all parts of the loop.
 *
 * Compilers move cold code elsewhere. Nearly all of the loop may be such code (in Debian's CPython
 * 3.14 it is), and stripped files have no name for it. But the parts of one function jump into
 * each other, while other functions are entered at their beginning only.
 */
#ifndef RLS_EVALUATION_H
#define RLS_EVALUATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/elf/elf.h"

#define RLS_EVALUATION_PARTS_MAX 8

struct rls_evaluation {
	struct rls_elf_extent parts[RLS_EVALUATION_PARTS_MAX];
	size_t count; /* 0: no interpreter */
};

/* Of the interpreter in elf, whose loop begins at vaddr and is so long by its symbol. What
 * cannot be read has no further parts. 0 or -ENOMEM. */
int rls_evaluation_find(struct rls_elf *elf, uint64_t vaddr, uint64_t size_bytes,
			struct rls_evaluation *out);

bool rls_evaluation_holds(const struct rls_evaluation *evaluation, uint64_t vaddr);

#endif
