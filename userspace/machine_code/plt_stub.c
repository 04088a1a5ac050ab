#include "userspace/machine_code/plt_stub.h"

#include <string.h>

enum { JUMP_BYTES = 6, BND = 0xf2, PUSH_IMM32 = 0x68, MOLD_MOV_BYTES = 6 };

static size_t endbr_before(const uint8_t *bytes, size_t at)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

	return at >= sizeof(endbr64) &&
			       memcmp(bytes + at - sizeof(endbr64), endbr64, sizeof(endbr64)) == 0
		       ? sizeof(endbr64)
		       : 0;
}

/* Stubs are aligned to 8 and look like
 *	jmp *word; push $index; jmp plt0	.plt of GNU ld, gold and lld
 *	jmp *word; xchg %ax,%ax			.plt.got
 *	endbr64; [bnd] jmp *word; nop		.plt.sec, .plt.got with CET
 *	endbr64; mov $index,%r11d; jmp *word	mold
 */
size_t rls_plt_stub_start(const uint8_t *bytes, size_t at, size_t size, uint64_t vaddr)
{
	const uint8_t *behind = bytes + at + JUMP_BYTES;
	size_t start = at, landing;

	if (start && bytes[start - 1] == BND)
		start--;
	if (start >= MOLD_MOV_BYTES && bytes[start - 6] == 0x41 && bytes[start - 5] == 0xbb)
		start -= MOLD_MOV_BYTES;
	landing = endbr_before(bytes, start);
	start -= landing;
	if ((vaddr + start) % 8)
		return SIZE_MAX;
	if (landing)
		return start;
	if (size - at < JUMP_BYTES + 2)
		return SIZE_MAX;
	if (behind[0] == PUSH_IMM32 || (behind[0] == 0x66 && behind[1] == 0x90))
		return start;
	return SIZE_MAX;
}
