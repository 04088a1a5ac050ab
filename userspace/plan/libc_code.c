#include "userspace/plan/libc_code.h"

#include <fnmatch.h>

#include "userspace/machine_code/code.h"

/* As far as any version's memmove reaches before it copies in loops. */
#define MEMMOVE_BYTES 1280

static const char *const names[] = {"libc.so.6", "libc-2.*.so"};

bool rls_libc_library(const char *file_name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!fnmatch(names[i], file_name, 0))
			return true;
	return false;
}

size_t rls_libc_branches(const struct rls_elf *elf, uint64_t vaddr, struct rls_instruction *out,
			 size_t room)
{
	uint64_t end = vaddr + MEMMOVE_BYTES;
	struct rls_instruction instruction;
	size_t count = 0;

	while (vaddr < end && count < room && !rls_code_decode(elf, vaddr, &instruction)) {
		if (instruction.flow == RLS_FLOW_BRANCH && instruction.probeable &&
		    instruction.site_class == RLS_SITE_EMULATED)
			out[count++] = instruction;
		vaddr += instruction.length;
	}
	return count;
}
