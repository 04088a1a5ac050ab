#include "userspace/machine_code/epilogue.h"

#include <string.h>

enum {
	REX_W = 0x48,
	/* reg, r/m; the destination is the first */
	SUB = 0x2b,
	XOR = 0x33,
	CMP = 0x3b,
	MOV = 0x8b,
	CMP_TO_MEMORY = 0x39,
	MODRM_MODE = 0xc0,
	MODRM_REGISTERS = 0xc0,
};

/* Of an instruction that reads the canary, %fs:0x28, into a register or compares it with one. */
static bool reads_canary(const uint8_t *bytes, size_t length, uint8_t *opcode)
{
	static const uint8_t address[] = {0x25, 0x28, 0x00, 0x00, 0x00};

	if (length != 9 || bytes[0] != 0x64 || (bytes[1] & 0xfb) != REX_W ||
	    (bytes[3] & 0xc7) != 0x04 || memcmp(bytes + 4, address, sizeof(address)) != 0)
		return false;
	*opcode = bytes[2];
	return true;
}

static bool compares_memory(const uint8_t *bytes, size_t length)
{
	return length >= 4 && (bytes[0] & 0xf8) == REX_W &&
	       (bytes[1] == CMP || bytes[1] == CMP_TO_MEMORY) &&
	       (bytes[2] & MODRM_MODE) != MODRM_REGISTERS;
}

static bool jumps_if_unequal(const uint8_t *bytes, size_t length)
{
	return (length == 2 && bytes[0] == 0x75) ||
	       (length == 6 && bytes[0] == 0x0f && bytes[1] == 0x85);
}

static void find_check(struct rls_epilogue *epilogue, const struct rls_instruction *instruction,
		       const uint8_t *bytes)
{
	const struct rls_epilogue before = *epilogue;
	uint8_t opcode = 0;

	*epilogue = (struct rls_epilogue){0};
	if (reads_canary(bytes, instruction->length, &opcode)) {
		epilogue->loaded = opcode == MOV;
		epilogue->compared = opcode == SUB || opcode == XOR || opcode == CMP;
	} else if (before.loaded) {
		epilogue->compared = compares_memory(bytes, instruction->length);
	} else if (before.compared && instruction->probeable &&
		   jumps_if_unequal(bytes, instruction->length)) {
		epilogue->check_vaddr = instruction->vaddr;
	}
}

/* Whether it belongs to an epilogue, on the way from the check to the ret. */
static bool epilogue_follow(struct rls_epilogue *epilogue,
			    const struct rls_instruction *instruction, const uint8_t *bytes)
{
	int lowered_bytes;

	if (instruction->flow == RLS_FLOW_RETURN)
		return epilogue->slot_bytes % 8 == 0;
	if (instruction->flow != RLS_FLOW_NEXT ||
	    rls_decode_lowers_stack(bytes, instruction->length, &lowered_bytes) < 0 ||
	    lowered_bytes > 0)
		return false;
	epilogue->slot_bytes += (uint32_t)-lowered_bytes;
	return epilogue->slot_bytes < RLS_SITE_SLOT_BYTES_MAX;
}

void rls_epilogue_read(struct rls_epilogue *epilogue, const struct rls_instruction *instruction,
		       const uint8_t *bytes)
{
	if (!epilogue->check_vaddr || epilogue->over)
		find_check(epilogue, instruction, bytes);
	else if (!epilogue_follow(epilogue, instruction, bytes))
		*epilogue = (struct rls_epilogue){0};
	else
		epilogue->over = instruction->flow == RLS_FLOW_RETURN;
}
