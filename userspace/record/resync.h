/* Catch up: after records were lost on the control ring, looks up what they told.
 *
 *     a process tracked by the kernel side but not followed      ─▶ found
 *     a process followed, not tracked and gone; a thread gone    ─▶ its end, late
 *
 * Operations and threads' beginnings are sent again by the kernel side itself. What a lost
 * exec changed is seen when the new program maps its libraries. The call after one that met a loss looks
 * once more. Costs nothing, but for one look at a counter, while nothing is lost.
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
