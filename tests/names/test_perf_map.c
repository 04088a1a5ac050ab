/* perf maps: made up ones against a plain reading of them, hostile ones, and those that CPython
 * writes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/discover/child.h"
#include "userspace/names/perf_map.h"
#include "userspace/record/samples/code_map.h"

static const char *const interpreters[] = {INTERPRETERS};

static struct rls_perf_map *parse(const char *text)
{
	struct rls_perf_map *map = NULL;

	assert_int_equal(rls_perf_map_parse(strdup(text), strlen(text), &map), 0);
	return map;
}

static void check(const struct rls_perf_map *map, uint64_t address, const char *expected)
{
	uint64_t start = 0;
	const char *name = rls_perf_map_find(map, address, &start);

	if (!expected) {
		assert_null(name);
		return;
	}
	assert_non_null(name);
	assert_string_equal(name, expected);
	assert_true(start <= address);
}

static void names_end_where_their_code_does(void **state)
{
	struct rls_perf_map *map =
		parse("1000 10 first\n2000 100 a name with spaces\n1010 8 next\n");

	(void)state;
	check(map, 0xfff, NULL);
	check(map, 0x1000, "first");
	check(map, 0x100f, "first");
	check(map, 0x1010, "next");
	check(map, 0x1018, NULL);
	check(map, 0x20ff, "a name with spaces");
	check(map, 0x2100, NULL);
	rls_perf_map_free(map);
}

static void what_is_no_line_is_left_out(void **state)
{
	struct rls_perf_map *map = parse("\n1000\n1000 10\n1000 10 \n-1000 10 minus\n"
					 " 1000 10 space\n1000 0 nothing\n1000 xyz no\n"
					 "ffffffffffffffff 10 beyond\n10000000000000000 1 more\n"
					 "3000 10 good\n4000 10 being writ");

	(void)state;
	check(map, 0x1000, NULL);
	check(map, UINT64_MAX, NULL);
	check(map, 0, NULL);
	check(map, 0x3005, "good");
	check(map, 0x4000, NULL);
	rls_perf_map_free(map);
	map = parse("");
	check(map, 0, NULL);
	rls_perf_map_free(map);
}

/* Later code lies where earlier was, wholly or in part. */
static void the_last_line_holds(void **state)
{
	enum { LINES = 60, BYTES = 256 };

	(void)state;
	srand(3);
	for (int round = 0; round < 300; round++) {
		char text[LINES * 32], truth[BYTES][8] = {{0}}, *at = text;
		struct rls_perf_map *map;

		for (int line = 0; line < LINES; line++) {
			unsigned int start = rand() % BYTES, size = 1 + rand() % (BYTES - start);
			char name[8];

			size = round % 2 ? size : size % 8 + 1;
			snprintf(name, sizeof(name), "f%d", line);
			at += sprintf(at, "%x %x %s\n", start, size, name);
			for (unsigned int i = start; i < start + size && i < BYTES; i++)
				memcpy(truth[i], name, sizeof(name));
		}
		map = parse(text);
		for (unsigned int i = 0; i < BYTES; i++)
			check(map, i, *truth[i] ? truth[i] : NULL);
		rls_perf_map_free(map);
	}
}

/* ---- files ---- */

static void own_path(char *path, size_t bytes)
{
	snprintf(path, bytes, "/tmp/perf-%d.map", getpid());
}

static void only_its_own_file_speaks_for_a_process(void **state)
{
	struct rls_perf_map *map;
	char path[64];
	FILE *file;

	(void)state;
	own_path(path, sizeof(path));
	unlink(path);
	assert_int_equal(rls_perf_map_read(getpid(), &map), -ENOENT);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs("1000 10 mine\n", file);
	fclose(file);
	assert_int_equal(rls_perf_map_read(getpid(), &map), 0);
	assert_int_equal(rls_perf_map_bytes(map), strlen("1000 10 mine\n"));
	check(map, 0x1000, "mine");
	rls_perf_map_free(map);
	if (!geteuid()) { /* who is root can give it away */
		assert_int_equal(chown(path, 1234, 1234), 0);
		assert_int_equal(rls_perf_map_read(getpid(), &map), -ENOENT);
	}
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(rls_perf_map_read(getpid(), &map), -ENOENT);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(rls_perf_map_read(getpid(), &map), -ENOENT);
	rmdir(path);
}

/* What the interpreter wrote and what the code map says of each address in it. */
static unsigned int check_real(pid_t pid)
{
	struct rls_code_map *map;
	char path[64], line[4096];
	unsigned int ours = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(rls_code_map_new(NULL, &map), 0);
	while (fgets(line, sizeof(line), file)) {
		struct rls_code_place place = {0};
		unsigned long start, size;
		uint64_t vaddr, begins = 0;
		const char *compiled;
		int name = 0;

		line[strcspn(line, "\n")] = '\0';
		assert_int_equal(sscanf(line, "%lx %lx %n", &start, &size, &name), 2);
		assert_int_equal(rls_code_map_find(map, pid, 1, start + size / 2, true, &place), 0);
		assert_null(rls_code_map_native(map, pid, &place, &vaddr));
		compiled = rls_code_map_compiled(map, pid, 1, &place, &begins);
		assert_non_null(compiled);
		assert_string_equal(compiled, line + name);
		assert_int_equal(begins, start);
		ours += !strcmp(line + name, "py::spam:<string>");
	}
	fclose(file);
	rls_code_map_free(map);
	unlink(path);
	return ours;
}

static void names_of_cpythons_own_maps_are_found(void **state)
{
	static const char program[] = "import sys\n"
				      "def spam():\n    pass\n"
				      "print('ready', flush=True)\n"
				      "if hasattr(sys, 'activate_stack_trampoline'):\n"
				      "    sys.activate_stack_trampoline('perf')\n"
				      "    spam()\n    print('named', flush=True)\n"
				      "else:\n    print('none', flush=True)\n"
				      "sys.stdin.readline()\n";
	unsigned int checked = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
		struct child child;
		char line[4096];

		assert_true(child_start(&child, interpreters[i], ".", program));
		assert_true(child_line(&child, line, sizeof(line)));
		if (!strcmp(line, "named")) {
			assert_int_equal(check_real(child.pid), 1);
			checked++;
		}
		child_stop(&child);
	}
	print_message("%u interpreters name what they compile\n", checked);
	if (!checked)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_end_where_their_code_does),
		cmocka_unit_test(what_is_no_line_is_left_out),
		cmocka_unit_test(the_last_line_holds),
		cmocka_unit_test(only_its_own_file_speaks_for_a_process),
		cmocka_unit_test(names_of_cpythons_own_maps_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
