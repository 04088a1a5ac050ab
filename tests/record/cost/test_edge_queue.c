/* A thread's changes of operation, kept until its hits come to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/cost/edge_queue.h"

static void gives_each_when_it_is_due(void **state)
{
	struct rls_edge_queue queue = {0};
	struct rls_queued_edge edge;

	(void)state;
	assert_false(rls_edge_queue_take(&queue, UINT64_MAX, &edge));
	rls_edge_queue_add(&queue, &(struct rls_queued_edge){.time_ns = 10, .now = 1});
	rls_edge_queue_add(&queue, &(struct rls_queued_edge){.time_ns = 20, .now = 2, .gap = true});
	assert_false(rls_edge_queue_take(&queue, 9, &edge));
	assert_true(rls_edge_queue_take(&queue, 15, &edge));
	assert_true(edge.time_ns == 10 && edge.now == 1 && !edge.gap);
	assert_false(rls_edge_queue_take(&queue, 15, &edge));
	assert_true(rls_edge_queue_take(&queue, 20, &edge));
	assert_true(edge.now == 2 && edge.gap);
	rls_edge_queue_clear(&queue);
}

/* Nobody takes them: the oldest go, and that some are missing is said. */
static void lets_go_of_the_oldest(void **state)
{
	struct rls_edge_queue queue = {0};
	struct rls_queued_edge edge;
	uint32_t taken = 0;

	(void)state;
	for (uint32_t i = 1; i <= RLS_EDGES_QUEUED + 7; i++)
		assert_int_equal(rls_edge_queue_add(
					 &queue, &(struct rls_queued_edge){.time_ns = i, .now = i}),
				 0);
	while (rls_edge_queue_take(&queue, UINT64_MAX, &edge)) {
		assert_int_equal(edge.now, taken + 8);
		assert_int_equal(edge.gap, !taken);
		taken++;
	}
	assert_int_equal(taken, RLS_EDGES_QUEUED);
	rls_edge_queue_clear(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_each_when_it_is_due),
		cmocka_unit_test(lets_go_of_the_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
