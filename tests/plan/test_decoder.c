/* One instruction: length, flow, target, site class, and whether the kernel probes it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/machine_code/decoder.h"

#define AT 0x40000000ULL

struct row {
	const char *text;
	uint8_t bytes[15];
	uint8_t length;
	enum rls_flow flow;
	enum rls_site_class site_class;
	bool probeable;
};

#define NEXT RLS_FLOW_NEXT
#define EMULATED RLS_SITE_EMULATED
#define STEP RLS_SITE_SINGLE_STEP
#define UNKNOWN INT32_MAX

static const struct row rows[] = {
	{"push %rbx", {0x53}, 1, NEXT, EMULATED, true},
	{"push %rsp", {0x54}, 1, NEXT, EMULATED, true},
	{"push %r15", {0x41, 0x57}, 2, NEXT, EMULATED, true},
	{"rex.w push %rbx", {0x48, 0x53}, 2, NEXT, STEP, true},
	{"push %bx", {0x66, 0x53}, 2, NEXT, STEP, true},
	{"push $1", {0x6a, 0x01}, 2, NEXT, STEP, true},
	{"pop %rbx", {0x5b}, 1, NEXT, STEP, true},
	{"nop", {0x90}, 1, NEXT, EMULATED, true},
	{"66 nop: refused before 6.2", {0x66, 0x90}, 2, NEXT, STEP, false},
	{"pause", {0xf3, 0x90}, 2, NEXT, STEP, false},
	{"xchg %r8,%rax: taken for a nop", {0x41, 0x90}, 2, NEXT, STEP, false},
	{"nopl (%rax)", {0x0f, 0x1f, 0x00}, 3, NEXT, STEP, true},
	{"nop5", {0x0f, 0x1f, 0x44, 0x00, 0x00}, 5, NEXT, RLS_SITE_NOP5, true},
	{"nopl 8(%rax,%rax)", {0x0f, 0x1f, 0x44, 0x00, 0x08}, 5, NEXT, STEP, true},
	{"nopw", {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}, 6, NEXT, STEP, true},
	{"cs nopw", {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, 10, NEXT, STEP, false},
	{"endbr64", {0xf3, 0x0f, 0x1e, 0xfa}, 4, NEXT, STEP, true},
	{"jmp rel8", {0xeb, 0x10}, 2, RLS_FLOW_JUMP, EMULATED, true},
	{"jmp rel32", {0xe9, 0x10, 0, 0, 0}, 5, RLS_FLOW_JUMP, EMULATED, true},
	{"bnd jmp rel32", {0xf2, 0xe9, 0x10, 0, 0, 0}, 6, RLS_FLOW_JUMP, EMULATED, true},
	{"je rel8", {0x74, 0xfe}, 2, RLS_FLOW_BRANCH, EMULATED, true},
	{"jne rel32", {0x0f, 0x85, 0, 0, 0, 0}, 6, RLS_FLOW_BRANCH, EMULATED, true},
	{"je with 66", {0x66, 0x74, 0x10}, 3, RLS_FLOW_BRANCH, EMULATED, false},
	{"call rel32", {0xe8, 0, 0, 0, 0}, 5, RLS_FLOW_CALL, EMULATED, true},
	{"call with 66", {0x66, 0xe8, 0, 0, 0, 0}, 6, RLS_FLOW_CALL, EMULATED, false},
	{"jrcxz", {0xe3, 0x10}, 2, RLS_FLOW_BRANCH, STEP, true},
	{"loop", {0xe2, 0x10}, 2, RLS_FLOW_BRANCH, STEP, true},
	{"call *%rax", {0xff, 0xd0}, 2, RLS_FLOW_CALL_INDIRECT, STEP, true},
	{"call *rip", {0xff, 0x15, 0x10, 0, 0, 0}, 6, RLS_FLOW_CALL_INDIRECT, STEP, true},
	{"jmp *rip", {0xff, 0x25, 0x10, 0, 0, 0}, 6, RLS_FLOW_JUMP_INDIRECT, STEP, true},
	{"bnd jmp *rip", {0xf2, 0xff, 0x25, 0, 0, 0, 0}, 7, RLS_FLOW_JUMP_INDIRECT, STEP, true},
	{"notrack jmp *%rax", {0x3e, 0xff, 0xe0}, 3, RLS_FLOW_JUMP_INDIRECT, STEP, false},
	{"push (%rax)", {0xff, 0x30}, 2, NEXT, STEP, true},
	{"ret", {0xc3}, 1, RLS_FLOW_RETURN, STEP, true},
	{"ret $8", {0xc2, 0x08, 0x00}, 3, RLS_FLOW_RETURN, STEP, true},
	{"rep ret", {0xf3, 0xc3}, 2, RLS_FLOW_RETURN, STEP, true},
	{"bnd ret", {0xf2, 0xc3}, 2, RLS_FLOW_RETURN, STEP, true},
	{"mov %rsp,%rbp", {0x48, 0x89, 0xe5}, 3, NEXT, STEP, true},
	{"sub $8,%rsp", {0x48, 0x83, 0xec, 0x08}, 4, NEXT, STEP, true},
	{"mov %fs:0x28,%rax", {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}, 9, NEXT, STEP, true},
	{"lock incl (%rax)", {0xf0, 0xff, 0x00}, 3, NEXT, STEP, false},
	{"mov %eax,%ss", {0x8e, 0xd0}, 2, NEXT, STEP, false},
	{"int3", {0xcc}, 1, RLS_FLOW_STOP, STEP, false},
	{"int $0x80", {0xcd, 0x80}, 2, RLS_FLOW_STOP, STEP, false},
	{"hlt", {0xf4}, 1, RLS_FLOW_STOP, STEP, false},
	{"iretq", {0x48, 0xcf}, 2, RLS_FLOW_STOP, STEP, false},
	{"in (%dx),%al", {0xec}, 1, NEXT, STEP, false},
	{"out %al,$1", {0xe6, 0x01}, 2, NEXT, STEP, false},
	{"cli", {0xfa}, 1, NEXT, STEP, false},
	{"syscall", {0x0f, 0x05}, 2, RLS_FLOW_STOP, STEP, false},
	{"xabort", {0xc6, 0xf8, 0x01}, 3, RLS_FLOW_STOP, STEP, true},
	{"xbegin", {0xc7, 0xf8, 0, 0, 0, 0}, 6, RLS_FLOW_BRANCH, STEP, true},
	{"sysretq", {0x48, 0x0f, 0x07}, 3, RLS_FLOW_STOP, STEP, false},
	{"ud2", {0x0f, 0x0b}, 2, RLS_FLOW_STOP, STEP, false},
	{"xgetbv", {0x0f, 0x01, 0xd0}, 3, NEXT, STEP, false},
	{"mfence", {0x0f, 0xae, 0xf0}, 3, NEXT, STEP, false},
	{"pxor", {0x66, 0x0f, 0xef, 0xc0}, 4, NEXT, STEP, true},
	{"pshufb", {0x66, 0x0f, 0x38, 0x00, 0xc1}, 5, NEXT, STEP, true},
	{"vmovaps", {0xc5, 0xf8, 0x28, 0xc1}, 4, NEXT, STEP, true},
	{"vmovdqu: opcode byte of outs", {0xc5, 0xfe, 0x6f, 0x07}, 4, NEXT, STEP, false},
	{"EVEX vmovdqu16", {0x62, 0xf1, 0xff, 0x48, 0x6f, 0x0d, 0, 0, 0, 0}, 10, NEXT, STEP, false},
};

static void classifies_each_instruction(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct rls_instruction got = {0};

		print_message("%s\n", row->text);
		assert_int_equal(rls_decode(row->bytes, sizeof(row->bytes), AT, &got), 0);
		assert_int_equal(got.vaddr, AT);
		assert_int_equal(got.length, row->length);
		assert_int_equal(got.flow, row->flow);
		assert_int_equal(got.probeable, row->probeable);
		assert_string_equal(rls_site_class_name(got.site_class),
				    rls_site_class_name(row->site_class));
		assert_int_equal(got.endbr, strcmp(row->text, "endbr64") == 0);
		assert_int_equal(got.notrack, strncmp(row->text, "notrack", 7) == 0);
		/* The same bytes cut one short are no instruction. */
		assert_true(rls_decode(row->bytes, row->length - 1, AT, &got) < 0 ||
			    got.length < row->length);
	}
}

static uint64_t target_of(const uint8_t *bytes, size_t length)
{
	struct rls_instruction got;

	assert_int_equal(rls_decode(bytes, length, AT, &got), 0);
	return got.target;
}

static void computes_targets(void **state)
{
	const uint8_t back[] = {0xeb, 0xfe}, far_back[] = {0x0f, 0x84, 0xfa, 0xff, 0xff, 0xff};
	const uint8_t call[] = {0xe8, 0x00, 0x01, 0x00, 0x00}, bnd[] = {0xf2, 0xe9, 1, 0, 0, 0};
	const uint8_t word[] = {0xff, 0x25, 0xf0, 0xff, 0xff, 0xff}, reg[] = {0xff, 0xe0};
	const uint8_t near_word[] = {0xff, 0x60, 0x05};

	assert_int_equal(target_of(back, sizeof(back)), AT);
	assert_int_equal(target_of(far_back, sizeof(far_back)), AT);
	assert_int_equal(target_of(call, sizeof(call)), AT + 0x105);
	assert_int_equal(target_of(bnd, sizeof(bnd)), AT + 7);
	assert_int_equal(target_of(word, sizeof(word)), AT + 6 - 16);
	assert_int_equal(target_of(reg, sizeof(reg)), 0);
	assert_int_equal(target_of(near_word, sizeof(near_word)), 0);
}

static void refuses_what_is_no_instruction(void **state)
{
	const uint8_t bad[] = {0x06, 0x00}, prefixes[15] = {0x66, 0x66, 0x66, 0x66, 0x66, 0x66};
	struct rls_instruction got = {.length = 77};

	assert_true(rls_decode(bad, sizeof(bad), AT, &got) < 0);
	assert_true(rls_decode(prefixes, 6, AT, &got) < 0);
	assert_true(rls_decode(bad, 0, AT, &got) < 0);
	assert_int_equal(got.length, 77);
}

static void knows_what_moves_the_stack(void **state)
{
	static const struct {
		const char *text;
		uint8_t bytes[8];
		size_t length;
		bool moves;
		int lowered_bytes; /* UNKNOWN: not in the instruction, or too many */
	} stack[] = {
		{"push %rbx", {0x53}, 1, true, 8},
		{"sub $8,%rsp", {0x48, 0x83, 0xec, 0x08}, 4, true, 8},
		{"lea -8(%rsp),%rsp", {0x48, 0x8d, 0x64, 0x24, 0xf8}, 5, true, UNKNOWN},
		{"mov %eax,%esp", {0x89, 0xc4}, 2, true, UNKNOWN},
		{"xchg %rsp,%rax", {0x48, 0x94}, 2, true, UNKNOWN},
		{"leave", {0xc9}, 1, true, UNKNOWN},
		{"pushf", {0x9c}, 1, true, UNKNOWN},
		{"and $-32,%rsp", {0x48, 0x83, 0xe4, 0xe0}, 4, true, UNKNOWN},
		{"add $8,%rsp", {0x48, 0x83, 0xc4, 0x08}, 4, true, -8},
		{"sub $-128,%rsp", {0x48, 0x83, 0xec, 0x80}, 4, true, -128},
		{"sub $0x418,%rsp", {0x48, 0x81, 0xec, 0x18, 0x04, 0, 0}, 7, true, 0x418},
		{"sub $0x2000,%rsp", {0x48, 0x81, 0xec, 0, 0x20, 0, 0}, 7, true, UNKNOWN},
		{"sub $8,%esp", {0x83, 0xec, 0x08}, 3, true, UNKNOWN},
		{"sub %rax,%rsp", {0x48, 0x29, 0xc4}, 3, true, UNKNOWN},
		{"push $1", {0x6a, 0x01}, 2, true, 8},
		{"pushw %bx", {0x66, 0x53}, 2, true, UNKNOWN},
		{"pop %r12", {0x41, 0x5c}, 2, true, -8},
		{"pop %rsp", {0x5c}, 1, true, UNKNOWN},
		{"add $8,%rbx", {0x48, 0x83, 0xc3, 0x08}, 4, false, 0},
		{"mov %rsp,%rbp", {0x48, 0x89, 0xe5}, 3, false, 0},
		{"mov %rdi,-8(%rsp)", {0x48, 0x89, 0x7c, 0x24, 0xf8}, 5, false, 0},
		{"lea 8(%rsp),%r10", {0x4c, 0x8d, 0x54, 0x24, 0x08}, 5, false, 0},
		{"cmp %rsp,%rax", {0x48, 0x39, 0xe0}, 3, false, 0},
		{"test %rdi,%rdi", {0x48, 0x85, 0xff}, 3, false, 0},
	};

	for (size_t i = 0; i < sizeof(stack) / sizeof(stack[0]); i++) {
		int lowered_bytes = UNKNOWN;

		print_message("%s\n", stack[i].text);
		assert_int_equal(rls_decode_moves_stack(stack[i].bytes, stack[i].length),
				 stack[i].moves);
		assert_int_equal(
			rls_decode_lowers_stack(stack[i].bytes, stack[i].length, &lowered_bytes),
			stack[i].lowered_bytes == UNKNOWN ? -EOPNOTSUPP : 0);
		assert_int_equal(lowered_bytes, stack[i].lowered_bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classifies_each_instruction),
		cmocka_unit_test(computes_targets),
		cmocka_unit_test(refuses_what_is_no_instruction),
		cmocka_unit_test(knows_what_moves_the_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
