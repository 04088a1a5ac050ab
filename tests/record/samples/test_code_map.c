/* What lies at addresses of a process, which is the test itself: files, roles, and what is read again when. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/record/probes/file_table.h"
#include "userspace/record/probes/probed_files.h"
#include "userspace/record/samples/code_map.h"

#define AGAIN_NS 100000000ULL

/* One file has a role, once it is known. */
static const uint64_t sites[] = {0x40, 0x80};
static struct rls_file identity;
static struct rls_probed_file probed = {.role = RLS_ROLE_BACKEND};
static size_t known;
static int libraries;

size_t __wrap_rls_libraries_known(const struct rls_libraries *unused);
size_t __wrap_rls_libraries_known(const struct rls_libraries *unused)
{
	assert_ptr_equal(unused, &libraries);
	return known;
}

const struct rls_probed_file *__wrap_rls_libraries_file(const struct rls_libraries *unused,
							dev_t device, ino_t inode);
const struct rls_probed_file *__wrap_rls_libraries_file(const struct rls_libraries *unused,
							dev_t device, ino_t inode)
{
	(void)unused, (void)device;
	return known && inode == identity.inode ? &probed : NULL;
}

static struct rls_code_map *begin(void)
{
	struct rls_code_map *map;

	known = 0;
	assert_int_equal(rls_code_map_new((const void *)&libraries, &map), 0);
	return map;
}

static struct rls_code_place find(struct rls_code_map *map, pid_t pid, uint64_t time_ns,
				  const void *address, bool certain)
{
	struct rls_code_place place;

	assert_int_equal(rls_code_map_find(map, pid, time_ns, (uintptr_t)address, certain, &place),
			 0);
	assert_int_equal(place.address, (uintptr_t)address);
	return place;
}

/* This program's own bytes, mapped once more. */
static void *map_self(struct stat *status)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *at;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, status), 0);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	close(fd);
	return at;
}

static void functions_are_found_by_their_file(void **state)
{
	struct rls_code_map *map = begin();
	struct rls_code_place place = find(map, getpid(), 1, (const void *)(uintptr_t)begin, true);
	uint64_t vaddr, start, bytes;
	struct rls_native_file *file = rls_code_map_native(map, getpid(), &place, &vaddr);

	(void)state;
	assert_non_null(place.mapping);
	assert_true(place.mapping->executable);
	assert_null(place.role);
	assert_non_null(file);
	assert_string_equal(rls_native_file_function(file, vaddr, &start), "begin");
	assert_int_equal(vaddr, start);
	/* Before its first instruction the return address is on top. */
	assert_int_equal(rls_code_map_frame_bytes(map, getpid(), &place, &bytes), 0);
	assert_int_equal(bytes, 8);
	place = find(map, getpid(), 1, &place, true); /* on the stack */
	assert_non_null(place.mapping);
	assert_null(rls_code_map_native(map, getpid(), &place, &vaddr));
	assert_int_equal(vaddr, (uintptr_t)&place);
	assert_int_equal(rls_code_map_frame_bytes(map, getpid(), &place, &bytes), -ENOENT);
	rls_code_map_free(map);
}

static void what_is_not_known_is_read_again_in_time(void **state)
{
	struct rls_code_map *map = begin();
	struct stat status;
	void *at;

	(void)state;
	find(map, getpid(), 1, &status, true);
	at = map_self(&status);
	assert_null(find(map, getpid(), AGAIN_NS, at, true).mapping);
	assert_null(find(map, getpid(), AGAIN_NS + 1, at, false)
			    .mapping); /* it may be no address at all */
	assert_non_null(find(map, getpid(), AGAIN_NS + 1, at, true).mapping);
	assert_non_null(find(map, getpid(), AGAIN_NS + 1, at, false).mapping);
	munmap(at, 4096);
	assert_non_null(
		find(map, getpid(), 10 * AGAIN_NS, at, true).mapping); /* as far as is known */
	rls_code_map_forget(map, getpid());
	assert_null(find(map, getpid(), 10 * AGAIN_NS, at, true).mapping);
	at = map_self(&status);
	rls_code_map_forget(map, 0);
	assert_non_null(find(map, getpid(), 10 * AGAIN_NS, at, true).mapping);
	munmap(at, 4096);
	rls_code_map_free(map);
}

static void roles_may_come_later(void **state)
{
	struct rls_code_map *map = begin();
	const struct rls_code_file *role;
	struct stat status;
	void *at = map_self(&status);

	(void)state;
	identity.inode = status.st_ino;
	probed.offset_count = 0;
	assert_null(find(map, getpid(), 1, at, true).role);
	known = 1;
	role = find(map, getpid(), 1, at, true).role;
	assert_non_null(role);
	assert_int_equal(role->role, RLS_ROLE_BACKEND);
	assert_int_equal(role->site_count, 0);
	/* The same file wherever it is mapped, and what is probed since. */
	probed.offsets = (uint64_t *)sites;
	probed.offset_count = 2;
	assert_ptr_equal(find(map, getpid(), 1, (const void *)(uintptr_t)begin, true).role, role);
	assert_int_equal(role->site_count, 2);
	assert_int_equal(role->sites[1], 0x80);
	munmap(at, 4096);
	rls_code_map_free(map);
}

static void a_child_has_its_parents_mappings(void **state)
{
	struct rls_code_map *map = begin();
	struct rls_code_place place;
	struct stat status;
	void *at = map_self(&status);
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	assert_int_equal(rls_code_map_fork(map, getpid(), child, 1), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	munmap(at, 4096);
	assert_non_null(find(map, child, 2, at, true).mapping);
	rls_code_map_forget(map, getpid()); /* that is the parent's alone */
	assert_non_null(find(map, child, 2, at, true).mapping);
	rls_code_map_forget(map, child);
	assert_int_equal(rls_code_map_find(map, child, 2, (uintptr_t)at, true, &place), -ESRCH);
	assert_int_equal(rls_code_map_fork(map, child, child + 1, 2),
			 0); /* gone: nothing is known */
	rls_code_map_free(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found_by_their_file),
		cmocka_unit_test(what_is_not_known_is_read_again_in_time),
		cmocka_unit_test(roles_may_come_later),
		cmocka_unit_test(a_child_has_its_parents_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
