/* Hits by themselves cost more the longer nothing was hit: as much as was seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/cost/cold_hit.h"

#define US 1000ULL

static void are_dearer_the_longer_they_are_apart(void **state)
{
	(void)state;
	for (uint64_t us = 50; us < 100000; us *= 2)
		assert_true(rls_sparse_hit(2 * us * US) > rls_sparse_hit(us * US));
	/* A job in which they are not sparse is to be charged nearly as before. */
	assert_true(rls_sparse_hit(RLS_SPARSE_NS) < 2);
	assert_true(rls_sparse_hit(200 * US) > 2 && rls_sparse_hit(200 * US) < 3);
	assert_true(rls_sparse_hit(1000 * US) > 5 && rls_sparse_hit(1000 * US) < 8);
	assert_true(rls_sparse_hit(2000 * US) > 8 && rls_sparse_hit(20000 * US) < 14);
	assert_true(rls_sparse_hit(UINT64_MAX) <= 1 + RLS_SPARSE_MORE);
}

static void leave_something_to_the_next(void **state)
{
	(void)state;
	for (uint64_t us = 50; us < 100000; us *= 2) {
		double first = rls_sparse_hit(us * US), second = rls_sparse_following(first);

		assert_true(second > 1 && second < first);
	}
	assert_true(rls_sparse_following(rls_sparse_hit(5000 * US)) > 2.4 &&
		    rls_sparse_following(rls_sparse_hit(5000 * US)) < 3.4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(are_dearer_the_longer_they_are_apart),
		cmocka_unit_test(leave_something_to_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
