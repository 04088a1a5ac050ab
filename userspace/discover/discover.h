/* Discovery: pid -> the libraries with a role and the functions Python calls in them.
 *
 *     rls_discover_process        everything, once: 0.2 s for a PyTorch process
 *     rls_discover_new_libraries  after each mmap: what has been mapped since; about 1 ms
 *                                 when nothing has
 *     rls_discover_again          a little later: modules fill their tables after they are
 *                                 mapped, so the whole process's memory is read again
 *
 * Sources of functions, merged per library: exported symbols, PyMethodDef tables, types'
 * slots and getters, vectorcall functions, calls out into Python. Method tables and types
 * are read from the file (relocated as the loader would) and from live memory.
 *
 * The interpreter has no functions of its own, but for one: when a library that is taken
 * calls Python in ways that leave no call to probe (callbacks.h), its evaluation loop.
 */
#ifndef RLS_DISCOVER_H
#define RLS_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/discover/process_image.h"
#include "userspace/discover/roles/roles.h"
#include "userspace/process/mappings.h"

/* 0; -ESRCH: no such process; -EPERM, -EACCES: not allowed to read it; -errno. A process
 * without Python, or without any library, is no error: look at the image. */
int rls_discover_process(pid_t pid, const struct rls_roles *roles, struct rls_process_image **out);

/* What the file of one mapping alone says, whose process has ended: exports, method tables and, where python is known,
 * slots, as the loader leaves them. pid: a process that finds the file by the mapping's path. python: what the process
 * ran, or NULL. 0 or as above; a file without a role leaves the image without libraries. */
int rls_discover_mapping(pid_t pid, const struct rls_mapping *mapping,
			 const struct rls_python *python, const struct rls_roles *roles,
			 struct rls_process_image **out);

/* Adds what has been mapped since the image was last brought up to date: the libraries from
 * *first_new on are new. Of the process's memory only their own data is read. 0 or as above. */
int rls_discover_new_libraries(struct rls_process_image *image, const struct rls_roles *roles,
			       size_t *first_new);

/* Reads the whole process's memory again for the libraries in the image. *added is the
 * caller's to free and holds a library for each that has functions it did not have before,
 * with those alone; the image gets them too (names stay where they are, arrays move).
 * 0 or as above; on failure the image has at most gained functions. */
int rls_discover_again(struct rls_process_image *image, const struct rls_roles *roles,
		       struct rls_process_image **added);

/* Whether modules have been imported since all of its memory was last read; true where that
 * is unknown. Reads three words of the process. */
bool rls_discover_imported(const struct rls_process_image *image);

/* The sentence for a failed rls_discover_process, on stderr. Returns error. */
int rls_discover_explain(pid_t pid, int error);

#endif
