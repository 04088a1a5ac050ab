/* Prologues as compilers write them, and the instruction chosen in each. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "bytes_elf.h"
#include "userspace/plan/choice.h"

struct row {
	const char *text;
	uint8_t bytes[48];
	size_t length;
	int offset; /* of the site chosen; -1 for none */
	enum rls_site_class site_class;
};

#define EMULATED RLS_SITE_EMULATED
#define STEP RLS_SITE_SINGLE_STEP
#define ENDBR 0xf3, 0x0f, 0x1e, 0xfa
#define TEST_RDI 0x48, 0x85, 0xff
#define NOP5 0x0f, 0x1f, 0x44, 0x00, 0x00

static const struct row rows[] = {
	/* every entry of NVIDIA's libcuda: cmpl $imm,off(%rip); je; jmp *rip; mov; ret */
	{"cmp of memory; je",
	 {0x81, 0x3d, 0x3e, 0x93, 0x8d, 0x01, 0x00, 0xba, 0x1c, 0x32, 0x74, 0x06,
	  0xff, 0x25, 0,    1,    0,    0,    0xb8, 4,    0,    0,    0,    0xc3},
	 24,
	 10,
	 EMULATED},
	{"push first", {0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3}, 6, 0, EMULATED},
	{"endbr64; push", {ENDBR, 0x41, 0x57, 0xc3}, 7, 4, EMULATED},
	{"mov; test; push", {0x48, 0x89, 0xf0, TEST_RDI, 0x53, 0x5b, 0xc3}, 9, 6, EMULATED},
	{"endbr64; test; je", {ENDBR, TEST_RDI, 0x74, 0x01, 0xc3, 0xc3}, 11, 7, EMULATED},
	{"xor; call of what may not return", {0x31, 0xff, 0xe8, 0, 0, 0, 0}, 7, 2, EMULATED},
	{"sub rsp first: entry", {0x48, 0x83, 0xec, 0x18, 0x53, 0xc3}, 6, 0, STEP},
	{"mov; sub rsp; push", {0x48, 0x89, 0xf0, 0x48, 0x83, 0xec, 0x18, 0x53, 0xc3}, 9, 0, STEP},
	{"endbr64; sub rsp", {ENDBR, 0x48, 0x83, 0xec, 0x18, 0xc3}, 9, 4, STEP},
	{"ret ends the walk", {0x31, 0xc0, 0xc3, 0x53}, 4, 0, STEP},
	{"ret alone", {0xc3}, 1, 0, STEP},
	{"thunk: jmp", {0xe9, 0x00, 0x01, 0x00, 0x00}, 5, 0, EMULATED},
	{"thunk: add; jmp", {0x48, 0x83, 0xc7, 0x08, 0xe9, 0, 1, 0, 0}, 9, 4, EMULATED},
	{"thunk: jmp *rip", {0xff, 0x25, 0, 1, 0, 0}, 6, 0, STEP},
	{"indirect call ends it", {0x31, 0xff, 0xff, 0xd0, 0x53, 0xc3}, 6, 0, STEP},
	/* test; push; ...; jmp back to the push: the loop's head gets no probe */
	{"loop to the push", {TEST_RDI, 0x53, 0x5b, 0xeb, 0xfc}, 7, 0, STEP},
	{"loop to the entry", {TEST_RDI, 0x53, 0x5b, 0xeb, 0xf9}, 7, 3, EMULATED},
	{"loop into the stretch", {0x31, 0xc0, TEST_RDI, 0x53, 0x5b, 0xeb, 0xf9}, 9, 0, STEP},
	{"loop to behind the site", {TEST_RDI, 0x53, 0x31, 0xc0, 0xeb, 0xfc}, 8, 3, EMULATED},
	{"loop to behind endbr64", {ENDBR, TEST_RDI, 0x74, 0x02, 0xeb, 0xf9, 0xc3}, 12, 0, STEP},
	/* A call's target counts like a jump's. */
	{"call of itself", {TEST_RDI, 0x53, 0xe8, 0xf7, 0xff, 0xff, 0xff}, 9, 3, EMULATED},
	{"call to the push", {TEST_RDI, 0x53, 0xe8, 0xfa, 0xff, 0xff, 0xff}, 9, 0, STEP},
	{"nop5 gives way to push", {NOP5, 0x53, 0x5b, 0xc3}, 8, 5, EMULATED},
	{"nop5 at the entry, no better", {NOP5, 0xc3}, 6, 0, RLS_SITE_NOP5},
	/* behind a store below rsp, a nop5 must stay as it is */
	{"nop5 behind a red zone", {0x48, 0x89, 0x7c, 0x24, 0xf8, NOP5, 0xc3}, 11, 0, STEP},
	{"unprobeable first", {0xc5, 0xfe, 0x6f, 0x07, 0x53, 0x5b, 0xc3}, 7, 4, EMULATED},
	{"unprobeable, then ret", {0xc5, 0xfe, 0x6f, 0x07, 0xc3}, 5, 4, STEP},
	{"nothing probeable",
	 {0x62, 0xf1, 0xff, 0x48, 0x6f, 0x0d, 0, 0, 0, 0, 0x0f, 0x0b},
	 12,
	 -1,
	 0},
	{"not across a system call", {0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0x53, 0xc3}, 9, 0, STEP},
	{"ud2", {0x0f, 0x0b}, 2, -1, 0},
	{"push past eight instructions",
	 {0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0, 0x31,
	  0xc0, 0x53, 0xc3},
	 18,
	 0,
	 STEP},
	{"the eighth is a push",
	 {0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0, 0x53,
	  0xc3},
	 16,
	 14,
	 EMULATED},
	/* bytes that do not decode: the extent is not known well enough to walk */
	{"rubbish behind", {TEST_RDI, 0x53, 0x5b, 0xc3, 0x06}, 7, 0, STEP},
};

static int choose(const struct row *row, bool with_code, const struct rls_addresses *taken,
		  struct rls_instruction *out)
{
	struct rls_elf *elf = bytes_elf_open(row->bytes, row->length);
	uint64_t bytes_left = row->length;
	struct rls_code code;
	int err;

	assert_int_equal(rls_code_read(elf, BYTES_ELF_VADDR, row->length, &bytes_left, &code), 0);
	err = rls_choose_site(elf, with_code ? &code : NULL, BYTES_ELF_VADDR, taken, out);
	rls_code_clear(&code);
	rls_elf_close(elf);
	return err;
}

static void chooses_in_each_prologue(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct rls_instruction got;
		int err = choose(row, true, NULL, &got);

		print_message("%s\n", row->text);
		if (row->offset < 0) {
			assert_true(err < 0);
			continue;
		}
		assert_int_equal(err, 0);
		assert_int_equal(got.vaddr - BYTES_ELF_VADDR, row->offset);
		assert_string_equal(rls_site_class_name(got.site_class),
				    rls_site_class_name(row->site_class));
	}
}

/* Who jumps where is not known then, so only the first instruction is safe. */
static void does_not_walk_without_an_extent(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rls_instruction got;

		if (choose(&rows[i], false, NULL, &got) == 0)
			assert_int_equal(got.vaddr, BYTES_ELF_VADDR);
	}
}

static void leaves_taken_addresses_alone(void **state)
{
	const struct row row = {"", {TEST_RDI, 0x53, 0x5b, 0xc3}, 6, 0, 0};
	struct rls_addresses taken = {0};
	struct rls_instruction got;

	assert_int_equal(rls_addresses_add(&taken, BYTES_ELF_VADDR + 3), 0);
	assert_int_equal(choose(&row, true, &taken, &got), 0);
	assert_int_equal(got.vaddr, BYTES_ELF_VADDR);
	assert_int_equal(got.site_class, RLS_SITE_SINGLE_STEP);
	rls_addresses_clear(&taken);
}

static void fails_outside_the_file(void **state)
{
	const uint8_t push[] = {0x53, 0xc3};
	struct rls_elf *elf = bytes_elf_open(push, sizeof(push));
	struct rls_instruction got;
	uint64_t bytes_left = 8;
	struct rls_code code;

	assert_true(rls_choose_site(elf, NULL, BYTES_ELF_VADDR + 2, NULL, &got) < 0);
	assert_true(rls_choose_site(elf, NULL, UINT64_MAX - 3, NULL, &got) < 0);
	assert_true(rls_code_read(elf, BYTES_ELF_VADDR + 2, 8, &bytes_left, &code) < 0);
	/* An extent longer than the file is read as far as it goes, and not trusted. */
	assert_int_equal(rls_code_read(elf, BYTES_ELF_VADDR, UINT64_MAX, &bytes_left, &code), 0);
	assert_false(code.complete);
	rls_code_clear(&code);
	rls_elf_close(elf);
}

static void reads_no_more_code_than_is_left(void **state)
{
	const uint8_t push[] = {0x53, 0xc3};
	struct rls_elf *elf = bytes_elf_open(push, sizeof(push));
	uint64_t bytes_left = 3;
	struct rls_code code;

	assert_int_equal(rls_code_read(elf, BYTES_ELF_VADDR, 2, &bytes_left, &code), 0);
	assert_int_equal(bytes_left, 1);
	rls_code_clear(&code);
	assert_int_equal(rls_code_read(elf, BYTES_ELF_VADDR, 2, &bytes_left, &code), -EFBIG);
	assert_int_equal(bytes_left, 1);
	rls_elf_close(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chooses_in_each_prologue),
		cmocka_unit_test(does_not_walk_without_an_extent),
		cmocka_unit_test(leaves_taken_addresses_alone),
		cmocka_unit_test(fails_outside_the_file),
		cmocka_unit_test(reads_no_more_code_than_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
