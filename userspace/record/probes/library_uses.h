/* Library uses: the libraries with a role that one process maps, for the trace and the kernel side.
 *
 *     uses ─┬─▶ LIBRARY events, again when a file has more sites
 *           └─▶ ranges of code, by which the kernel side knows where a stack leads
 *
 * One thread.
 */
#ifndef RLS_LIBRARY_USES_H
#define RLS_LIBRARY_USES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/process/mappings.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/probes/probed_files.h"

/* Zeroed: none. */
struct rls_library_uses {
	struct rls_library_use {
		const struct rls_probed_file *file; /* borrowed, stays */
		char *path; /* owned */
		uint64_t code_start, code_end; /* both 0: not known */
		size_t reported_sites; /* of the last LIBRARY event */
		bool reported;
	} * items;
	size_t count, room;
};

void rls_library_uses_clear(struct rls_library_uses *uses);
/* The process maps the file, as path in its mappings. Each file is there once. 0 or -ENOMEM. */
int rls_library_uses_add(struct rls_library_uses *uses, const struct rls_probed_file *file,
			 const char *path, const struct rls_mappings *mappings);
/* A forked child maps what its parent maps; nothing of it is reported yet. 0 or -ENOMEM. */
int rls_library_uses_copy(struct rls_library_uses *to, const struct rls_library_uses *from);
/* Libraries with a role other than python. */
size_t rls_library_uses_count(const struct rls_library_uses *uses);

/* Events of those that are new, or have other sites than when they were reported. 0 or -errno. */
int rls_library_uses_report(struct rls_library_uses *uses, struct rls_event_output *output,
			    pid_t pid, uint64_t now_ns);
/* 0 or -errno. */
int rls_library_uses_set_ranges(const struct rls_library_uses *uses, struct rls_kernel *kernel,
				pid_t pid);

#endif
