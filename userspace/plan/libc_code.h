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

/* The sizes of blocks, heads included, from which on malloc goes past a rung. */
#define RLS_LIBC_RUNGS 5
extern const uint32_t rls_libc_rung_bytes[RLS_LIBC_RUNGS];

/* malloc finds the bin of a large block by comparing its size with one bound after the other:
 *
 *     cmp $0x3ff,%rbx │ jbe … │ cmp $0xc3f,%rbx │ jbe … ◀─ rung 0: 1 KiB or more │ cmp $0x29ff,%rbx │ jbe … ◀─ rung 1
 *
 * So only blocks of at least that size get there, and a register has it. Other functions do the same with other sizes. */
struct rls_libc_rung {
	struct rls_instruction instruction;
	uint8_t rung;
	uint8_t size_register; /* its number in machine code: rax 0, rcx 1, … r15 15 */
};

/* At most `room` of all that look so. Their number. */
size_t rls_libc_rungs(const struct rls_elf *elf, struct rls_libc_rung *out, size_t room);

#endif
