/* Which libraries switch stacks, and what a process that has one takes with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/record/probes/stack_switching.h"

static void test_names(void **state)
{
	static const char *const names[] = {
		"/usr/lib/python3/dist-packages/greenlet/_greenlet.cpython-311-x86_64-linux-gnu.so",
		"_greenlet.abi3.so", "/opt/greenlet.cpython-38-x86_64-linux-gnu.so",
		"/usr/lib/x86_64-linux-gnu/libboost_context.so.1.74.0"};
	static const char *const others[] = {"", "/usr/lib/libgreen.so", "/greenlet/libc.so.6",
					     "/x/greenlet.py", "/usr/lib/libboost_system.so.1"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(rls_stack_switching_name(names[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(rls_stack_switching_name(others[i]));
}

/* This process's own mappings, as if one of its files were greenlet. */
static void test_takes_all_that_is_mapped_beside_it(void **state)
{
	struct rls_files files = {0};
	const struct rls_file *own;
	struct rls_mappings mappings;
	struct stat self;
	bool more;

	(void)state;
	assert_int_equal(stat("/proc/self/exe", &self), 0);
	assert_int_equal(rls_mappings_read(getpid(), &mappings), 0);
	assert_int_equal(rls_stack_switching_take(&files, getpid(), &mappings, &more), 0);
	assert_false(more);
	assert_null(rls_files_find(&files, self.st_dev, self.st_ino));

	for (size_t i = 0; i < mappings.count; i++) {
		if (mappings.entries[i].executable && strstr(mappings.entries[i].path, "libc.so"))
			mappings.entries[i].path = "/x/_greenlet.so";
	}
	assert_int_equal(rls_stack_switching_take(&files, getpid(), &mappings, &more), 0);
	own = rls_files_find(&files, self.st_dev, self.st_ino);
	assert_true(more && own && own->switches_stacks);
	assert_int_equal(rls_stack_switching_take(&files, getpid(), &mappings, &more), 0);
	assert_false(more);
	rls_mappings_release(&mappings);
	rls_files_clear(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_takes_all_that_is_mapped_beside_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
