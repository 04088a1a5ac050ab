/* Sites of record_function and NVTX, in libraries made here and in real ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/annotate/foreign_ranges.h"
#include "userspace/machine_code/decoder.h"

struct found {
	size_t count, pushes, pops, emulated;
	struct rls_range_site sites[RLS_RANGE_SITES_MAX];
};

static struct found find(const char *path)
{
	struct found found = {0};
	struct rls_elf *elf;

	assert_int_equal(rls_elf_open(path, &elf), 0);
	found.count = rls_range_sites(elf, found.sites);
	for (size_t i = 0; i < found.count; i++) {
		const struct rls_range_site *site = &found.sites[i];
		struct rls_instruction instruction;

		assert_int_equal(rls_decode(rls_elf_bytes(elf, site->vaddr, 15), 15, site->vaddr,
					    &instruction),
				 0);
		assert_true(rls_elf_is_executable(elf, site->vaddr));
		found.emulated += instruction.site_class == RLS_SITE_EMULATED;
		found.pushes += site->kind != RLS_RANGE_POP;
		found.pops += site->kind == RLS_RANGE_POP;
	}
	rls_elf_close(elf);
	return found;
}

static void assert_calls_are_found(const struct found *found)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct rls_range_site *site = &found->sites[i];

		if (site->kind == RLS_RANGE_POP) {
			assert_int_equal(site->token_argument, 0);
			continue;
		}
		assert_int_equal(site->kind, RLS_RANGE_PUSH_STD_STRING);
		assert_int_equal(site->name_argument, 0);
		assert_int_equal(site->token_argument, 2);
	}
}

static void test_calls_of_the_inner_function(void **state)
{
	struct found found = find(TORCH_LIKE);

	assert_int_equal(found.pushes, 2);
	assert_int_equal(found.pops, 2);
	assert_int_equal(found.emulated, 4);
	assert_calls_are_found(&found);
}

static void test_calls_without_a_plt(void **state)
{
	struct found found = find(TORCH_NO_PLT);

	assert_int_equal(found.pushes, 2);
	assert_int_equal(found.pops, 2);
	assert_int_equal(found.emulated, 2); /* calls and jumps through a word are single-stepped */
	assert_calls_are_found(&found);
}

static void test_the_entry_where_it_is_inlined(void **state)
{
	struct found found = find(TORCH_INLINED);

	assert_int_equal(found.pushes, 1);
	assert_int_equal(found.pops, 2);
	for (size_t i = 0; i < found.count; i++) {
		assert_int_equal(found.sites[i].token_argument, RLS_RANGE_NO_ARGUMENT);
		if (found.sites[i].kind != RLS_RANGE_POP)
			assert_int_equal(found.sites[i].name_argument, 1);
	}
}

static void test_nothing_elsewhere(void **state)
{
	assert_int_equal(find("/proc/self/exe").count, 0);
	assert_int_equal(find(ANNOTATE_LIBRARY).count, 0);
}

static void test_debians_torch(void **state)
{
	static const char path[] = "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13";
	struct found found;

	if (access(path, R_OK)) {
		print_message("no %s here\n", path);
		skip();
	}
	found = find(path);
	assert_int_equal(found.pushes, 2);
	assert_int_equal(found.pops, 5);
	assert_int_equal(found.emulated, 7);
	assert_calls_are_found(&found);
}

static void test_libraries_by_name(void **state)
{
	assert_true(rls_range_library("libtorch_cpu.so"));
	assert_true(rls_range_library("libtorch_cpu.so.1.13.0"));
	assert_true(rls_range_library("libnvToolsExt.so.1"));
	assert_true(rls_range_library("libnvToolsExt-847d78f2.so.1"));
	assert_false(rls_range_library("libtorch_python.so"));
}

static void test_names_of_the_frameworks(void **state)
{
	assert_true(rls_range_is_library_own("Optimizer.step#Adam.step"));
	assert_true(rls_range_is_library_own("ProfilerStep#3"));
	assert_false(rls_range_is_library_own("Optimizer"));
	assert_false(rls_range_is_library_own("backpropagation"));
	assert_false(rls_range_is_library_own(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_of_the_inner_function),
		cmocka_unit_test(test_calls_without_a_plt),
		cmocka_unit_test(test_the_entry_where_it_is_inlined),
		cmocka_unit_test(test_nothing_elsewhere),
		cmocka_unit_test(test_debians_torch),
		cmocka_unit_test(test_libraries_by_name),
		cmocka_unit_test(test_names_of_the_frameworks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
