/* The C library's sites: where its memmove copies more than some KiB.
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

#include "userspace/plan/memory_sites.h"

#define RLS_LIBC_SITES_MAX 1

/* Zeroed: not tried yet. */
struct rls_libc_sites {
	bool tried;
	struct rls_memory_site sites[RLS_LIBC_SITES_MAX];
	size_t count;
	const char *reason; /* why some are not there; NULL: all are. Static storage */
	uint64_t copies_from; /* bytes, of the smallest copy that the site was seen at */
};

/* The sites for the C library at `path`, which opens from here, in a process: their number. *reason: why there are not
 * all, static storage; else NULL. The first call takes some 100 ms. */
size_t rls_libc_sites_of(struct rls_libc_sites *libc, const char *path, pid_t pid,
			 const struct rls_memory_site **out, const char **reason);

#endif
