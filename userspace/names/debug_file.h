/* Debug files: the symbols that a stripped file's distribution keeps elsewhere.
 *
 * Three ways (GDB's manual, "Separate Debug Files" and "MiniDebugInfo"): a file named by the
 * build's identity, a file named in .gnu_debuglink, and symbols packed into .gnu_debugdata.
 */
#ifndef RLS_DEBUG_FILE_H
#define RLS_DEBUG_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/elf/elf.h"

/* The debug file of elf, which the process sees at path: the process's own, else the one that
 * is installed here. Only one of the same build counts. Of it only the static symbols are good.
 * 0, -ENOENT, -ENOMEM. */
int rls_debug_file_open(const struct rls_elf *elf, pid_t pid, const char *path,
			struct rls_elf **out);

/* What is packed into elf: 0, -ENOENT (nothing), -EINVAL (broken, or unpacks to more than
 * RLS_DEBUG_DATA_BYTES_MAX), -ENOMEM. */
#define RLS_DEBUG_DATA_BYTES_MAX (64U << 20)
int rls_debug_data_open(const struct rls_elf *elf, struct rls_elf **out);

#endif
