/* The C library's sites: where its memmove copies more than some KiB, and where its malloc looks for a block of at
 * least so many.
 *
 *     candidates in the code (plan/libc_code.h) ─▶ trial in a child of ours (code_trial.h) ─▶ a site, or a reason
 *
 * What the trial found holds for a target's C library if that has the same code, byte for byte.
 */
#ifndef RLS_LIBC_SITES_H
#define RLS_LIBC_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/plan/libc_code.h"
#include "userspace/plan/memory_sites.h"

#define RLS_LIBC_RUNG_SITES_MAX 4 /* of one rung: compilers may have made several of one */

struct rls_libc_rung_sites {
	struct rls_memory_site sites[RLS_LIBC_RUNG_SITES_MAX];
	size_t count; /* 0: it is none to rely on */
};

/* Zeroed: not tried yet. Reasons are why there is none; NULL: there is. Static storage. */
struct rls_libc_sites {
	bool tried;
	struct rls_memory_site copies;
	const char *copies_reason;
	uint64_t copies_from; /* bytes, of the smallest copy that the site was seen at */
	struct rls_libc_rung_sites rungs[RLS_LIBC_RUNGS];
	const char *rungs_reason;
};

/* Makes the trial, which takes a tenth of a second, ahead of the first question. */
void rls_libc_sites_prepare(struct rls_libc_sites *libc);

/* Whether they hold for the C library at `path`, which opens from here, in a process: NULL, or why not, static
 * storage. The first call takes some 100 ms. */
const char *rls_libc_sites_fit(struct rls_libc_sites *libc, const char *path, pid_t pid);

#endif
