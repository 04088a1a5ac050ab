/* The C library's code: candidates for sites inside two of its functions that have no symbols. Which of them is the
 * right one, only an experiment shows (record/memory/libc_sites.h).
 */
#ifndef RLS_LIBC_CODE_H
#define RLS_LIBC_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/elf/elf.h"
#include "userspace/machine_code/decoder.h"

/* Whether a file of this name is one. The name is without folders. */
bool rls_libc_library(const char *file_name);

/* The conditional branches after vaddr, where memmove begins, that the kernel emulates: at most `room`. Their number. */
size_t rls_libc_branches(const struct rls_elf *elf, uint64_t vaddr, struct rls_instruction *out,
			 size_t room);

#endif
