/* When a process's tables are looked at again, and which scans are left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/record/probes/rescan_schedule.h"

#define NOW_NS 1000000000ULL

/* Looks taken of those that become due; *last_ns: the age at the last. */
static size_t count_scans(struct rls_rescan_schedule *schedule, bool imported, uint64_t *last_ns)
{
	size_t count = 0;
	uint64_t due_ns, before_ns = 0;

	while ((due_ns = rls_rescan_schedule_due_ns(schedule))) {
		assert_true(due_ns > before_ns);
		before_ns = due_ns;
		if (!rls_rescan_schedule_take(schedule, imported))
			continue;
		count++;
		*last_ns = due_ns - NOW_NS;
	}
	return count;
}

static void none_is_due_before_something_is_mapped(void **state)
{
	struct rls_rescan_schedule schedule = {0};

	assert_int_equal(rls_rescan_schedule_due_ns(&schedule), 0);
}

static void whoever_imports_is_looked_at_each_time(void **state)
{
	struct rls_rescan_schedule schedule;
	uint64_t last_ns = 0;

	rls_rescan_schedule_start(&schedule, getpid(), true, NOW_NS);
	assert_int_equal(rls_rescan_schedule_due_ns(&schedule), NOW_NS + 50000000);
	assert_int_equal(count_scans(&schedule, true, &last_ns), 7);
	assert_int_equal(last_ns, 20000000000ULL);
}

static void whoever_does_not_is_looked_at_once_more(void **state)
{
	struct rls_rescan_schedule schedule;
	uint64_t last_ns = 0;

	rls_rescan_schedule_start(&schedule, getpid(), true, NOW_NS);
	assert_int_equal(count_scans(&schedule, false, &last_ns), 1);
	assert_int_equal(last_ns, 20000000000ULL);
}

/* Its import may only begin, or be about to end. */
static void a_new_library_is_looked_at_at_once(void **state)
{
	struct rls_rescan_schedule schedule;

	rls_rescan_schedule_start(&schedule, getpid(), false, NOW_NS);
	assert_true(rls_rescan_schedule_take(&schedule, false));
	assert_false(rls_rescan_schedule_take(&schedule, false));
}

static void an_import_is_followed_by_a_look_more(void **state)
{
	struct rls_rescan_schedule schedule;

	rls_rescan_schedule_start(&schedule, getpid(), true, NOW_NS);
	assert_false(rls_rescan_schedule_take(&schedule, false));
	assert_true(rls_rescan_schedule_take(&schedule, true));
	assert_true(rls_rescan_schedule_take(&schedule, false));
	assert_false(rls_rescan_schedule_take(&schedule, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_is_due_before_something_is_mapped),
		cmocka_unit_test(whoever_imports_is_looked_at_each_time),
		cmocka_unit_test(whoever_does_not_is_looked_at_once_more),
		cmocka_unit_test(a_new_library_is_looked_at_at_once),
		cmocka_unit_test(an_import_is_followed_by_a_look_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
