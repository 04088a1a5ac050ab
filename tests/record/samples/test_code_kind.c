/* Whose code a sampled address is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/record/samples/code_kind.h"

static const char maps[] =
	"400000-500000 r-xp 00001000 08:01 11 /usr/bin/python3.11\n"
	"7f0000000000-7f0000100000 r-xp 00010000 08:01 12 /lib/libmujoco.so\n"
	"7f0000200000-7f0000300000 r-xp 00000000 08:01 13 /lib/libtorch_python.so\n"
	"7f0000400000-7f0000500000 r-xp 00000000 08:01 14 /lib/libc.so.6\n"
	"7ffff7f00000-7ffff7f01000 r-xp 00000000 00:00 0 [uprobes-trampoline]\n"
	"7fffffffe000-7ffffffff000 --xp 00000000 00:00 0 [uprobes]\n";

static const uint64_t python_sites[] = {0x9000};
static const uint64_t mujoco_sites[] = {0x10020, 0x10400};
static const uint64_t torch_sites[] = {0x40, 0x90, 0x1000};

static const struct rls_code_file python_file = {
	RLS_ROLE_PYTHON, python_sites, 1, {{{0x2000, 0x1000}, {0x6000, 0x40}}, 2}};
static const struct rls_code_file mujoco_file = {RLS_ROLE_SIMULATOR, mujoco_sites, 2, {.count = 0}};
static const struct rls_code_file torch_file = {RLS_ROLE_BACKEND, torch_sites, 3, {.count = 0}};

static const struct rls_code_file *file_of(const struct rls_mapping *mapping)
{
	if (!mapping)
		return NULL;
	if (strstr(mapping->path, "python3.11"))
		return &python_file;
	if (strstr(mapping->path, "mujoco"))
		return &mujoco_file;
	return strstr(mapping->path, "torch_python") ? &torch_file : NULL;
}

static enum rls_code_kind leaf_at(const struct rls_mappings *mappings, uint64_t address,
				  bool in_kernel)
{
	const struct rls_mapping *mapping = rls_mappings_at(mappings, address);

	return rls_code_kind_of(mapping, file_of(mapping), address, in_kernel);
}

static void test_leaf_is_whose_code_it_is(void **state)
{
	static const struct {
		uint64_t address;
		bool in_kernel;
		enum rls_code_kind leaf;
	} rows[] = {
		{0x400fff, false, RLS_CODE_INTERPRETER},
		{0x401000, false, RLS_CODE_EVALUATION}, /* file offset 0x2000 */
		{0x401fff, false, RLS_CODE_EVALUATION},
		{0x402000, false, RLS_CODE_INTERPRETER},
		{0x404fff, false, RLS_CODE_INTERPRETER},
		{0x405000, false, RLS_CODE_EVALUATION}, /* what is set aside of the loop */
		{0x40503f, false, RLS_CODE_EVALUATION},
		{0x405040, false, RLS_CODE_INTERPRETER},
		{0x408000, false, RLS_CODE_PROBE}, /* a probe in the interpreter */
		{0x7f0000000000, false, RLS_CODE_SIMULATOR},
		{0x7f0000000020, false, RLS_CODE_PROBE},
		{0x7f0000000021, false, RLS_CODE_SIMULATOR},
		{0x7f0000000021, true, RLS_CODE_PROBE}, /* the trap is one byte long */
		{0x7f0000000022, true, RLS_CODE_KERNEL},
		{0x7f0000000400, true, RLS_CODE_PROBE},
		{0x7f0000200090, false, RLS_CODE_PROBE},
		{0x7f0000200091, false, RLS_CODE_BACKEND},
		{0x7f0000201000, false, RLS_CODE_PROBE},
		{0x7f00002fffff, false, RLS_CODE_BACKEND},
		{0x7f0000400040, false,
		 RLS_CODE_OTHER}, /* no role: no site at that offset either */
		{0x7f0000400040, true, RLS_CODE_KERNEL},
		{0x7ffff7f00010, false, RLS_CODE_PROBE},
		{0x7fffffffe080, false, RLS_CODE_PROBE},
		{0x7fffffffe080, true, RLS_CODE_PROBE},
		{0x600000, false, RLS_CODE_OTHER}, /* nothing mapped */
		{0x600000, true, RLS_CODE_KERNEL},
	};
	struct rls_mappings mappings;

	assert_int_equal(rls_mappings_parse(strdup(maps), strlen(maps), &mappings), 0);
	assert_int_equal(mappings.count, 6);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum rls_code_kind leaf = leaf_at(&mappings, rows[i].address, rows[i].in_kernel);

		if (leaf != rows[i].leaf)
			fail_msg("row %zu: leaf %d, not %d", i, leaf, rows[i].leaf);
	}
	rls_mappings_release(&mappings);
}

static void test_only_libraries_with_a_role_bind_a_leaf(void **state)
{
	enum rls_category category = RLS_CATEGORY_UNKNOWN;

	assert_true(rls_code_kind_has_category(RLS_CODE_SIMULATOR, &category));
	assert_int_equal(category, RLS_CATEGORY_SIMULATOR);
	assert_true(rls_code_kind_has_category(RLS_CODE_CUDA_API, &category));
	assert_int_equal(category, RLS_CATEGORY_CUDA_API);
	assert_false(rls_code_kind_has_category(RLS_CODE_INTERPRETER, &category));
	assert_false(rls_code_kind_has_category(RLS_CODE_EVALUATION, &category));
	assert_false(rls_code_kind_has_category(RLS_CODE_KERNEL, &category));
	assert_false(rls_code_kind_has_category(RLS_CODE_PROBE, &category));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaf_is_whose_code_it_is),
		cmocka_unit_test(test_only_libraries_with_a_role_bind_a_leaf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
