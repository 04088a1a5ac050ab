/* Guards against files that are cut short while they are mapped. */
#ifndef RLS_ELF_GUARD_H
#define RLS_ELF_GUARD_H

#include <stddef.h>

/* Reads of a mapping whose file somebody cuts short end in SIGBUS. A guarded mapping reads
 * as zeros there instead. Returns a slot for elf_guard_remove, -1 when all are taken. */
int elf_guard_add(const void *address, size_t size_bytes);
void elf_guard_remove(int slot);

#endif
