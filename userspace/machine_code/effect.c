#include "userspace/machine_code/effect.h"

#include <errno.h>

#include <Zydis/Zydis.h>

#include "userspace/machine_code/decoder.h"

enum { WORD_BITS = 64 };

struct reading {
	ZydisDecodedInstruction zydis;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t next_vaddr;
};

static uint8_t number_of(ZydisRegister part)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, part);

	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return RLS_NO_REGISTER;
	return (uint8_t)(whole - ZYDIS_REGISTER_RAX);
}

static bool has_other_segment(const ZydisDecodedOperand *operand)
{
	return operand->mem.segment == ZYDIS_REGISTER_FS ||
	       operand->mem.segment == ZYDIS_REGISTER_GS;
}

static struct rls_spot spot_of_memory(const struct reading *reading,
				      const ZydisDecodedOperand *operand, enum rls_spot_kind kind)
{
	struct rls_spot spot = {
		.kind = kind,
		.base = number_of(operand->mem.base),
		.index = number_of(operand->mem.index),
		.scale = operand->mem.scale,
		.displacement = operand->mem.disp.value,
	};

	if (has_other_segment(operand) || reading->zydis.address_width != WORD_BITS)
		return (struct rls_spot){0};
	if (operand->mem.base == ZYDIS_REGISTER_RIP)
		spot.displacement += (int64_t)reading->next_vaddr;
	return spot;
}

static struct rls_spot spot_of(const struct reading *reading, const ZydisDecodedOperand *operand)
{
	struct rls_spot spot = {0};

	switch (operand->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		spot.base = number_of(operand->reg.value);
		spot.index = RLS_NO_REGISTER;
		if (spot.base != RLS_NO_REGISTER)
			spot.kind = RLS_SPOT_REGISTER;
		return spot;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		return spot_of_memory(reading, operand,
				      operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN ? RLS_SPOT_ADDRESS
										 : RLS_SPOT_MEMORY);
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		if (!operand->imm.value.u)
			spot.kind = RLS_SPOT_ZERO;
		return spot;
	default:
		return spot;
	}
}

static bool is_same_register(const struct reading *reading)
{
	const ZydisDecodedOperand *operands = reading->operands;

	return reading->zydis.operand_count_visible >= 2 &&
	       operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operands[0].reg.value == operands[1].reg.value;
}

static bool clears_register(const struct reading *reading)
{
	const ZydisDecodedInstruction *zydis = &reading->zydis;

	if (zydis->operand_width < 32 || reading->operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	if (zydis->mnemonic == ZYDIS_MNEMONIC_XOR)
		return is_same_register(reading);
	return zydis->mnemonic == ZYDIS_MNEMONIC_MOV &&
	       reading->operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       !reading->operands[1].imm.value.u;
}

static const struct rls_spot stack_top = {
	.kind = RLS_SPOT_MEMORY, .base = RLS_RSP, .index = RLS_NO_REGISTER};

static void read_move(const struct reading *reading, struct rls_effect *effect)
{
	const ZydisDecodedOperand *operands = reading->operands;

	switch (reading->zydis.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		effect->source = spot_of(reading, &operands[0]);
		effect->target = stack_top;
		return;
	case ZYDIS_MNEMONIC_POP:
		effect->source = stack_top;
		effect->target = spot_of(reading, &operands[0]);
		return;
	case ZYDIS_MNEMONIC_CALL:
	case ZYDIS_MNEMONIC_JMP:
		effect->source = spot_of(reading, &operands[0]);
		return;
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_LEA:
		break;
	default:
		if (reading->zydis.meta.category != ZYDIS_CATEGORY_CMOV)
			return;
		effect->may_keep = true;
	}
	effect->source = spot_of(reading, &operands[1]);
	effect->target = spot_of(reading, &operands[0]);
}

static bool is_stack_operation(const struct reading *reading)
{
	switch (reading->zydis.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_CALL:
	case ZYDIS_MNEMONIC_RET:
		return true;
	default:
		return false;
	}
}

static void read_writes(const struct reading *reading, struct rls_effect *effect)
{
	for (unsigned int i = 0; i < reading->zydis.operand_count; i++) {
		const ZydisDecodedOperand *operand = &reading->operands[i];

		if (!(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			uint8_t number = number_of(operand->reg.value);

			if (number != RLS_NO_REGISTER)
				effect->written |= (uint16_t)(1U << number);
		} else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
			   (!is_stack_operation(reading) || !i)) {
			effect->stored = spot_of(reading, operand);
			effect->stored_bytes = operand->size / 8;
		}
	}
}

static void read_stack(const uint8_t *bytes, size_t length, struct rls_effect *effect)
{
	effect->stack_known = !(effect->written & 1U << RLS_RSP) ||
			      rls_decode_lowers_stack(bytes, length, &effect->lowered_bytes) == 0;
}

int rls_decode_effect(const uint8_t *bytes, size_t length, uint64_t vaddr, struct rls_effect *out)
{
	struct reading reading;
	struct rls_effect effect = {0};
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, length, &reading.zydis,
						 reading.operands)))
		return -EILSEQ;
	reading.next_vaddr = vaddr + reading.zydis.length;
	effect.nop = reading.zydis.mnemonic == ZYDIS_MNEMONIC_NOP ||
		     (reading.zydis.mnemonic == ZYDIS_MNEMONIC_XCHG && is_same_register(&reading));
	if (!effect.nop)
		read_writes(&reading, &effect);
	if (reading.zydis.operand_width == WORD_BITS)
		read_move(&reading, &effect);
	if (clears_register(&reading)) {
		effect.source = (struct rls_spot){.kind = RLS_SPOT_ZERO};
		effect.target = spot_of(&reading, &reading.operands[0]);
	}
	read_stack(bytes, length, &effect);
	*out = effect;
	return 0;
}
