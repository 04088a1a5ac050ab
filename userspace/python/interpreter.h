/* The interpreter of a process: where it is and which version. */
#ifndef RLS_INTERPRETER_H
#define RLS_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/process/mappings.h"
#include "userspace/python/python.h"

/* 0, with version "" when the process runs no Python; -errno. out->mapping points into
 * mappings. */
int rls_python_find(pid_t pid, const struct rls_mappings *mappings, struct rls_python *out);

/* "3.11.2 (main, ...) [GCC ...]" somewhere in bytes, as Py_GetVersion keeps it. */
bool rls_python_version_in(const uint8_t *bytes, size_t length, char *version, size_t size_bytes);

#endif
