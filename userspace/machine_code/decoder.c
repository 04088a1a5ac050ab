#include "userspace/machine_code/decoder.h"

#include <errno.h>
#include <string.h>

#include <Zydis/Zydis.h>

enum {
	REX_B = 0x41,
	MODRM_CALL = 2, /* ff /2 and /3 (far) call, /4 and /5 (far) jump */
	MODRM_FAR_JUMP = 5,
	SEGMENT_SS = 2,
};

/* One-byte opcodes that the kernel does not probe in 64-bit code. */
static bool refuses_opcode(uint8_t opcode)
{
	switch (opcode) {
	case 0x06:
	case 0x07:
	case 0x0e:
	case 0x16:
	case 0x17:
	case 0x1e:
	case 0x1f:
	case 0x27:
	case 0x2f:
	case 0x37:
	case 0x3f: /* not in 64-bit mode */
	case 0x60:
	case 0x61:
	case 0x62:
	case 0x82:
	case 0x9a:
	case 0xea:
	case 0xd4:
	case 0xd5:
	case 0xd6:
	case 0x6c:
	case 0x6d:
	case 0x6e:
	case 0x6f: /* ins, outs */
	case 0xcc:
	case 0xcd:
	case 0xce:
	case 0xcf: /* int3, int, into, iret */
	case 0xe4:
	case 0xe5:
	case 0xe6:
	case 0xe7: /* in, out */
	case 0xec:
	case 0xed:
	case 0xee:
	case 0xef:
	case 0xf0:
	case 0xf1:
	case 0xf4:
	case 0xfa:
	case 0xfb: /* lock, int1, hlt, cli, sti */
		return true;
	default:
		return false;
	}
}

/* Opcodes behind 0f, likewise; ud0 and ud1 are ours: a trap is no place for a probe. */
static bool refuses_opcode_0f(uint8_t opcode)
{
	switch (opcode) {
	case 0x00:
	case 0x01: /* system groups */
	case 0x05:
	case 0x06:
	case 0x07:
	case 0x08:
	case 0x09: /* syscall, clts, sysret, … */
	case 0x0b:
	case 0xb9:
	case 0xff: /* ud2, ud1, ud0 */
	case 0x30:
	case 0x34:
	case 0x35:
	case 0x37: /* wrmsr, sysenter, sysexit, getsec */
	case 0x78:
	case 0x79: /* vmread, vmwrite */
	case 0xae: /* fences, fxsave, … */
		return true;
	default:
		return false;
	}
}

static bool has_prefix(const ZydisDecodedInstruction *zydis, uint8_t prefix)
{
	for (unsigned int i = 0; i < zydis->raw.prefix_count; i++)
		if (zydis->raw.prefixes[i].value == prefix)
			return true;
	return false;
}

static bool has_refused_prefix(const ZydisDecodedInstruction *zydis)
{
	static const uint8_t refused[] = {0x26, 0x2e, 0x36, 0x3e, 0xf0};

	for (size_t i = 0; i < sizeof(refused); i++)
		if (has_prefix(zydis, refused[i]))
			return true;
	return false;
}

static bool is_legacy(const ZydisDecodedInstruction *zydis, ZydisOpcodeMap map)
{
	return zydis->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && zydis->opcode_map == map;
}

static bool is_relative_branch(const ZydisDecodedInstruction *zydis)
{
	uint8_t opcode = zydis->opcode;

	if (is_legacy(zydis, ZYDIS_OPCODE_MAP_0F))
		return (opcode & 0xf0) == 0x80;
	return is_legacy(zydis, ZYDIS_OPCODE_MAP_DEFAULT) &&
	       ((opcode & 0xf0) == 0x70 || opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb);
}

static bool is_probeable(const ZydisDecodedInstruction *zydis)
{
	if (has_refused_prefix(zydis))
		return false;
	switch (zydis->encoding) {
	case ZYDIS_INSTRUCTION_ENCODING_VEX:
		return !refuses_opcode(zydis->opcode);
	case ZYDIS_INSTRUCTION_ENCODING_LEGACY:
		break;
	default:
		return false;
	}
	if (is_relative_branch(zydis))
		return !has_prefix(zydis, 0x66);
	switch (zydis->opcode_map) {
	case ZYDIS_OPCODE_MAP_DEFAULT:
		if (zydis->opcode == 0x90)
			return zydis->length == 1;
		if (zydis->opcode == 0x8e && zydis->raw.modrm.reg == SEGMENT_SS)
			return false;
		return !refuses_opcode(zydis->opcode);
	case ZYDIS_OPCODE_MAP_0F:
		return !refuses_opcode_0f(zydis->opcode);
	default:
		return true;
	}
}

static enum rls_site_class classify(const ZydisDecodedInstruction *zydis, const uint8_t *bytes)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

	if (zydis->length == sizeof(nop5) && memcmp(bytes, nop5, sizeof(nop5)) == 0)
		return RLS_SITE_NOP5;
	if (is_relative_branch(zydis))
		return RLS_SITE_EMULATED;
	if (!is_legacy(zydis, ZYDIS_OPCODE_MAP_DEFAULT))
		return RLS_SITE_SINGLE_STEP;
	if (zydis->opcode == 0x90 && zydis->length == 1)
		return RLS_SITE_EMULATED;
	if ((zydis->opcode & 0xf8) == 0x50 &&
	    (zydis->length == 1 || (zydis->length == 2 && bytes[0] == REX_B)))
		return RLS_SITE_EMULATED;
	return RLS_SITE_SINGLE_STEP;
}

static enum rls_flow flow_of_group5(const ZydisDecodedInstruction *zydis)
{
	uint8_t reg = zydis->raw.modrm.reg;

	if (reg < MODRM_CALL || reg > MODRM_FAR_JUMP)
		return RLS_FLOW_NEXT;
	return reg <= MODRM_CALL + 1 ? RLS_FLOW_CALL_INDIRECT : RLS_FLOW_JUMP_INDIRECT;
}

static enum rls_flow flow_of_one_byte(const ZydisDecodedInstruction *zydis)
{
	uint8_t opcode = zydis->opcode;

	if ((opcode & 0xf0) == 0x70)
		return RLS_FLOW_BRANCH;
	switch (opcode) {
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3:
		return RLS_FLOW_BRANCH;
	case 0xe8:
		return RLS_FLOW_CALL;
	case 0xe9:
	case 0xeb:
		return RLS_FLOW_JUMP;
	case 0xc2:
	case 0xc3:
		return RLS_FLOW_RETURN;
	case 0xff:
		return flow_of_group5(zydis);
	case 0xc6: /* c6 f8: xabort */
		return zydis->raw.modrm.reg == 7 ? RLS_FLOW_STOP : RLS_FLOW_NEXT;
	case 0xc7: /* c7 f8: xbegin */
		return zydis->raw.modrm.reg == 7 ? RLS_FLOW_BRANCH : RLS_FLOW_NEXT;
	case 0xca:
	case 0xcb:
	case 0xcc:
	case 0xcd:
	case 0xcf:
	case 0xf1:
	case 0xf4:
		return RLS_FLOW_STOP;
	default:
		return RLS_FLOW_NEXT;
	}
}

static enum rls_flow flow_of(const ZydisDecodedInstruction *zydis)
{
	if (is_legacy(zydis, ZYDIS_OPCODE_MAP_DEFAULT))
		return flow_of_one_byte(zydis);
	if (!is_legacy(zydis, ZYDIS_OPCODE_MAP_0F))
		return RLS_FLOW_NEXT;
	if ((zydis->opcode & 0xf0) == 0x80)
		return RLS_FLOW_BRANCH;
	switch (zydis->opcode) {
	case 0x05:
	case 0x07:
	case 0x0b:
	case 0x34:
	case 0x35:
	case 0xb9:
	case 0xff:
		return RLS_FLOW_STOP;
	default:
		return RLS_FLOW_NEXT;
	}
}

static uint64_t target_of(const ZydisDecodedInstruction *zydis, enum rls_flow flow, uint64_t vaddr)
{
	uint64_t next = vaddr + zydis->length;

	switch (flow) {
	case RLS_FLOW_JUMP:
	case RLS_FLOW_BRANCH:
	case RLS_FLOW_CALL:
		return next + (uint64_t)zydis->raw.imm[0].value.s;
	case RLS_FLOW_JUMP_INDIRECT:
	case RLS_FLOW_CALL_INDIRECT:
		if (zydis->raw.modrm.mod == 0 && zydis->raw.modrm.rm == 5)
			return next + (uint64_t)zydis->raw.disp.value;
		return 0;
	default:
		return 0;
	}
}

int rls_decode(const uint8_t *bytes, size_t available, uint64_t vaddr, struct rls_instruction *out)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	ZydisDecodedInstruction zydis;
	ZydisDecoder decoder;
	enum rls_flow flow;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	/* Lengths and raw fields are all that is read here; operands cost five times as much. */
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, available, &zydis)))
		return -EILSEQ;
	flow = flow_of(&zydis);
	*out = (struct rls_instruction){
		.vaddr = vaddr,
		.target = target_of(&zydis, flow, vaddr),
		.length = zydis.length,
		.flow = flow,
		.site_class = classify(&zydis, bytes),
		.probeable = is_probeable(&zydis),
		.endbr = zydis.length == sizeof(endbr64) &&
			 memcmp(bytes, endbr64, sizeof(endbr64)) == 0,
		.notrack = has_prefix(&zydis, 0x3e),
	};
	return 0;
}

static bool writes_rsp(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
	       ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand->reg.value) ==
		       ZYDIS_REGISTER_RSP;
}

/* An instruction and all that it reads and writes. */
struct full {
	ZydisDecodedInstruction zydis;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode_full(const uint8_t *bytes, size_t length, struct full *out)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(
		ZydisDecoderDecodeFull(&decoder, bytes, length, &out->zydis, out->operands));
}

static bool moves_stack(const struct full *full)
{
	for (unsigned int i = 0; i < full->zydis.operand_count; i++)
		if (writes_rsp(&full->operands[i]))
			return true;
	return false;
}

bool rls_decode_moves_stack(const uint8_t *bytes, size_t length)
{
	struct full full;

	return !decode_full(bytes, length, &full) || moves_stack(&full);
}

static bool writes_argument(const ZydisDecodedOperand *operand)
{
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return false;
	switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand->reg.value)) {
	case ZYDIS_REGISTER_RDI:
	case ZYDIS_REGISTER_RSI:
	case ZYDIS_REGISTER_RDX:
	case ZYDIS_REGISTER_RCX:
	case ZYDIS_REGISTER_R8:
	case ZYDIS_REGISTER_R9:
		return true;
	default:
		return false;
	}
}

bool rls_decode_writes_argument(const uint8_t *bytes, size_t length)
{
	struct full full;

	if (!decode_full(bytes, length, &full))
		return true;
	for (unsigned int i = 0; i < full.zydis.operand_count; i++)
		if (writes_argument(&full.operands[i]))
			return true;
	return false;
}

/* sub or add $n,%rsp */
static bool is_immediate_of_rsp(const struct full *full)
{
	const ZydisDecodedOperand *number = &full->operands[1];

	return full->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       full->operands[0].reg.value == ZYDIS_REGISTER_RSP &&
	       number->type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       number->imm.value.s > -RLS_SITE_SLOT_BYTES_MAX &&
	       number->imm.value.s < RLS_SITE_SLOT_BYTES_MAX;
}

int rls_decode_lowers_stack(const uint8_t *bytes, size_t length, int *lowered_bytes)
{
	struct full full;

	if (!decode_full(bytes, length, &full))
		return -EILSEQ;
	if (!moves_stack(&full)) {
		*lowered_bytes = 0;
		return 0;
	}
	switch (full.zydis.mnemonic) {
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_ADD:
		if (!is_immediate_of_rsp(&full))
			return -EOPNOTSUPP;
		*lowered_bytes = (int)full.operands[1].imm.value.s;
		if (full.zydis.mnemonic == ZYDIS_MNEMONIC_ADD)
			*lowered_bytes = -*lowered_bytes;
		return 0;
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_POP:
		if (full.zydis.operand_width != 64 || writes_rsp(&full.operands[0]))
			return -EOPNOTSUPP;
		*lowered_bytes = full.zydis.mnemonic == ZYDIS_MNEMONIC_PUSH ? 8 : -8;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}
