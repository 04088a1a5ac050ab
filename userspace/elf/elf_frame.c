/* The size of a frame, from the function's program in .eh_frame: DWARF 4, section 6.4.
 *
 * Of what such a program tells (where each register is kept), only the canonical frame address
 * is followed, and of that only what begins at the stack pointer: what compilers do without a
 * frame pointer, and all that can be known from the stack alone.
 */
#include <errno.h>

#include "analysis/base/search.h"
#include "userspace/elf/elf_eh_frame.h"

#define STACK_POINTER 7 /* DWARF's number of it on x86-64 */
#define REMEMBERED_MAX 8
#define STEPS_MAX 10000 /* a hostile file's program ends too */

/* With an operand in the lower six bits. */
#define OP_ADVANCE 0x40
#define OP_OFFSET 0x80
#define OP_RESTORE 0xc0

enum {
	OP_NOP = 0x00,
	OP_SET_LOCATION = 0x01,
	OP_ADVANCE1 = 0x02,
	OP_ADVANCE2 = 0x03,
	OP_ADVANCE4 = 0x04,
	OP_OFFSET_EXTENDED = 0x05,
	OP_RESTORE_EXTENDED = 0x06,
	OP_UNDEFINED = 0x07,
	OP_SAME_VALUE = 0x08,
	OP_REGISTER = 0x09,
	OP_REMEMBER_STATE = 0x0a,
	OP_RESTORE_STATE = 0x0b,
	OP_DEFINE = 0x0c,
	OP_DEFINE_REGISTER = 0x0d,
	OP_DEFINE_OFFSET = 0x0e,
	OP_DEFINE_EXPRESSION = 0x0f,
	OP_EXPRESSION = 0x10,
	OP_OFFSET_EXTENDED_SIGNED = 0x11,
	OP_DEFINE_SIGNED = 0x12,
	OP_DEFINE_OFFSET_SIGNED = 0x13,
	OP_VALUE_OFFSET = 0x14,
	OP_VALUE_OFFSET_SIGNED = 0x15,
	OP_VALUE_EXPRESSION = 0x16,
	OP_ARGUMENTS_SIZE = 0x2e,
};

struct frame {
	bool known; /* not by an expression */
	uint64_t base; /* a register */
	int64_t offset;
};

struct machine {
	const struct eh_cie *cie;
	uint64_t left; /* of the code before the address that is asked for */
	bool there; /* the code has come to that address */
	bool failed;
	struct frame frame, remembered[REMEMBERED_MAX];
	unsigned int depth;
};

static void elf_frame_advance(struct machine *machine, uint64_t units)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(units, machine->cie->code_alignment, &bytes) ||
	    bytes > machine->left)
		machine->there = true;
	else
		machine->left -= bytes;
}

static void elf_frame_record(struct machine *machine)
{
	if (machine->depth == REMEMBERED_MAX)
		machine->failed = true;
	else
		machine->remembered[machine->depth++] = machine->frame;
}

static void elf_frame_restore(struct machine *machine)
{
	if (!machine->depth)
		machine->failed = true;
	else
		machine->frame = machine->remembered[--machine->depth];
}

static int64_t take_factored(const struct machine *machine, struct reader *program)
{
	int64_t value = 0;

	if (__builtin_mul_overflow(reader_sleb128(program), machine->cie->data_alignment, &value))
		program->failed = true;
	return value;
}

/* What says where the frame begins. False: it is something else. */
static bool define(struct machine *machine, struct reader *program, uint8_t op)
{
	struct frame *frame = &machine->frame;

	switch (op) {
	case OP_DEFINE:
	case OP_DEFINE_SIGNED:
		frame->known = true;
		frame->base = reader_uleb128(program);
		frame->offset = op == OP_DEFINE ? (int64_t)reader_uleb128(program)
						: take_factored(machine, program);
		return true;
	case OP_DEFINE_REGISTER:
		frame->base = reader_uleb128(program);
		return true;
	case OP_DEFINE_OFFSET:
		frame->offset = (int64_t)reader_uleb128(program);
		return true;
	case OP_DEFINE_OFFSET_SIGNED:
		frame->offset = take_factored(machine, program);
		return true;
	case OP_DEFINE_EXPRESSION:
		frame->known = false;
		reader_take(program, reader_uleb128(program));
		return true;
	default:
		return false;
	}
}

/* What says where registers are kept. False: it is something else. */
static bool pass_over(struct reader *program, uint8_t op)
{
	switch (op) {
	case OP_NOP:
		return true;
	case OP_RESTORE_EXTENDED:
	case OP_UNDEFINED:
	case OP_SAME_VALUE:
	case OP_ARGUMENTS_SIZE:
		reader_uleb128(program);
		return true;
	case OP_OFFSET_EXTENDED:
	case OP_OFFSET_EXTENDED_SIGNED:
	case OP_REGISTER:
	case OP_VALUE_OFFSET:
	case OP_VALUE_OFFSET_SIGNED:
		reader_uleb128(program);
		reader_uleb128(program);
		return true;
	case OP_EXPRESSION:
	case OP_VALUE_EXPRESSION:
		reader_uleb128(program);
		reader_take(program, reader_uleb128(program));
		return true;
	default:
		return false;
	}
}

static void step(struct machine *machine, struct reader *program)
{
	uint8_t op = (uint8_t)reader_number(program, 1), operand = op & 0x3f;

	switch (op & 0xc0) {
	case OP_ADVANCE:
		elf_frame_advance(machine, operand);
		return;
	case OP_OFFSET:
		reader_uleb128(program);
		return;
	case OP_RESTORE:
		return;
	default:
		break;
	}
	if (op == OP_ADVANCE1 || op == OP_ADVANCE2 || op == OP_ADVANCE4)
		elf_frame_advance(machine, reader_number(program, op == OP_ADVANCE1   ? 1
								  : op == OP_ADVANCE2 ? 2
										      : 4));
	else if (op == OP_REMEMBER_STATE)
		elf_frame_record(machine);
	else if (op == OP_RESTORE_STATE)
		elf_frame_restore(machine);
	else if (!define(machine, program, op) && !pass_over(program, op))
		machine->failed = true; /* OP_SET_LOCATION, which no compiler writes, among them */
}

static void elf_frame_run(struct machine *machine, struct reader program)
{
	for (int i = 0; program.left && !machine->there && !machine->failed; i++) {
		step(machine, &program);
		machine->failed |= program.failed || i == STEPS_MAX;
	}
}

/* The last function that begins at or before the address, and its record. */
static bool elf_frame_find(const struct rls_elf *elf, uint64_t vaddr, uint64_t *function,
			   uint64_t *fde)
{
	struct elf_table table = eh_search_table(elf);
	size_t low =
		rls_first_not(table.count, i,
			      (eh_search_entry(elf, &table, i, function, fde), *function <= vaddr));

	if (low)
		eh_search_entry(elf, &table, low - 1, function, fde);
	return low;
}

int rls_elf_frame_bytes(const struct rls_elf *elf, uint64_t vaddr, uint64_t *out)
{
	struct eh_cie cie = {0};
	struct machine machine = {.cie = &cie};
	uint64_t function, record;
	struct eh_fde fde;

	if (!elf_frame_find(elf, vaddr, &function, &record) ||
	    !eh_read_fde(elf, record, &cie, &fde) || vaddr < function ||
	    vaddr - function >= fde.size_bytes || cie.signal)
		return -ENOENT;
	machine.left = UINT64_MAX;
	elf_frame_run(&machine, cie.program);
	machine.left = vaddr - function;
	elf_frame_run(&machine, fde.program);
	if (machine.failed || !machine.frame.known || machine.frame.base != STACK_POINTER ||
	    machine.frame.offset < (int64_t)sizeof(uint64_t))
		return -ENOENT;
	*out = (uint64_t)machine.frame.offset;
	return 0;
}
