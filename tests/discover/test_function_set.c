#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/discover/roles/function_set.h"

static int release(void **state)
{
	rls_function_set_release(*state);
	return 0;
}

static void add(struct rls_function_set *set, uint64_t vaddr, const char *name)
{
	const struct rls_find find = {
		.vaddr = vaddr, .name = (char *)name, .rank = RLS_NAME_SYMBOL};

	assert_int_equal(rls_function_set_add(set, &find), 0);
}

static void check_kept(struct rls_function_set *set, const char *name, size_t bytes)
{
	const char *kept;

	add(set, 1, name);
	kept = set->finds.items[set->finds.count - 1].name;
	assert_int_equal(strlen(kept), bytes);
	assert_memory_equal(kept, name, bytes);
}

static void long_names_are_cut_between_characters(void **state)
{
	static struct rls_function_set set;
	char name[3000];

	*state = &set;
	memset(name, 'a', sizeof(name));
	name[1023] = '\0';
	check_kept(&set, name, 1023);
	name[1023] = 'a';
	name[sizeof(name) - 1] = '\0';
	check_kept(&set, name, 1023);
	memcpy(name + 1021, "\xe2\x82\xac", 3); /* the euro sign, its last byte one too far */
	check_kept(&set, name, 1021);
	memcpy(name + 1020, "\xe2\x82\xac", 3);
	name[1023] = 'a';
	check_kept(&set, name, 1023);
	memset(name, 0x80, sizeof(name) - 1); /* no UTF-8 at all */
	check_kept(&set, name, 1023);
	assert_false(set.full);
}

static void a_set_keeps_so_many(void **state)
{
	static struct rls_function_set set;
	struct rls_boundary_function *functions;
	size_t count;

	*state = &set;
	for (size_t i = 0; i < RLS_FINDS_MAX; i++)
		add(&set, i, "f");
	assert_false(set.full);
	add(&set, RLS_FINDS_MAX, "f");
	assert_true(set.full);
	assert_int_equal(rls_function_set_finish(&set, &functions, &count), 0);
	assert_int_equal(count, RLS_FINDS_MAX);
	for (size_t i = 0; i < count; i++)
		free(functions[i].name);
	free(functions);
	assert_false(set.full);
}

static void a_set_keeps_so_many_bytes_of_names(void **state)
{
	static struct rls_function_set set;
	char name[RLS_FIND_NAME_BYTES + 1];
	size_t fit = RLS_FIND_NAMES_BYTES / RLS_FIND_NAME_BYTES;

	*state = &set;
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < fit + 1000; i++)
		add(&set, i, name);
	assert_true(set.full);
	assert_int_equal(set.finds.count, fit);
	assert_true(set.name_bytes <= RLS_FIND_NAMES_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(long_names_are_cut_between_characters, release),
		cmocka_unit_test_teardown(a_set_keeps_so_many, release),
		cmocka_unit_test_teardown(a_set_keeps_so_many_bytes_of_names, release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
