/* Resync: after records were lost on the control ring, finds in /proc what they said.
 *
 *     a process tracked by the kernel side but not followed      ─▶ found
 *     a process followed, not tracked and gone; a thread gone    ─▶ its end, late
 *
 * The kernel side itself sends operations and beginnings of threads again. A lost exec is detected
 * when the new program maps its libraries. The call after one that met a loss checks once more.
 * While nothing is lost this costs only the check of a counter.
 */
#ifndef RLS_RESYNC_H
#define RLS_RESYNC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/events/translate.h"
#include "userspace/record/targets/target_table.h"

struct rls_catch_up {
	struct rls_kernel *kernel; /* all borrowed */
	struct rls_translator *translator;
	const struct rls_targets *followed;
	uint64_t lost; /* control records, when last caught up */
	bool again; /* whose end was lost a moment ago may still have been there */
};

/* Calls found for each process missed. Reads the rings. 0 or -errno. */
int rls_catch_up(struct rls_catch_up *catch_up, void (*found)(void *context, pid_t pid),
		 void *context);

#endif
