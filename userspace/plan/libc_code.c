#include "userspace/plan/libc_code.h"

#include <fnmatch.h>
#include <string.h>

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

/* ---- malloc ---- */

const uint32_t rls_libc_rung_bytes[RLS_LIBC_RUNGS] = {0x400, 0xc40, 0x2a00, 0xb000, 0x28000};

#define COMPARE_BYTES_MAX 7
#define BETWEEN_BYTES_MAX 64 /* from one comparison of a ladder to the next */

/* "cmp $bound,reg" with 64 bits: its length, and the register; 0: it is something else. */
static size_t compares(const uint8_t *code, uint32_t bound, uint8_t *reg)
{
	uint32_t value;

	if (code[0] == 0x48 && code[1] == 0x3d) {
		*reg = 0;
		memcpy(&value, code + 2, sizeof(value));
		return value == bound ? 6 : 0;
	}
	if ((code[0] & 0xfe) != 0x48 || code[1] != 0x81 || (code[2] & 0xf8) != 0xf8)
		return 0;
	*reg = (uint8_t)((code[2] & 7) | (code[0] & 1) << 3);
	memcpy(&value, code + 3, sizeof(value));
	return value == bound ? 7 : 0;
}

/* A branch on unsigned less or equal, or more. */
static bool branches_on_size(const uint8_t *code)
{
	return (code[0] & 0xfe) == 0x76 || (code[0] == 0x0f && (code[1] & 0xfe) == 0x86);
}

static bool add_rung(const struct rls_elf *elf, uint64_t vaddr, uint8_t rung, uint8_t reg,
		     struct rls_libc_rung *out)
{
	if (rls_code_decode(elf, vaddr, &out->instruction) || !out->instruction.probeable)
		return false;
	out->rung = rung;
	out->size_register = reg;
	return true;
}

/* A ladder whose second comparison is at vaddr. */
static size_t add_ladder(const struct rls_elf *elf, uint64_t vaddr, const uint8_t *code,
			 size_t length, struct rls_libc_rung *out, size_t room)
{
	size_t at = 0, count = 0, bytes;
	uint8_t first, reg;

	if (!compares(code, rls_libc_rung_bytes[1] - 1, &first))
		return 0;
	for (uint8_t rung = 0; rung + 1 < RLS_LIBC_RUNGS && count < room; rung++) {
		size_t end = at + BETWEEN_BYTES_MAX;

		while (at < end && at + COMPARE_BYTES_MAX + 2 <= length) {
			bytes = compares(code + at, rls_libc_rung_bytes[rung + 1] - 1, &reg);
			if (bytes && reg == first && branches_on_size(code + at + bytes))
				break;
			at++;
		}
		if (at >= end || at + COMPARE_BYTES_MAX + 2 > length)
			break;
		at += bytes;
		if (!add_rung(elf, vaddr + at, rung, first, &out[count]))
			break;
		count++;
		/* What follows the last branch, if smaller blocks are those that branch off. */
		if (rung + 2 == RLS_LIBC_RUNGS && count < room &&
		    (code[at] == 0x76 || (code[at] == 0x0f && code[at + 1] == 0x86)))
			count += add_rung(elf, vaddr + at + out[count - 1].instruction.length,
					  rung + 1, first, &out[count]);
	}
	return count > 1 ? count : 0;
}

size_t rls_libc_rungs(const struct rls_elf *elf, struct rls_libc_rung *out, size_t room)
{
	const struct rls_elf_segment *segments;
	size_t segment_count = rls_elf_segments(elf, &segments), count = 0;

	for (size_t i = 0; i < segment_count; i++) {
		size_t length = segments[i].file_bytes;
		const uint8_t *code = segments[i].executable
					      ? rls_elf_bytes(elf, segments[i].vaddr, length)
					      : NULL;

		for (size_t at = 0; code && at + COMPARE_BYTES_MAX <= length && count < room; at++)
			if (code[at] == 0x48 || code[at] == 0x49)
				count += add_ladder(elf, segments[i].vaddr + at, code + at,
						    length - at, out + count, room - count);
	}
	return count;
}
