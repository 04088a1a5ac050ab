/* Code trial: runs code in a child of ours with breakpoints at some instructions, and reports which are executed.
 *
 *     we ──fork──▶ child: does step 0, 1, 2, …
 *      ◀──ptrace── stops at each breakpoint: site, step, registers
 *
 * Nobody else's memory is touched: the child has its own copy of the pages that breakpoints are written to.
 */
#ifndef RLS_CODE_TRIAL_H
#define RLS_CODE_TRIAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#define RLS_TRIAL_SITES_MAX 128
#define RLS_TRIAL_HITS_MAX 20000
/* A site that is hit so often in one step is in a loop: it has no breakpoint from then on. */
#define RLS_TRIAL_REPEATS 4

struct rls_code_trial {
	const uint64_t *sites; /* addresses in this process, of instructions */
	size_t site_count;
	size_t steps;
	/* In the child, in this order. Values of its own are not seen here. */
	void (*act)(size_t step);
	/* Here: the child is about to execute a site's instruction. */
	void (*hit)(void *context, size_t site, size_t step,
		    const struct user_regs_struct *registers);
	void *context;
};

/* Waits for the child's end, some seconds at most. 0; -EINVAL: too many sites; -ECHILD: the child did not end as it
 * should; -errno. */
int rls_code_trial_run(const struct rls_code_trial *trial);

#endif
