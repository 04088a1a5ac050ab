/* Growing arrays, and searching in sorted ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analysis/base/grow.h"
#include "analysis/base/search.h"

static void test_search_finds_the_first_that_does_not_hold(void **unused)
{
	static const int sorted[] = {1, 3, 3, 3, 7, 9};

	for (size_t count = 0; count <= sizeof(sorted) / sizeof(sorted[0]); count++) {
		for (int wanted = 0; wanted <= 10; wanted++) {
			size_t expected = 0;

			while (expected < count && sorted[expected] < wanted)
				expected++;
			assert_int_equal(rls_first_not(count, i, sorted[i] < wanted), expected);
		}
	}
}

static void test_what_grows_by_number_is_zeroed(void **unused)
{
	uint32_t *items = NULL;
	size_t capacity = 0;

	assert_int_equal(rls_grow_to(&items, &capacity, 0), 0);
	for (size_t i = 0; i < capacity; i++)
		items[i] = 5;
	assert_int_equal(rls_grow_to(&items, &capacity, 1000), 0);
	assert_true(capacity > 1000);
	for (size_t i = 0; i < capacity; i++)
		assert_int_equal(items[i], i < RLS_GROW_MIN ? 5 : 0);
	assert_int_equal(rls_grow_to(&items, &capacity, SIZE_MAX), -ENOMEM);
	assert_int_equal(items[0], 5);
	free(items);
}

static void test_what_grows_by_one_doubles(void **unused)
{
	uint64_t *items = NULL;
	size_t capacity = 0;

	for (size_t count = 0; count < 100; count++) {
		assert_int_equal(rls_grow(&items, &capacity, count), 0);
		assert_in_range(capacity, count + 1, 2 * count + RLS_GROW_MIN);
		items[count] = count;
	}
	assert_int_equal(items[99], 99);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_search_finds_the_first_that_does_not_hold),
		cmocka_unit_test(test_what_grows_by_number_is_zeroed),
		cmocka_unit_test(test_what_grows_by_one_doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
