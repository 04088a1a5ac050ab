/* Places: addresses in living processes → the file mapped there and the address in it.
 *
 * Mappings are read when an address is first asked for and again when one is not known (a
 * library was loaded since), at most every so often. Files are opened once, whoever maps
 * them. One thread.
 */
#ifndef RLS_PLACES_H
#define RLS_PLACES_H

#include <stdint.h>
#include <sys/types.h>

#include "userspace/names/native_file.h"

struct rls_places;

struct rls_place {
	struct rls_native_file *file; /* NULL: memory of no file, or one that cannot be read */
	const char *path;           /* as the target sees it; "" for memory of no file */
	uint64_t vaddr;             /* in the file; without one: the address itself */
};

int rls_places_new(struct rls_places **out);
void rls_places_free(struct rls_places *places);

/* 0; -ESRCH or another -errno when the process cannot be asked; -ENOENT: nothing is mapped
 * there. *out is good until the next call. */
int rls_places_find(struct rls_places *places, pid_t pid, uint64_t address, uint64_t time_ns,
		    struct rls_place *out);

/* What it maps has changed, or it has ended. */
void rls_places_forget(struct rls_places *places, pid_t pid);

#endif
