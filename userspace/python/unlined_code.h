/* Unlined code: which line the instructions have that CPython's compiler gave none. Pure.
 *
 *     for i in range(n):          the `if` jumps, when false, to the loop's jump back. In 3.10
 *         odd += 1                and 3.11 that has no line. It runs n times, and threads hand
 *         if i == n - 1:          the GIL over there, so up to half of the samples meet it.
 *             write("end")        The instruction before it belongs to `write`, which runs once.
 *
 * The line is that of the nearest jump into the range. 3.12 gives such an instruction the same
 * line. A range that nothing jumps to has the line of the instruction before it.
 *
 * Jumps: Doc/library/dis.rst and Include/opcode.h of CPython 3.10 and 3.11. Later versions leave
 * without a line only what follows an instruction with one.
 */
#ifndef RLS_UNLINED_CODE_H
#define RLS_UNLINED_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/base/grow.h"
#include "userspace/python/line_table.h"

/* The bytecode as it lies in memory, of Python 3.minor. */
struct rls_bytecode {
	unsigned int minor;
	const uint8_t *code;
	size_t bytes;
};

/* The ranges without a line, ascending, each with the line that it is to have (0: still none). */
struct rls_unlined {
	struct rls_line_range *items;
	size_t count, capacity;
};

/* Never reads beyond code or table, whatever they hold. *out is to be released. 0 or -ENOMEM. */
int rls_unlined_read(const struct rls_bytecode *bytecode, struct rls_line_cursor lines,
		     struct rls_unlined *out);
void rls_unlined_release(struct rls_unlined *unlined);
/* Line of the instruction at byte offset `at`, 0: it is in no such range, or has none. */
int32_t rls_unlined_line(const struct rls_unlined *unlined, uint32_t at);

#endif
