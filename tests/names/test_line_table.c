/* Our line tables beside Python's own: every instruction of code objects of the standard
 * libraries of the interpreters here. RLS_LINE_TABLES=all looks at all files, not a share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/python/line_table.h"

#define TABLE_BYTES_MAX (1U << 20)

static const char *const interpreters[] = {INTERPRETERS};

static enum rls_line_encoding encoding_of(uint32_t minor)
{
	return minor < 10 ? RLS_LINES_PAIRS : minor == 10 ? RLS_LINES_RANGES : RLS_LINES_LOCATIONS;
}

static size_t check_ranges(FILE *from, enum rls_line_encoding encoding, const uint8_t *table,
			   uint32_t bytes, int32_t first_line)
{
	size_t instructions = 0;
	uint32_t ranges;

	assert_int_equal(fread(&ranges, sizeof(ranges), 1, from), 1);
	for (uint32_t i = 0; i < ranges; i++) {
		struct {
			uint32_t start, end;
			int32_t line;
		} range;

		assert_int_equal(fread(&range, sizeof(range), 1, from), 1);
		for (uint32_t at = range.start; at < range.end; at += 2, instructions++)
			assert_int_equal(
				rls_line_table_find(encoding, table, bytes, first_line, at),
				range.line);
	}
	return instructions;
}

static void compare(const char *interpreter, int share)
{
	size_t objects = 0, instructions = 0;
	struct {
		int32_t first_line;
		uint32_t bytes;
	} head;
	uint8_t *table = malloc(TABLE_BYTES_MAX);
	char command[4096];
	uint32_t minor;
	FILE *from;

	snprintf(command, sizeof(command), "'%s' dump_lines.py %d", interpreter, share);
	from = popen(command, "r");
	assert_non_null(from);
	assert_non_null(table);
	assert_int_equal(fread(&minor, sizeof(minor), 1, from), 1);
	while (fread(&head, sizeof(head), 1, from) == 1) {
		assert_true(head.bytes <= TABLE_BYTES_MAX);
		assert_int_equal(fread(table, 1, head.bytes, from), head.bytes);
		instructions +=
			check_ranges(from, encoding_of(minor), table, head.bytes, head.first_line);
		objects++;
	}
	assert_int_equal(pclose(from), 0);
	free(table);
	print_message("3.%u: %zu code objects, %zu instructions\n", minor, objects, instructions);
	assert_true(objects > 500 && instructions > 10000);
}

static void agrees_with_the_interpreters(void **state)
{
	const char *all = getenv("RLS_LINE_TABLES");

	(void)state;
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++)
		compare(interpreters[i], all && !strcmp(all, "all") ? 1 : 25);
}

static void a_table_that_ends_early_has_no_lines(void **state)
{
	static const uint8_t cut[] = {0x80 | 14 << 3 | 7, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f};

	(void)state;
	for (int encoding = RLS_LINES_PAIRS; encoding <= RLS_LINES_LOCATIONS; encoding++)
		for (size_t bytes = 0; bytes <= sizeof(cut); bytes++)
			rls_line_table_find(encoding, cut, bytes, 1, 1000);
	assert_int_equal(rls_line_table_find(RLS_LINES_RANGES, cut, 0, 7, 0), 0);
	assert_int_equal(rls_line_table_find(RLS_LINES_LOCATIONS, cut, 0, 7, 0), 0);
	/* Before any pair the first line holds. */
	assert_int_equal(rls_line_table_find(RLS_LINES_PAIRS, cut, 0, 7, 0), 7);
}

static void what_is_no_line_is_none(void **state)
{
	static const uint8_t back[] = {2, (uint8_t)-5, 2, 1};

	(void)state;
	assert_int_equal(rls_line_table_find(RLS_LINES_RANGES, back, sizeof(back), 3, 0), 0);
	assert_int_equal(rls_line_table_find(RLS_LINES_PAIRS, back, sizeof(back), 3, 2), 0);
	assert_int_equal(rls_line_table_find(RLS_LINES_RANGES, back, sizeof(back), 30, 2), 26);
}

static void random_tables_are_survived(void **state)
{
	uint8_t table[64];

	(void)state;
	srand(7);
	for (int round = 0; round < 200000; round++) {
		size_t bytes = rand() % sizeof(table);

		for (size_t i = 0; i < bytes; i++)
			table[i] = rand();
		for (int encoding = RLS_LINES_PAIRS; encoding <= RLS_LINES_LOCATIONS; encoding++)
			assert_true(rls_line_table_find(encoding, table, bytes, rand(),
							rand() % 300) >= 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_interpreters),
		cmocka_unit_test(a_table_that_ends_early_has_no_lines),
		cmocka_unit_test(what_is_no_line_is_none),
		cmocka_unit_test(random_tables_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
