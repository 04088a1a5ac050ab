#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analysis/base/index_map.h"

enum { KEYS = 512, STEPS = 100000 };

/* Against an array, with keys that come and go. */
static void test_puts_and_removes(void **unused)
{
	struct rls_index_map map = {0};
	void *expected[KEYS] = {NULL};
	static char values[KEYS];
	uint32_t random = 1;
	size_t count = 0;

	for (int step = 0; step < STEPS; step++) {
		uint32_t key = (random = random * 1664525 + 1013904223) >> 16 & (KEYS - 1);

		if (random & 1) {
			assert_int_equal(rls_index_map_put(&map, key / 8, key % 8, &values[key]),
					 0);
			count += !expected[key];
			expected[key] = &values[key];
		} else {
			rls_index_map_remove(&map, key / 8, key % 8);
			count -= !!expected[key];
			expected[key] = NULL;
		}
		assert_int_equal(map.count, count);
	}
	for (uint32_t key = 0; key < KEYS; key++)
		assert_ptr_equal(rls_index_map_get(&map, key / 8, key % 8), expected[key]);
	assert_null(rls_index_map_get(&map, KEYS, 0));
	rls_index_map_free(&map);
	assert_null(rls_index_map_get(&map, 0, 0));
	rls_index_map_remove(&map, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_puts_and_removes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
