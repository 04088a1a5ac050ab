/* Locator: addresses in living processes → the file mapped there and the address in it.
 *
 * Mappings are read at the first question, and again when an address is unknown (a library was
 * loaded since), with a minimum interval. The same holds for names of code that the process
 * makes itself. A file is opened once for all processes. One thread.
 */
#ifndef RLS_LOCATOR_H
#define RLS_LOCATOR_H

#include <stdint.h>
#include <sys/types.h>

#include "userspace/names/native_file.h"

struct rls_locator;

struct rls_location {
	struct rls_native_file *file; /* NULL: memory of no file, or one that cannot be read */
	const char *path;           /* as the target sees it; "" for memory of no file */
	uint64_t vaddr;             /* in the file; without one: the address itself */
	const char *compiled;       /* without a file: what the process itself calls the function
				     * there, having made it (perf_map.h); NULL: nothing */
};

int rls_locator_new(struct rls_locator **out);
void rls_locator_free(struct rls_locator *locator);

/* 0; -ESRCH or another -errno when the process cannot be asked; -ENOENT: nothing is mapped
 * there. *out is good until the next call. */
int rls_locator_find(struct rls_locator *locator, pid_t pid, uint64_t address, uint64_t time_ns,
		    struct rls_location *out);

/* Reads the names of what the process maps so much code of, ahead of the first question. 0; -ESRCH or another
 * -errno when it cannot be asked. */
int rls_locator_prepare(struct rls_locator *locator, pid_t pid, uint64_t code_bytes, uint64_t time_ns);

/* A forked child maps what its parent maps, and may have ended before it is asked for. 0 or
 * -ENOMEM. */
int rls_locator_fork(struct rls_locator *locator, pid_t parent, pid_t child, uint64_t time_ns);

/* What it maps has changed, or it has ended. */
void rls_locator_forget(struct rls_locator *locator, pid_t pid);

#endif
