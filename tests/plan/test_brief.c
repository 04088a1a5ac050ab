/* Small functions as compilers write them, and where each is seen to begin and to end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "bytes_elf.h"
#include "userspace/plan/brief.h"

struct row {
	const char *text;
	uint8_t bytes[64];
	size_t length;
	int entry; /* offset; -1: none of these */
	struct {
		int offset;
		uint32_t slot_bytes;
	} ways_out[RLS_BRIEF_WAYS_OUT];
	size_t way_out_count;
};

#define SUB_8 0x48, 0x83, 0xec, 0x08
#define ADD_8 0x48, 0x83, 0xc4, 0x08
#define SUB_24 0x48, 0x83, 0xec, 0x18
#define ADD_24 0x48, 0x83, 0xc4, 0x18
#define CALL 0xe8, 0, 0x10, 0, 0
#define CALL_POINTER 0xff, 0xd0
#define JMP_OUT 0xe9, 0, 0x10, 0, 0
#define TEST_AL 0x84, 0xc0
#define JE(bytes) 0x74, bytes
#define JMP(bytes) 0xeb, bytes
#define XOR_EAX 0x31, 0xc0
#define PUSH 0x53
#define POP 0x5b
#define NOP 0x90
#define RET 0xc3
#define ENDBR 0xf3, 0x0f, 0x1e, 0xfa

static const struct row rows[] = {
	{"as PyTorch's _has_torch_function_unary",
	 {SUB_8, XOR_EAX, CALL, TEST_AL, JE(7), XOR_EAX, ADD_8, RET, ADD_8, RET},
	 27,
	 6,
	 {{13, 8}},
	 1},
	{"with an endbr64",
	 {ENDBR, SUB_8, CALL, TEST_AL, JE(5), ADD_8, RET, ADD_8, RET},
	 27,
	 8,
	 {{15, 8}},
	 1},
	{"two calls",
	 {SUB_8, CALL, CALL, TEST_AL, JE(5), ADD_8, RET, ADD_8, RET},
	 28,
	 4,
	 {{16, 8}},
	 1},
	{"ends in another", {SUB_8, CALL, ADD_8, JMP_OUT}, 18, 4, {{13, 0}}, 1},
	{"on one way a second call, each with its own way out",
	 {SUB_8, CALL, JE(12), CALL, ADD_8, JMP(0), RET, JMP(1), NOP, ADD_8, RET},
	 31,
	 4,
	 {{20, 0}, {23, 8}},
	 2},
	{"more of the stack is taken after the entry",
	 {SUB_8, CALL, SUB_24, CALL, TEST_AL, JE(0), ADD_24, ADD_8, RET},
	 31,
	 4,
	 {{20, 32}},
	 1},
	{"what a way out is passed by too",
	 {SUB_8, CALL, JE(7), CALL, JE(0), JE(0), ADD_8, RET},
	 25,
	 4,
	 {{16, 8}, {18, 8}},
	 2},
	{"a call of itself",
	 {SUB_8, 0xe8, 0xf7, 0xff, 0xff, 0xff, JE(0), ADD_8, RET},
	 16,
	 4,
	 {{9, 8}},
	 1},
	{"calls nothing", {SUB_8, JE(0), JE(0), ADD_8, RET}, 13, 4, {{6, 8}}, 1},

	{"nothing cheap behind the call", {SUB_8, CALL, XOR_EAX, ADD_8, RET}, 16, -1, {{0}}, 0},
	{"nor on one of two ways",
	 {SUB_8, JE(11), CALL, JE(0), ADD_8, RET, ADD_8, RET},
	 23,
	 -1,
	 {{0}},
	 0},
	{"the jump is the entry and the way out",
	 {SUB_8, JE(5), ADD_8, RET, ADD_8, RET},
	 16,
	 -1,
	 {{0}},
	 0},
	{"deeper at the entry", {SUB_24, CALL, JE(5), ADD_24, RET, ADD_24, RET}, 21, -1, {{0}}, 0},
	{"not deeper at all", {XOR_EAX, PUSH, CALL, JE(0), POP, RET}, 12, -1, {{0}}, 0},
	{"a loop", {SUB_8, CALL, JE(0xf9), ADD_8, RET}, 16, -1, {{0}}, 0},
	{"a jump to within an instruction", {SUB_8, CALL, JE(1), ADD_8, RET}, 16, -1, {{0}}, 0},
	{"a call of its middle",
	 {SUB_8, 0xe8, 0xfb, 0xff, 0xff, 0xff, JE(0), ADD_8, RET},
	 16,
	 -1,
	 {{0}},
	 0},
	{"left by a jump while deeper", {SUB_8, CALL, JMP_OUT}, 14, -1, {{0}}, 0},
	{"left by a branch",
	 {SUB_8, CALL, ADD_8, 0x0f, 0x84, 0, 0x10, 0, 0, RET},
	 20,
	 -1,
	 {{0}},
	 0},
	{"left by a pointer", {SUB_8, CALL, ADD_8, 0xff, 0xe0}, 15, -1, {{0}}, 0},
	{"enters by a pointer",
	 {SUB_8, CALL_POINTER, TEST_AL, JE(0), ADD_8, RET},
	 15,
	 -1,
	 {{0}},
	 0},
	{"a ret while deeper", {SUB_8, CALL, JE(0), RET}, 12, -1, {{0}}, 0},
	{"not the same depth on both ways",
	 {SUB_8, CALL, JE(4), SUB_24, ADD_8, RET},
	 20,
	 -1,
	 {{0}},
	 0},
	{"runs on", {SUB_8, CALL, JE(0), ADD_8}, 15, -1, {{0}}, 0},
	{"a trap", {SUB_8, CALL, JE(5), ADD_8, RET, 0x0f, 0x0b}, 18, -1, {{0}}, 0},
	{"a system call", {SUB_8, CALL, 0x0f, 0x05, JE(0), ADD_8, RET}, 18, -1, {{0}}, 0},
	{"the stack by a register",
	 {SUB_8, CALL, 0x48, 0x29, 0xc4, JE(0), ADD_8, RET},
	 19,
	 -1,
	 {{0}},
	 0},
	{"more than was pushed", {SUB_8, CALL, JE(0), ADD_24, RET}, 16, -1, {{0}}, 0},
	{"five ways out",
	 {SUB_8, CALL, JE(26), CALL, JE(19), CALL, JE(12), CALL, JE(5), CALL, JMP(8), JMP(6),
	  JMP(4), JMP(2), JMP(0), NOP, ADD_8, RET},
	 58,
	 -1,
	 {{0}},
	 0},
};

static int find(const struct row *row, const struct rls_addresses *taken, struct rls_brief *out)
{
	struct rls_elf *elf = bytes_elf_open(row->bytes, row->length);
	uint64_t bytes_left = row->length;
	struct rls_code code;
	int err;

	assert_int_equal(rls_code_read(elf, BYTES_ELF_VADDR, row->length, &bytes_left, &code), 0);
	err = rls_brief_find(elf, &code, taken, out);
	rls_code_clear(&code);
	rls_elf_close(elf);
	return err;
}

static void sees_each_begin_and_end(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct rls_brief got = {.way_out_count = 77};

		print_message("%s\n", row->text);
		if (row->entry < 0) {
			assert_int_equal(find(row, NULL, &got), -ENOENT);
			assert_int_equal(got.way_out_count, 77);
			continue;
		}
		assert_int_equal(find(row, NULL, &got), 0);
		assert_int_equal(got.entry.vaddr - BYTES_ELF_VADDR, row->entry);
		assert_int_equal(got.entry.site_class, RLS_SITE_EMULATED);
		assert_int_equal(got.way_out_count, row->way_out_count);
		for (size_t k = 0; k < row->way_out_count; k++) {
			assert_int_equal(got.ways_out[k].vaddr - BYTES_ELF_VADDR,
					 row->ways_out[k].offset);
			assert_int_equal(got.ways_out[k].slot_bytes, row->ways_out[k].slot_bytes);
		}
	}
}

/* Callbacks have sites of their own there. */
static void leaves_taken_addresses_alone(void **state)
{
	const int offsets[] = {rows[0].entry, rows[0].ways_out[0].offset};

	for (size_t i = 0; i < 2; i++) {
		struct rls_addresses taken = {0};
		struct rls_brief got;

		assert_int_equal(rls_addresses_add(&taken, BYTES_ELF_VADDR + (uint64_t)offsets[i]),
				 0);
		assert_int_equal(find(&rows[0], &taken, &got), -ENOENT);
		taken.items[0]++;
		assert_int_equal(find(&rows[0], &taken, &got), 0);
		rls_addresses_clear(&taken);
	}
}

static void takes_no_long_ones(void **state)
{
	struct row row = {"", {SUB_8, CALL, JE(0)}, 11 + 44 + 5, 4, {{9, 8}}, 1};
	struct rls_brief got;
	size_t at = 11;

	while (at < 11 + 43)
		row.bytes[at++] = 0xf8; /* clc */
	row.bytes[at++] = 0x48;
	row.bytes[at++] = 0x83;
	row.bytes[at++] = 0xc4;
	row.bytes[at++] = 0x08;
	row.bytes[at++] = RET;
	row.length = at;
	assert_int_equal(find(&row, NULL, &got), 0); /* 48 instructions */
	assert_int_equal(got.entry.vaddr - BYTES_ELF_VADDR, 4);
	for (size_t i = at; i > 11; i--)
		row.bytes[i] = row.bytes[i - 1];
	row.length++;
	assert_int_equal(find(&row, NULL, &got), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sees_each_begin_and_end),
		cmocka_unit_test(leaves_taken_addresses_alone),
		cmocka_unit_test(takes_no_long_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
