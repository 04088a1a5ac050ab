/* Which operation a launch was in, from what threads were in since when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bpf/wire/record.h"
#include "bpf/wire/totals.h"
#include "userspace/monitor/launches.h"

#define MAIN 10
#define HELPER 11
#define OTHER 12

static struct rls_launches launches;

static int clear(void **state)
{
	rls_launches_clear(&launches);
	return 0;
}

static void queue_change(uint32_t tid, uint64_t since_ns, uint32_t name, bool source)
{
	const struct rls_wire_name_change change = {
		.header = {.tid = tid, .time_ns = since_ns}, .name = name, .source = source};

	assert_int_equal(rls_launches_change(&launches, &change), 0);
}

static void launch(uint64_t correlation, uint32_t tid, uint64_t time_ns)
{
	struct rls_event event = {.kind = RLS_EVENT_LAUNCH, .tid = tid, .time_ns = time_ns};

	event.launch.correlation = correlation;
	assert_int_equal(rls_launches_add(&launches, &event), 0);
}

static void assert_in(uint64_t correlation, uint32_t operation, uint32_t phase)
{
	uint32_t o, p;

	rls_launches_find(&launches, correlation, &o, &p);
	assert_int_equal(o, operation);
	assert_int_equal(p, phase);
}

static void a_launch_is_in_what_its_thread_was_in(void **state)
{
	launch(1, MAIN, 150); /* reported before the operation is */
	queue_change(0, 0, 7, false);
	queue_change(MAIN, 0, 1, true);
	queue_change(MAIN, 100, 2, true);
	queue_change(0, 180, 8, false);
	queue_change(MAIN, 200, 0, true);
	launch(2, MAIN, 99);
	launch(3, MAIN, 200);
	launch(4, MAIN, 100);
	assert_in(1, 2, 7);
	assert_in(2, 1, 7);
	assert_in(3, 0, 8);
	assert_in(4, 2, 7);
	assert_in(5, 0, 0);
	assert_in(0, 0, 0);
}

static void helpers_are_in_what_the_source_is_in(void **state)
{
	queue_change(MAIN, 100, 1, true);
	queue_change(OTHER, 150, 5, false);
	launch(1, HELPER, 120);
	launch(2, OTHER, 120);
	launch(3, OTHER, 160);
	launch(4, HELPER, 50);
	assert_in(1, 1, 0);
	assert_in(2, 1, 0);
	assert_in(3, 5, 0);
	assert_in(4, 0, 0);
	/* Its number is another thread's from then on. The source's end leaves things as they are. */
	queue_change(OTHER, 200, RLS_TOTALS_INHERITS, false);
	queue_change(MAIN, 210, RLS_TOTALS_INHERITS, true);
	launch(5, OTHER, 220);
	assert_in(5, 1, 0);
}

static void what_is_old_is_forgotten_but_for_what_holds_on(void **state)
{
	for (uint32_t i = 1; i <= 1000; i++)
		queue_change(MAIN, i, i, true);
	queue_change(OTHER, 10, 3, false);
	queue_change(OTHER, 20, RLS_TOTALS_INHERITS, false);
	rls_launches_forget(&launches, 500);
	assert_int_equal(launches.source.count, 501);
	assert_null(rls_index_map_get(&launches.threads, OTHER, 0));
	launch(1, MAIN, 600);
	launch(2, MAIN, 5000);
	assert_in(1, 600, 0);
	assert_in(2, 1000, 0);
	rls_launches_forget(&launches, 100000);
	assert_int_equal(launches.source.count, 1);
	assert_in(2, 1000, 0);
}

/* Whatever a target makes up. */
static void memory_is_bounded(void **state)
{
	for (uint32_t i = 0; i < 3 * RLS_LAUNCHES_CHANGES; i++)
		queue_change(MAIN, i % 7 ? 1000 : i, i, true);
	assert_true(launches.source.count <= RLS_LAUNCHES_CHANGES);
	for (uint32_t i = 1; i < 3 * RLS_LAUNCHES_THREADS; i++)
		queue_change(i, 5, i, false);
	assert_true(launches.threads.count <= RLS_LAUNCHES_THREADS);
	for (uint64_t i = 1; i < 3 * RLS_LAUNCHES_KEPT; i++)
		launch(i, MAIN, i);
	assert_in(1, 0, 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, NULL, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_launch_is_in_what_its_thread_was_in),
		TEST(helpers_are_in_what_the_source_is_in),
		TEST(what_is_old_is_forgotten_but_for_what_holds_on),
		TEST(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
