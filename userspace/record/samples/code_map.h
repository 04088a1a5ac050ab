/* Code map: (process, address) → the mapped file, its role, its ELF and its names.
 *
 *     pid ─▶ mappings ─▶ mapping ─▶ file (device, inode): native file (names, frames), role
 *
 * The mappings of a process are read when an address in it is first looked up. They are read
 * again, at most every 100 ms, when code runs at an unknown address (a library was loaded since).
 * So are the names of code that the process generates. A file is opened once for all processes
 * that map it.
 *
 * Its processes are a cache, and no states of the table of targets: what is kept of one is dropped
 * whenever it maps something, and read again when a sample needs it. One thread.
 */
#ifndef RLS_CODE_MAP_H
#define RLS_CODE_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/names/native_file.h"
#include "userspace/process/mappings.h"
#include "userspace/record/probes/libraries.h"
#include "userspace/record/samples/code_kind.h"

struct rls_code_map;

/* What lies at an address. Good until anything else is asked. */
struct rls_code_place {
	uint64_t address;
	const struct rls_mapping *mapping; /* NULL: nothing, as far as is known */
	const struct rls_code_file *role; /* NULL: its file has none */
};

/* libraries: say which files have a role; borrowed, stay. NULL: none has. 0 or -ENOMEM. */
int rls_code_map_new(const struct rls_libraries *libraries, struct rls_code_map **out);
void rls_code_map_free(struct rls_code_map *map);

/* What lies at an address that was seen at time_ns. certain: something executed there, so it is mapped,
 * and if nothing is known there, mappings are read again. 0; -ENOMEM; -errno when the process cannot be
 * read, being gone. */
int rls_code_map_find(struct rls_code_map *map, pid_t pid, uint64_t time_ns, uint64_t address,
		      bool certain, struct rls_code_place *out);

/* The file at a place, opened by now, and the address in it. NULL: memory of no file, or one that cannot be
 * read; then *vaddr is the address itself. */
struct rls_native_file *rls_code_map_native(struct rls_code_map *map, pid_t pid,
					    const struct rls_code_place *place, uint64_t *vaddr);

/* What the process itself calls the function at a place in no file, having made it (perf_map.h), and where
 * that begins. NULL: nothing. */
const char *rls_code_map_compiled(struct rls_code_map *map, pid_t pid, uint64_t time_ns,
				  const struct rls_code_place *place, uint64_t *start);

/* How far a return address lies above the stack pointer at a place, as rls_elf_frame_bytes says. 0; -ENOENT
 * when it is not known. */
int rls_code_map_frame_bytes(struct rls_code_map *map, pid_t pid,
			     const struct rls_code_place *place, uint64_t *out);

/* Reads the names of what the process maps so much code of, ahead of the first question. 0; -ESRCH or
 * another -errno when it cannot be asked. */
int rls_code_map_prepare(struct rls_code_map *map, pid_t pid, uint64_t code_bytes,
			 uint64_t time_ns);

/* A forked child maps what its parent maps, and may have ended before it is asked for. 0 or -ENOMEM. */
int rls_code_map_fork(struct rls_code_map *map, pid_t parent, pid_t child, uint64_t time_ns);

/* What a process maps has changed, or it has ended; pid 0: that of any may have. map may be NULL. */
void rls_code_map_forget(struct rls_code_map *map, pid_t pid);

#endif
