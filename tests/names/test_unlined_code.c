/* Instructions without a line, in the bytecode that CPython 3.10 and 3.11 made of
 *
 *     1  def spin(n):
 *     2      odd = 0
 *     3      for i in range(n):
 *     4          odd += 1
 *     5          if i == n - 1:
 *     6              write("end")
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "userspace/python/unlined_code.h"

static const uint8_t code_3_10[] = {
	100, 1,   125, 1,  116, 0,   124, 0,   131, 1,   68,  0,   93,  16, 125, 2,   124,
	1,   100, 2,   55, 0,   125, 1,   124, 2,   124, 0,   100, 2,   24, 0,   107, 2,
	114, 22,  116, 1,  100, 3,   131, 1,   1,   0,   113, 6,   100, 0,  83,  0,
};
static const uint8_t lines_3_10[] = {4, 1, 12, 1, 8, 1, 12, 1, 8, 1, 2, 128, 4, 253};
static const uint8_t code_3_11[] = {
	151, 0,  100, 1, 125, 1, 116, 1, 0,   0, 0,   0,  0,   0,  0,   0,  0,   0, 124, 0, 166, 1,
	0,   0,  171, 1, 0,   0, 0,   0, 0,   0, 0,   0,  68,  0,  93,  31, 125, 2, 124, 1, 100, 2,
	122, 13, 0,   0, 125, 1, 124, 2, 124, 0, 100, 2,  122, 10, 0,   0,  107, 2, 0,   0, 0,   0,
	114, 15, 116, 3, 0,   0, 0,   0, 0,   0, 0,   0,  0,   0,  100, 3,  166, 1, 0,   0, 171, 1,
	0,   0,  0,   0, 0,   0, 0,   0, 1,   0, 140, 32, 100, 0,  83,  0,
};
static const uint8_t lines_3_11[] = {
	128, 0,   216, 10,  11,  128, 67,  221, 13,  18, 144, 49, 137, 88,  140, 88,  240, 0,
	3,   5,   25,  240, 0,   3,   5,   25,  136, 1,  216, 8,  11,  136, 113, 137, 8,   136,
	3,   216, 11,  12,  144, 1,   144, 65,  145, 5,  138, 58, 136, 58,  221, 12,  17,  144,
	37,  137, 76,  140, 76,  136, 76,  248, 240, 7,  3,   5,  25,  240, 0,   3,   5,   25,
};

enum { LINE_OF_IF = 5, LINE_OF_CALL = 6 };

static struct rls_unlined read_ranges(struct rls_bytecode bytecode, enum rls_line_encoding encoding,
				      const uint8_t *table, size_t bytes)
{
	struct rls_unlined unlined;

	assert_int_equal(rls_unlined_read(&bytecode,
					  rls_line_cursor_begin(encoding, table, bytes, 1),
					  &unlined),
			 0);
	return unlined;
}

static void a_jump_back_has_the_line_of_the_jump_to_it(void **state)
{
	struct rls_unlined old =
		read_ranges((struct rls_bytecode){10, code_3_10, sizeof(code_3_10)},
			    RLS_LINES_RANGES, lines_3_10, sizeof(lines_3_10));
	struct rls_unlined new =
		read_ranges((struct rls_bytecode){11, code_3_11, sizeof(code_3_11)},
			    RLS_LINES_LOCATIONS, lines_3_11, sizeof(lines_3_11));

	(void)state;
	assert_int_equal(old.count, 1);
	assert_int_equal(rls_unlined_line(&old, 44), LINE_OF_IF);
	assert_int_equal(rls_unlined_line(&old, 46), 0);
	assert_int_equal(rls_unlined_line(&old, 42), 0);
	assert_int_equal(new.count, 1);
	assert_int_equal(rls_unlined_line(&new, 98), LINE_OF_IF);
	assert_int_equal(rls_unlined_line(&new, 96), 0);
	rls_unlined_release(&old);
	rls_unlined_release(&new);
}

/* Its code cannot be read, or is of a version whose jumps are not known. */
static void without_code_it_has_the_line_before(void **state)
{
	const struct rls_bytecode unknown[] = {
		{11, NULL, 0}, {11, code_3_11, 60}, {12, code_3_11, sizeof(code_3_11)}};

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		struct rls_unlined unlined = read_ranges(unknown[i], RLS_LINES_LOCATIONS,
							 lines_3_11, sizeof(lines_3_11));

		assert_int_equal(rls_unlined_line(&unlined, 98), LINE_OF_CALL);
		rls_unlined_release(&unlined);
	}
}

static void code_before_any_line_has_none(void **state)
{
	static const uint8_t table[] = {4, 128, 4, 1};
	struct rls_unlined unlined = read_ranges((struct rls_bytecode){10, code_3_10, 8},
						 RLS_LINES_RANGES, table, sizeof(table));

	(void)state;
	assert_int_equal(unlined.count, 1);
	assert_int_equal(rls_unlined_line(&unlined, 0), 0);
	rls_unlined_release(&unlined);
}

static void random_code_is_survived(void **state)
{
	uint8_t code[64], table[64];

	(void)state;
	srand(11);
	for (int round = 0; round < 50000; round++) {
		size_t bytes = (size_t)rand() % sizeof(table);
		unsigned int minor = 10 + (unsigned int)rand() % 2;
		struct rls_unlined unlined;

		for (size_t i = 0; i < sizeof(code); i++) {
			code[i] = (uint8_t)rand();
			table[i] = (uint8_t)rand();
		}
		unlined = read_ranges(
			(struct rls_bytecode){minor, code, (size_t)rand() % sizeof(code)},
			minor == 10 ? RLS_LINES_RANGES : RLS_LINES_LOCATIONS, table, bytes);
		assert_true(rls_unlined_line(&unlined, (uint32_t)rand() % 300) >= 0);
		rls_unlined_release(&unlined);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_jump_back_has_the_line_of_the_jump_to_it),
		cmocka_unit_test(without_code_it_has_the_line_before),
		cmocka_unit_test(code_before_any_line_has_none),
		cmocka_unit_test(random_code_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
