#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/targets/followed.h"

static void a_process_is_there_once(void **state)
{
	struct rls_processes processes = { 0 };

	assert_null(rls_processes_find(&processes, 7));
	assert_int_equal(rls_processes_add(&processes, 7, false), 0);
	assert_int_equal(rls_processes_add(&processes, 7, true), 0);
	assert_int_equal(rls_processes_add(&processes, 7, false), 0);
	assert_int_equal(processes.count, 1);
	assert_true(rls_processes_find(&processes, 7)->root); /* once named, it stays so */
	assert_int_equal(rls_processes_roots(&processes), 1);
	rls_processes_clear(&processes);
	assert_int_equal(processes.count, 0);
	assert_null(rls_processes_find(&processes, 7));
}

static void removing_keeps_the_others(void **state)
{
	struct rls_processes processes = { 0 };

	for (pid_t pid = 1; pid <= 100; pid++)
		assert_int_equal(rls_processes_add(&processes, pid, pid % 10 == 0), 0);
	assert_int_equal(rls_processes_roots(&processes), 10);
	rls_processes_remove(&processes, 1000); /* nobody's */
	assert_int_equal(processes.count, 100);
	for (pid_t pid = 1; pid <= 100; pid += 2)
		rls_processes_remove(&processes, pid);
	assert_int_equal(processes.count, 50);
	assert_int_equal(rls_processes_roots(&processes), 10);
	for (pid_t pid = 1; pid <= 100; pid++) {
		const struct rls_followed *found = rls_processes_find(&processes, pid);

		if (pid % 2) {
			assert_null(found);
			continue;
		}
		assert_int_equal(found->pid, pid);
		assert_int_equal(found->root, pid % 10 == 0);
	}
	rls_processes_clear(&processes);
}

static void the_earliest_look_wins(void **state)
{
	struct rls_processes processes = { 0 };

	rls_processes_add(&processes, 7, true);
	rls_processes_add(&processes, 8, false);
	rls_processes_look(&processes, 7, 500);
	rls_processes_look(&processes, 7, 900);
	assert_int_equal(rls_processes_find(&processes, 7)->look_ns, 500);
	rls_processes_look(&processes, 7, 300);
	assert_int_equal(rls_processes_find(&processes, 7)->look_ns, 300);
	assert_int_equal(rls_processes_find(&processes, 8)->look_ns, 0);
	rls_processes_look(&processes, 9, 100); /* nobody's */
	rls_processes_look(&processes, 0, 400); /* everybody */
	assert_int_equal(rls_processes_find(&processes, 7)->look_ns, 300);
	assert_int_equal(rls_processes_find(&processes, 8)->look_ns, 400);
	rls_processes_clear(&processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_there_once),
		cmocka_unit_test(removing_keeps_the_others),
		cmocka_unit_test(the_earliest_look_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
