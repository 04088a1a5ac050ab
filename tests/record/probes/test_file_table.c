/* One entry for each file, whoever maps it and wherever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/record/probes/file_table.h"

static void a_file_is_there_once(void **state)
{
	struct rls_file *first, *again, *other;
	struct rls_files files = {0};

	assert_null(rls_files_find(&files, 1, 2));
	assert_int_equal(rls_files_get(&files, 1, 2, &first), 0);
	first->switches_stacks = true;
	for (ino_t inode = 3; inode < 500; inode++) /* it stays where it is */
		assert_int_equal(rls_files_get(&files, 1, inode, &other), 0);
	assert_int_equal(rls_files_get(&files, 1, 2, &again), 0);
	assert_ptr_equal(first, again);
	assert_true(again->switches_stacks);
	assert_int_equal(rls_files_get(&files, 2, 2, &other),
			 0); /* the same number on another device */
	assert_ptr_not_equal(first, other);
	assert_false(other->switches_stacks);
	rls_files_clear(&files);
	assert_null(rls_files_find(&files, 1, 2));
}

static void mappings_of_one_file_lead_to_one_entry(void **state)
{
	struct rls_file *found = NULL;
	struct rls_files files = {0};
	struct rls_mappings mappings;
	size_t mapped = 0;
	struct stat self;

	assert_int_equal(stat("/proc/self/exe", &self), 0);
	assert_int_equal(rls_mappings_read(getpid(), &mappings), 0);
	for (size_t i = 0; i < mappings.count; i++) {
		struct rls_file *file;
		char *path;

		if (mappings.entries[i].inode != self.st_ino ||
		    !rls_mapping_is_file(&mappings.entries[i]))
			continue;
		assert_int_equal(
			rls_files_locate(&files, getpid(), &mappings.entries[i], &path, &file), 0);
		assert_int_equal(access(path, R_OK), 0);
		free(path);
		assert_true(!found || found == file);
		found = file;
		mapped++;
	}
	assert_true(mapped > 1);
	assert_int_equal(found->inode, self.st_ino);
	assert_ptr_equal(rls_files_find(&files, found->device, found->inode), found);
	rls_mappings_release(&mappings);
	rls_files_clear(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_there_once),
		cmocka_unit_test(mappings_of_one_file_lead_to_one_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
