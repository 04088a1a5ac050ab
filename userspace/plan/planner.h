/* Planner: boundary functions of one library -> the sites to probe.
 *
 *   kind of function   sites
 *   PYTHON_CALLS       ENTER, end by return probe
 *   EXPORTED           ENTER, end by return probe when nothing can unwind it: it calls
 *                      nothing, or is CUDA's and the library cannot throw; else LEAVE_RET
 *                      at every ret of the function and of what it jumps to
 *   either of these    ENTER within it and LEAVE_RET before its rets, where both are cheap and its
 *                      first instruction is not (brief.h)
 *   CALLBACK_CALL      ENTER_CALL (python) at the call, or before it where that is cheaper
 *                      (lead_in.h); LEAVE_AFTER behind it
 *   CALLBACK_JUMP      ENTER (python) at the jump, end by return probe: there rsp is the
 *                      caller's again, and what runs is libpython, which throws nothing
 *   CALLBACK_ENTRY     ENTER (python), end by return probe
 *
 * No return probe at all in a library that may switch stacks (boundary.h says why).
 *
 * What the kernel side must do for the counts to be exact: any hit first ends the frames
 * that its rsp proves over, each with its own event, then opens its own. On that rest
 *   - call stub; mov; call stub: the second call's ENTER_CALL is the first one's exit, so
 *     no LEAVE_AFTER is planned when the walk from the first ends at the second;
 *   - RLS_EXIT_UNSEEN: the exit is late, but it is counted.
 * A LEAVE site may be hit with nothing to leave (a shared tail that was called, not jumped
 * to): it must then do nothing.
 *
 * Not seen, hence RLS_EXIT_UNSEEN: jumps through the PLT or a pointer to another function,
 * functions of unknown extent, tails beyond the bounds of exits.c.
 */
#ifndef RLS_PLANNER_H
#define RLS_PLANNER_H

#include <stddef.h>

#include "userspace/discover/roles/boundary.h"
#include "userspace/elf/elf.h"
#include "userspace/machine_code/site.h"

/* Why a boundary function has no site. */
enum rls_plan_skip {
	RLS_PLAN_NOT_CODE, /* not in a file-backed executable segment */
	RLS_PLAN_NOT_PROBEABLE, /* the kernel refuses to probe what is there */
	RLS_PLAN_SKIP_MAX,
};

struct rls_plan {
	struct rls_site *sites; /* sorted by file offset, unique; owned. Names are the
	                             * library's: it must outlive the plan */
	size_t count;
	size_t class_counts[RLS_SITE_CLASS_MAX];
	size_t skipped[RLS_PLAN_SKIP_MAX];
	size_t unseen_exits; /* ENTER and ENTER_CALL sites with RLS_EXIT_UNSEEN */
};

/* elf: the library's file. 0 or -ENOMEM; on failure *out is untouched. */
int rls_plan_library(const struct rls_library *library, struct rls_elf *elf, struct rls_plan *out);
void rls_plan_clear(struct rls_plan *plan);

/* "not in executable code", … : for the warning that goes with a count. */
const char *rls_plan_skip_text(enum rls_plan_skip skip);

#endif
