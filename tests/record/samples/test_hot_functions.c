/* Sampled addresses of this very program find their functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/record/samples/hot_functions.h"

static const char first[] = "rls_hot_functions_add", second[] = "rls_hot_functions_sort";

static void test_addresses_gather_into_functions(void **state)
{
	struct rls_hot_function *functions = NULL;
	struct rls_elf_symbol a, b;
	struct rls_elf *elf;
	uint64_t vaddrs[7];
	size_t count = 0;

	assert_int_equal(rls_elf_open("/proc/self/exe", &elf), 0);
	assert_int_equal(rls_elf_find_symbol(elf, first, &a), 0);
	assert_int_equal(rls_elf_find_symbol(elf, second, &b), 0);
	assert_true(a.size_bytes > 8 && b.size_bytes > 4);
	vaddrs[0] = b.vaddr + b.size_bytes - 1;
	vaddrs[1] = a.vaddr;
	vaddrs[2] = a.vaddr + a.size_bytes - 1;
	vaddrs[3] = b.vaddr;
	vaddrs[4] = a.vaddr + 3;
	vaddrs[5] = 0x10; /* the ELF header: nobody's */
	vaddrs[6] = a.vaddr;
	assert_int_equal(rls_hot_functions_add(elf, "self", vaddrs, 7, &functions, &count), 0);
	assert_int_equal(count, 3);
	rls_hot_functions_sort(functions, count);
	assert_string_equal(functions[0].name, first);
	assert_int_equal(functions[0].samples, 4);
	assert_int_equal(functions[0].vaddr, a.vaddr);
	assert_string_equal(functions[1].name, second);
	assert_int_equal(functions[1].samples, 2);
	assert_null(functions[2].name);
	assert_int_equal(functions[2].vaddr, 0x10);

	/* Those of a second file come behind; no address adds nothing. */
	assert_int_equal(rls_hot_functions_add(elf, "again", vaddrs, 1, &functions, &count), 0);
	assert_int_equal(count, 4);
	assert_string_equal(functions[3].file, "again");
	assert_int_equal(rls_hot_functions_add(NULL, "none", NULL, 0, &functions, &count), 0);
	assert_int_equal(count, 4);
	free(functions);
	rls_elf_close(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_addresses_gather_into_functions) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
