/* Exits: the places at which a function returns, if an exception may leave it too.
 *
 * A return probe under an exception kills the target. So its ret instructions are probed, or
 * a less expensive place before them (epilogue.h).
 * A function may also end by a jump: to its own cold part, or to another function, whose
 * ret then returns to our caller; so jumps out of the extent are followed, and the rets
 * found there are exits too.
 */
#ifndef RLS_EXITS_H
#define RLS_EXITS_H

#include "userspace/machine_code/code.h"

/* Extents followed and rets taken for one function: real ones stay far below; the bounds
 * keep a dispatcher that jumps to hundreds of others from being probed all over. */
#define RLS_EXITS_EXTENTS 16
#define RLS_EXITS_RETURNS 64

struct rls_exits {
	struct rls_ways_out returns;
	struct rls_addresses jumps; /* where control is given to by jumping; sorted */
	bool complete; /* every way out ends in one of these */
};

/* code: the extent the function begins in, or NULL. bytes_left: as for rls_code_read. 0 or
 * -ENOMEM; on failure *out is untouched. Clear with rls_exits_clear(). */
int rls_exits_find(struct rls_elf *elf, const struct rls_code *code, uint64_t *bytes_left,
		   struct rls_exits *out);
void rls_exits_clear(struct rls_exits *exits);

#endif
