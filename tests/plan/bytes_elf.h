/* An ELF file made of a few bytes of code, for tests on the bytes of a prologue. */
#ifndef TESTS_PLAN_BYTES_ELF_H
#define TESTS_PLAN_BYTES_ELF_H

#include <stddef.h>
#include <stdint.h>

#include "userspace/elf/elf.h"

/* Where the code lies. */
#define BYTES_ELF_VADDR 0x1000

/* Never NULL: fails the test instead. Close with rls_elf_close. */
struct rls_elf *bytes_elf_open(const uint8_t *code, size_t length);

#endif
