/* What processes had mapped that ended before they were looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/record/ended_maps.h"

static struct rls_mapping file(uint64_t inode, const char *path)
{
	return (struct rls_mapping){.inode = inode, .device_major = 8, .path = path};
}

static void note(struct rls_ended_maps *maps, pid_t pid, uint64_t inode, uint64_t time_ns)
{
	const struct rls_mapping mapping = file(inode, "/lib/libsim.so");

	rls_ended_maps_note(maps, pid, &mapping, time_ns);
}

static void what_ended_processes_had_is_taken_once(void **state)
{
	struct rls_ended_maps maps = {0};
	struct rls_ended_map map;

	(void)state;
	note(&maps, 7, 1, 100);
	note(&maps, 7, 1, 110); /* another part of the file */
	note(&maps, 7, 2, 120);
	note(&maps, 8, 1, 130);
	assert_false(rls_ended_maps_take(&maps, &map));
	rls_ended_maps_ended(&maps, 7, 200);
	assert_true(rls_ended_maps_take(&maps, &map));
	assert_int_equal(map.pid, 7);
	assert_int_equal(map.mapping.inode, 1);
	assert_int_equal(map.since_ns, 100);
	assert_int_equal(map.ended_ns, 200);
	assert_string_equal(map.path, "/lib/libsim.so");
	assert_true(rls_ended_maps_take(&maps, &map));
	assert_int_equal(map.mapping.inode, 2);
	assert_false(rls_ended_maps_take(&maps, &map));
	assert_int_equal(maps.count, 1);
}

static void what_was_looked_at_is_forgotten(void **state)
{
	struct rls_ended_maps maps = {0};
	struct rls_ended_map map;

	(void)state;
	note(&maps, 7, 1, 100);
	rls_ended_maps_ended(&maps, 7, 200);
	note(&maps, 7, 2, 300); /* another process with the number */
	note(&maps, 8, 1, 300);
	rls_ended_maps_forget(&maps, 8, 300); /* it executed just then */
	rls_ended_maps_forget(&maps, 7, UINT64_MAX);
	rls_ended_maps_ended(&maps, 7, 400);
	assert_true(rls_ended_maps_take(&maps, &map));
	assert_int_equal(map.ended_ns, 200);
	assert_false(rls_ended_maps_take(&maps, &map));
	assert_int_equal(maps.count, 1);
}

static void the_oldest_give_way(void **state)
{
	struct rls_ended_maps maps = {0};
	struct rls_ended_map map;

	(void)state;
	for (pid_t pid = 1; pid <= RLS_ENDED_MAPS_MAX + 2; pid++) {
		note(&maps, pid, 1, (uint64_t)pid);
		rls_ended_maps_ended(&maps, pid, 1000);
	}
	assert_int_equal(maps.count, RLS_ENDED_MAPS_MAX);
	assert_true(rls_ended_maps_take(&maps, &map));
	assert_int_equal(map.pid, 3);
}

static void paths_that_may_have_been_cut_are_left_out(void **state)
{
	struct rls_ended_maps maps = {0};
	char path[RLS_ENDED_PATH_BYTES];
	struct rls_mapping mapping = file(1, path);

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	rls_ended_maps_note(&maps, 7, &mapping, 1);
	assert_int_equal(maps.count, 0);
	path[sizeof(path) - 2] = '\0';
	rls_ended_maps_note(&maps, 7, &mapping, 1);
	assert_int_equal(maps.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ended_processes_had_is_taken_once),
		cmocka_unit_test(what_was_looked_at_is_forgotten),
		cmocka_unit_test(the_oldest_give_way),
		cmocka_unit_test(paths_that_may_have_been_cut_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
