/* Places: what code lies at an address of a process, by what it maps and what is probed.
 *
 * Mappings are read once and again when something unknown is met; files with a role are opened
 * once. One thread.
 */
#ifndef RLS_CODE_MAP_H
#define RLS_CODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/binary/elf.h"
#include "userspace/record/samples/code_kind.h"
#include "userspace/record/probes/libraries.h"

struct rls_probed_file;

/* A file with a role that was seen executing. */
struct rls_place_file {
	const struct rls_probed_file *probed;
	char *name;                 /* of its path, for people */
	struct rls_elf *elf;        /* NULL when it cannot be read */
	struct rls_leaf_file leaf;
};

/* Both NULL where nothing is known. Good until anything else is asked. */
struct rls_place {
	const struct rls_mapping *mapping;
	struct rls_place_file *file;    /* NULL: it has no role */
};

struct rls_places;

int rls_places_new(const struct rls_libraries *libraries, struct rls_places **out);
void rls_places_free(struct rls_places *places);

/* What a process maps has changed (or it has ended); 0: that of any may have. places may be
 * NULL. */
void rls_places_forget(struct rls_places *places, pid_t pid);

/* The place of an address seen at time_ns. certain: something executed there, so it is mapped,
 * and if we know nothing of it, that is looked up again. 0; -ENOMEM; -errno when the process
 * cannot be read, being gone. */
int rls_places_find(struct rls_places *places, pid_t pid, uint64_t time_ns, uint64_t address,
		    bool certain, struct rls_place *out);

/* How far a return address lies above the stack pointer at an address of that place, as
 * rls_elf_frame_bytes says. 0; -ENOENT when it is not known; -ENOMEM. */
int rls_places_frame_bytes(struct rls_places *places, pid_t pid, const struct rls_place *place,
			   uint64_t address, uint64_t *out);

#endif
