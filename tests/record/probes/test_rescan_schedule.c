/* When a process's tables are looked at again, and which looks are left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/record/probes/rescan_schedule.h"

#define NOW_NS 1000000000ULL

/* Looks taken of those that become due; *last_ns: the age at the last. */
static size_t count_looks(struct rls_rescan_schedule *looks, bool imported, uint64_t *last_ns)
{
	size_t count = 0;
	uint64_t due_ns, before_ns = 0;

	while ((due_ns = rls_rescan_schedule_due_ns(looks))) {
		assert_true(due_ns > before_ns);
		before_ns = due_ns;
		if (!rls_rescan_schedule_take(looks, imported))
			continue;
		count++;
		*last_ns = due_ns - NOW_NS;
	}
	return count;
}

static void none_is_due_before_something_is_mapped(void **state)
{
	struct rls_rescan_schedule looks = {0};

	assert_int_equal(rls_rescan_schedule_due_ns(&looks), 0);
}

static void whoever_imports_is_looked_at_each_time(void **state)
{
	struct rls_rescan_schedule looks;
	uint64_t last_ns = 0;

	rls_rescan_schedule_start(&looks, getpid(), true, NOW_NS);
	assert_int_equal(rls_rescan_schedule_due_ns(&looks), NOW_NS + 50000000);
	assert_int_equal(count_looks(&looks, true, &last_ns), 7);
	assert_int_equal(last_ns, 20000000000ULL);
}

static void whoever_does_not_is_looked_at_once_more(void **state)
{
	struct rls_rescan_schedule looks;
	uint64_t last_ns = 0;

	rls_rescan_schedule_start(&looks, getpid(), true, NOW_NS);
	assert_int_equal(count_looks(&looks, false, &last_ns), 1);
	assert_int_equal(last_ns, 20000000000ULL);
}

/* Its import may only begin, or be about to end. */
static void a_new_library_is_looked_at_at_once(void **state)
{
	struct rls_rescan_schedule looks;

	rls_rescan_schedule_start(&looks, getpid(), false, NOW_NS);
	assert_true(rls_rescan_schedule_take(&looks, false));
	assert_false(rls_rescan_schedule_take(&looks, false));
}

static void an_import_is_followed_by_a_look_more(void **state)
{
	struct rls_rescan_schedule looks;

	rls_rescan_schedule_start(&looks, getpid(), true, NOW_NS);
	assert_false(rls_rescan_schedule_take(&looks, false));
	assert_true(rls_rescan_schedule_take(&looks, true));
	assert_true(rls_rescan_schedule_take(&looks, false));
	assert_false(rls_rescan_schedule_take(&looks, false));
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
