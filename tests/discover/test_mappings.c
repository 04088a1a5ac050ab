#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/process/mappings.h"

static struct rls_mappings parse(const char *text)
{
	struct rls_mappings mappings;

	assert_int_equal(rls_mappings_parse(strdup(text), strlen(text), &mappings), 0);
	return mappings;
}

static void reads_every_field(void **state)
{
	struct rls_mappings mappings = parse("55d0c0a00000-55d0c0a01000 r-xp 00002000 08:01 1234   "
					     "                    /usr/bin/x\n"
					     /* Descending: the kernel never prints that. */
					     "7ffd1000-7ffd3000 rw-s 00000000 00:00 0\n");
	const struct rls_mapping *first = &mappings.entries[0];

	assert_int_equal(mappings.count, 1);
	assert_int_equal(first->start, 0x55d0c0a00000);
	assert_int_equal(first->end, 0x55d0c0a01000);
	assert_int_equal(first->file_offset, 0x2000);
	assert_int_equal(first->device_major, 8);
	assert_int_equal(first->device_minor, 1);
	assert_int_equal(first->inode, 1234);
	assert_true(first->readable && first->executable && !first->writable && !first->shared);
	assert_string_equal(first->path, "/usr/bin/x");
	assert_false(first->deleted);
	rls_mappings_release(&mappings);
}

static void paths_are_as_the_target_spells_them(void **state)
{
	struct rls_mappings mappings =
		parse("1000-2000 rw-p 00000000 00:00 0\n"
		      "2000-3000 r-xp 00000000 08:01 5   /a b/c  d.so\n"
		      "3000-4000 r-xp 00000000 08:01 6   /gone.so (deleted)\n"
		      "4000-5000 r-xp 00000000 08:01 7   /new\\012line.so\n"
		      "5000-6000 rw-p 00000000 00:00 0   [heap]");

	assert_int_equal(mappings.count, 5);
	assert_string_equal(mappings.entries[0].path, "");
	assert_string_equal(mappings.entries[1].path, "/a b/c  d.so");
	assert_string_equal(mappings.entries[2].path, "/gone.so");
	assert_true(mappings.entries[2].deleted);
	assert_string_equal(mappings.entries[3].path, "/new\nline.so");
	assert_string_equal(mappings.entries[4].path, "[heap]");
	assert_true(rls_mapping_is_file(&mappings.entries[1]));
	assert_false(rls_mapping_is_file(&mappings.entries[0]));
	assert_false(rls_mapping_is_file(&mappings.entries[4]));
	rls_mappings_release(&mappings);
}

static void libraries_in_memory_are_files(void **state)
{
	struct rls_mappings mappings =
		parse("1000-2000 r-xp 00000000 00:01 12 /memfd:nle.so (deleted)\n"
		      "2000-3000 r-xp 00000000 00:01 13 /memfd:jit (deleted)\n"
		      "3000-4000 r-xp 00000000 00:01 14 /memfd: (deleted)\n");

	assert_int_equal(mappings.count, 3);
	assert_true(rls_mapping_is_file(&mappings.entries[0]));
	assert_string_equal(mappings.entries[0].path, "/memfd:nle.so");
	assert_false(rls_mapping_is_file(&mappings.entries[1]));
	assert_false(rls_mapping_is_file(&mappings.entries[2]));
	rls_mappings_release(&mappings);
}

static void lines_that_are_none_are_left_out(void **state)
{
	struct rls_mappings mappings = parse("\n"
					     "garbage\n"
					     "1000-1000 r-xp 00000000 08:01 5 /empty\n"
					     "2000-1000 r-xp 00000000 08:01 5 /backwards\n"
					     "1000-2000\n"
					     "1000-2000 r-\n"
					     "1000-2000 r-xp\n"
					     "1000-2000 r-xp zzz 08:01 5 /x\n"
					     "1000-99999999999999999999 r-xp 0 08:01 5 /x\n"
					     "1000-2000 r-xp 00000000 08:01 5 /good\n"
					     "1800-2800 r-xp 00000000 08:01 5 /overlap\n");

	assert_int_equal(mappings.count, 1);
	assert_string_equal(mappings.entries[0].path, "/good");
	rls_mappings_release(&mappings);
	mappings = parse("");
	assert_int_equal(mappings.count, 0);
	assert_null(rls_mappings_at(&mappings, 5));
	rls_mappings_release(&mappings);
}

static void finds_by_address(void **state)
{
	struct rls_mappings mappings =
		parse("1000-2000 r-xp 0 00:00 0\n3000-4000 r-xp 0 00:00 0\n");

	assert_null(rls_mappings_at(&mappings, 0xfff));
	assert_ptr_equal(rls_mappings_at(&mappings, 0x1000), &mappings.entries[0]);
	assert_ptr_equal(rls_mappings_at(&mappings, 0x1fff), &mappings.entries[0]);
	assert_null(rls_mappings_at(&mappings, 0x2000));
	assert_ptr_equal(rls_mappings_at(&mappings, 0x3fff), &mappings.entries[1]);
	assert_null(rls_mappings_at(&mappings, 0x4000));
	rls_mappings_release(&mappings);
}

static void reads_its_own(void **state)
{
	struct rls_mappings mappings;
	const struct rls_mapping *code;
	struct stat status;
	char *path;
	dev_t device;
	ino_t inode;

	assert_int_equal(rls_mappings_read(getpid(), &mappings), 0);
	code = rls_mappings_at(&mappings, (uint64_t)(uintptr_t)reads_its_own);
	assert_non_null(code);
	assert_true(code->executable && rls_mapping_is_file(code));
	assert_int_equal(rls_mapping_locate(getpid(), code, &path, &device, &inode), 0);
	assert_int_equal(stat("/proc/self/exe", &status), 0);
	assert_int_equal(device, status.st_dev);
	assert_int_equal(inode, status.st_ino);
	assert_int_equal(access(path, R_OK), 0);
	free(path);
	rls_mappings_release(&mappings);
}

/* A package upgraded under a running job: the path is another file or none at all. */
static void a_deleted_file_is_found_by_its_mapping(void **state)
{
	char name[] = "/tmp/rls-mapped-XXXXXX";
	int fd = mkstemp(name);
	struct rls_mappings mappings;
	const struct rls_mapping *mapping;
	struct stat status;
	char *path;
	dev_t device;
	ino_t inode;
	void *page;
	int error;

	assert_int_equal(ftruncate(fd, 4096), 0);
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(fstat(fd, &status), 0);
	unlink(name);
	assert_int_equal(rls_mappings_read(getpid(), &mappings), 0);
	mapping = rls_mappings_at(&mappings, (uint64_t)(uintptr_t)page);
	assert_non_null(mapping);
	assert_true(mapping->deleted);
	assert_string_equal(mapping->path, name);
	error = rls_mapping_locate(getpid(), mapping, &path, &device, &inode);
	if (geteuid() == 0) {
		assert_int_equal(error, 0);
		assert_int_equal(inode, status.st_ino);
		free(path);
	}
	rls_mappings_release(&mappings);
	munmap(page, 4096);
	close(fd);
}

static void no_process_no_mappings(void **state)
{
	struct rls_mappings mappings;

	assert_int_equal(rls_mappings_read(0x3fffffff, &mappings), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_field),
		cmocka_unit_test(paths_are_as_the_target_spells_them),
		cmocka_unit_test(libraries_in_memory_are_files),
		cmocka_unit_test(lines_that_are_none_are_left_out),
		cmocka_unit_test(finds_by_address),
		cmocka_unit_test(reads_its_own),
		cmocka_unit_test(a_deleted_file_is_found_by_its_mapping),
		cmocka_unit_test(no_process_no_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
