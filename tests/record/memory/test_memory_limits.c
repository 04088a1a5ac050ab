/* Limits of cgroups, in folders that look like theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "userspace/record/memory/memory_limits.h"

static char root[] = "/tmp/rls-limits-XXXXXX";

static int set_up(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

/* path: folders below the root, which are made. */
static void write_file(const char *path, const char *name, const char *text)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (char *at = whole + strlen(root) + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		mkdir(whole, 0700);
		*at = '/';
	}
	mkdir(whole, 0700);
	strcat(strcat(whole, "/"), name);
	file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* The template with the root for each @. */
static void fill_in(const char *template, char *out)
{
	for (*out = '\0'; *template; template ++) {
		const char text[2] = {*template, '\0'};

		strcat(out, *template == '@' ? root : text);
	}
}

/* limit_bytes 0: none of a cgroup. */
static void assert_limit(const char *cgroup, const char *mounts, uint64_t limit_bytes,
			 uint64_t used_bytes)
{
	struct rls_memory_group group;
	struct rls_memory_limit limit;
	char mountinfo[1024];

	fill_in(mounts, mountinfo);
	rls_memory_group_find_in(cgroup, mountinfo, &group);
	rls_memory_limit_read(&group, &limit);
	assert_int_equal(group.path != NULL, limit_bytes != 0);
	if (limit_bytes) {
		assert_int_equal(limit.limit_bytes, limit_bytes);
		assert_int_equal(limit.used_bytes, used_bytes);
	} else { /* the machine's */
		assert_true(limit.limit_bytes > 1 << 20);
		assert_true(limit.used_bytes < limit.limit_bytes);
	}
	rls_memory_group_clear(&group);
}

#define V2 "30 20 0:26 / @/two rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

static void the_tightest_ancestor_counts(void **state)
{
	write_file("two/slice", "memory.max", "1000000\n");
	write_file("two/slice", "memory.current", "300\n");
	write_file("two/slice/job", "memory.max", "2000000\n");
	write_file("two/slice/job", "memory.current", "200\n");
	write_file("two/slice/job/own", "memory.max", "max\n");
	assert_limit("0::/slice/job/own\n", V2, 1000000, 300);
	write_file("two/slice/job", "memory.max", "900000\n");
	assert_limit("0::/slice/job/own\n", V2, 900000, 200);
	assert_limit("0::/slice\n", V2, 1000000, 300);
}

static void without_one_it_is_the_machine_s(void **state)
{
	assert_limit("0::/\n", V2, 0, 0);
	assert_limit("0::/elsewhere/that/is/not\n", V2, 0, 0);
	assert_limit("", V2, 0, 0);
	assert_limit("0::/slice/job\n", "rubbish\n30 - \n - cgroup2 x\n", 0, 0);
	assert_limit("0::/../../slice\n", "", 0, 0);
}

/* In a container a folder of the hierarchy is mounted. */
static void the_mounted_folder_may_not_be_the_first(void **state)
{
	write_file("two/inner", "memory.max", "5000\n");
	write_file("two/inner", "memory.current", "50\n");
	assert_limit("0::/docker/abc/inner\n",
		     "30 20 0:26 /docker/abc @/two rw - cgroup2 cgroup2 rw\n", 5000, 50);
}

/* The kernel writes a space of a name as \040. */
static void the_mount_may_have_any_name(void **state)
{
	write_file("a b/job", "memory.max", "7000\n");
	write_file("a b/job", "memory.current", "70\n");
	assert_limit("0::/job\n", "30 20 0:26 / @/a\\040b rw - cgroup2 cgroup2 rw\n", 7000, 70);
}

static void version_1_has_a_hierarchy_for_memory(void **state)
{
	static const char mounts[] = "31 20 0:27 / @/other rw - cgroup cgroup rw,cpu,cpuacct\n"
				     "32 20 0:28 / @/one rw - cgroup cgroup rw,memory\n";

	write_file("one", "memory.limit_in_bytes", "9223372036854771712\n");
	write_file("one/job", "memory.limit_in_bytes", "314572800\n");
	write_file("one/job", "memory.usage_in_bytes", "1024\n");
	assert_limit("4:cpu,cpuacct:/x\n7:memory:/job\n0::/\n", mounts, 314572800, 1024);
	assert_limit("4:cpu,cpuacct:/job\n0::/\n", mounts, 0, 0);
	assert_limit("7:memory:/\n", mounts, 0, 0);
}

/* The kernel gives it back before anything ends for lack of memory. */
static void unused_cache_of_files_is_not_counted(void **state)
{
	static const char mounts[] = "32 20 0:28 / @/old rw - cgroup cgroup rw,memory\n";

	write_file("two/cached", "memory.max", "1000000\n");
	write_file("two/cached", "memory.current", "900000\n");
	write_file("two/cached", "memory.stat",
		   "anon 5\nfile 700000\ninactive_anon 7\nactive_file 9\ninactive_file 600000\n");
	assert_limit("0::/cached\n", V2, 1000000, 300000);
	write_file("two/cached", "memory.stat", "inactive_file 900001\n");
	assert_limit("0::/cached\n", V2, 1000000, 0);
	write_file("two/cached", "memory.stat", "inactive_file\n");
	assert_limit("0::/cached\n", V2, 1000000, 900000);
	write_file("old/job", "memory.limit_in_bytes", "2000000\n");
	write_file("old/job", "memory.usage_in_bytes", "1500000\n");
	write_file("old/job", "memory.stat",
		   "inactive_file 1\ntotal_cache 9\ntotal_inactive_file 500000\n");
	assert_limit("7:memory:/job\n", mounts, 2000000, 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tightest_ancestor_counts),
		cmocka_unit_test(without_one_it_is_the_machine_s),
		cmocka_unit_test(the_mounted_folder_may_not_be_the_first),
		cmocka_unit_test(the_mount_may_have_any_name),
		cmocka_unit_test(version_1_has_a_hierarchy_for_memory),
		cmocka_unit_test(unused_cache_of_files_is_not_counted),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
