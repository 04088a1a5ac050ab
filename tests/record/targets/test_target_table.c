#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/record/targets/target_table.h"

static void a_process_is_there_once(void **state)
{
	struct rls_targets targets = {0};

	assert_null(rls_targets_find(&targets, 7));
	assert_int_equal(rls_targets_add(&targets, 7, false), 0);
	assert_int_equal(rls_targets_add(&targets, 7, true), 0);
	assert_int_equal(rls_targets_add(&targets, 7, false), 0);
	assert_int_equal(targets.count, 1);
	assert_true(rls_targets_find(&targets, 7)->root); /* once named, it stays so */
	assert_int_equal(rls_targets_roots(&targets), 1);
	rls_targets_clear(&targets);
	assert_int_equal(targets.count, 0);
	assert_null(rls_targets_find(&targets, 7));
}

static void removing_keeps_the_others(void **state)
{
	struct rls_targets targets = {0};

	for (pid_t pid = 1; pid <= 100; pid++)
		assert_int_equal(rls_targets_add(&targets, pid, pid % 10 == 0), 0);
	assert_int_equal(rls_targets_roots(&targets), 10);
	rls_targets_ended(&targets, 1000, 5); /* nobody's */
	assert_int_equal(targets.count, 100);
	for (pid_t pid = 1; pid <= 100; pid += 2)
		rls_targets_ended(&targets, pid, 5);
	assert_int_equal(targets.count, 50);
	assert_int_equal(rls_targets_roots(&targets), 10);
	for (pid_t pid = 1; pid <= 100; pid++) {
		const struct rls_target *found = rls_targets_find(&targets, pid);

		if (pid % 2) {
			assert_null(found);
			continue;
		}
		assert_int_equal(found->pid, pid);
		assert_int_equal(found->root, pid % 10 == 0);
	}
	rls_targets_clear(&targets);
}

static void the_earliest_look_wins(void **state)
{
	struct rls_targets targets = {0};

	rls_targets_add(&targets, 7, true);
	rls_targets_add(&targets, 8, false);
	rls_targets_scan_at(&targets, 7, 500);
	rls_targets_scan_at(&targets, 7, 900);
	assert_int_equal(rls_targets_find(&targets, 7)->scan_ns, 500);
	rls_targets_scan_at(&targets, 7, 300);
	assert_int_equal(rls_targets_find(&targets, 7)->scan_ns, 300);
	assert_int_equal(rls_targets_find(&targets, 8)->scan_ns, 0);
	rls_targets_scan_at(&targets, 9, 100); /* nobody's */
	rls_targets_scan_at(&targets, 0, 400); /* everybody */
	assert_int_equal(rls_targets_find(&targets, 7)->scan_ns, 300);
	assert_int_equal(rls_targets_find(&targets, 8)->scan_ns, 400);
	rls_targets_clear(&targets);
}

/* ---- observers ---- */

#define OBSERVERS 3

struct observer {
	size_t place;
	const struct rls_targets *targets;
	unsigned int forks, orphans, forgotten[RLS_TARGET_CLOSED + 1];
	unsigned int order; /* of its last forget among all */
	int error;
};

static unsigned int forgets;

static int on_fork(void *context, const struct rls_target *parent, struct rls_target *child,
		   uint64_t time_ns)
{
	struct observer *observer = context;

	assert_int_equal(time_ns, 100);
	observer->forks++;
	observer->orphans += !parent;
	if (!child->state[observer->place])
		child->state[observer->place] = malloc(1);
	return observer->error;
}

static void on_forget(void *context, struct rls_target *target, enum rls_target_over why,
		      uint64_t time_ns)
{
	struct observer *observer = context;

	assert_ptr_equal(rls_targets_find(observer->targets, target->pid), target);
	observer->forgotten[why]++;
	observer->order = ++forgets;
	free(target->state[observer->place]);
	target->state[observer->place] = NULL;
}

static void observe(struct rls_targets *targets, struct observer *observers)
{
	for (size_t i = 0; i < OBSERVERS; i++) {
		const struct rls_target_observer observer = {on_fork, on_forget, &observers[i]};

		observers[i].targets = targets;
		assert_int_equal(rls_targets_observe(targets, &observer, &observers[i].place), 0);
	}
}

static void leave(struct rls_targets *targets, const struct observer *observers)
{
	for (size_t i = OBSERVERS; i-- > 0;)
		rls_targets_leave(targets, observers[i].place);
	rls_targets_clear(targets);
}

/* Whatever happens to a process, all parts that keep something of it are called. */
static void each_event_reaches_every_observer(void **state)
{
	static const struct {
		void (*happen)(struct rls_targets *targets, pid_t pid, uint64_t time_ns);
		enum rls_target_over why;
	} ends[] = {
		{rls_targets_ended, RLS_TARGET_ENDED},
		{rls_targets_unfollow, RLS_TARGET_UNFOLLOWED},
	};
	struct observer observers[OBSERVERS] = {0};
	struct rls_targets targets = {0};

	observe(&targets, observers);
	rls_targets_add(&targets, 1, true);
	for (pid_t pid = 70000000; pid < 70000002; pid++)
		assert_int_equal(rls_targets_forked(&targets, 1, pid, 100), 0);
	assert_int_equal(rls_targets_execed(&targets, 70000000, 200), 0);
	assert_int_equal(targets.count, 3);
	for (pid_t i = 0; i < 2; i++) {
		ends[i].happen(&targets, 70000000 + i, 300);
		assert_null(rls_targets_find(&targets, 70000000 + i));
	}
	for (size_t i = 0; i < OBSERVERS; i++) {
		assert_int_equal(observers[i].forks, 2);
		assert_int_equal(observers[i].orphans, 0);
		for (enum rls_target_over why = 0; why < RLS_TARGET_CLOSED; why++)
			assert_int_equal(observers[i].forgotten[why], 1);
	}
	assert_true(observers[0].order > observers[1].order &&
		    observers[1].order > observers[2].order);
	leave(&targets, observers);
	for (size_t i = 0; i < OBSERVERS; i++)
		assert_int_equal(observers[i].forgotten[RLS_TARGET_CLOSED], 1);
}

static void one_that_fails_keeps_nothing_from_the_others(void **state)
{
	struct observer observers[OBSERVERS] = {{.error = -ENOMEM}};
	struct rls_targets targets = {0};

	observe(&targets, observers);
	assert_int_equal(rls_targets_forked(&targets, 5, 70000000, 100), -ENOMEM);
	for (size_t i = 0; i < OBSERVERS; i++)
		assert_int_equal(observers[i].orphans, 1);
	leave(&targets, observers);
}

/* Its number is that of a process whose end was missed. */
static void a_number_that_is_used_again_is_another_process(void **state)
{
	struct observer observers[OBSERVERS] = {0};
	struct rls_targets targets = {0};

	observe(&targets, observers);
	assert_int_equal(rls_targets_forked(&targets, 5, 70000000, 100), 0);
	rls_targets_find(&targets, 70000000)->root = true;
	assert_int_equal(rls_targets_forked(&targets, 5, 70000000, 100), 0);
	assert_int_equal(targets.count, 1);
	assert_false(rls_targets_find(&targets, 70000000)->root);
	for (size_t i = 0; i < OBSERVERS; i++)
		assert_int_equal(observers[i].forgotten[RLS_TARGET_ENDED], 1);
	leave(&targets, observers);
}

/* A process that was found in /proc may be reported as a child after that. */
static void a_fork_reported_late_is_of_the_same_process(void **state)
{
	struct observer observers[OBSERVERS] = {0};
	struct rls_targets targets = {0};

	observe(&targets, observers);
	assert_int_equal(rls_targets_add(&targets, getpid(), true), 0);
	assert_int_equal(rls_targets_forked(&targets, getppid(), getpid(), 100), 0);
	assert_true(rls_targets_find(&targets, getpid())->root);
	for (size_t i = 0; i < OBSERVERS; i++) {
		assert_int_equal(observers[i].forgotten[RLS_TARGET_ENDED], 0);
		assert_int_equal(observers[i].forks, 1);
	}
	leave(&targets, observers);
}

/* Whatever its fork's record was lost for. */
static void who_executes_is_a_target(void **state)
{
	struct observer observers[OBSERVERS] = {0};
	struct rls_targets targets = {0};

	observe(&targets, observers);
	assert_int_equal(rls_targets_execed(&targets, 70000000, 100), 0);
	assert_non_null(rls_targets_find(&targets, 70000000));
	leave(&targets, observers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_there_once),
		cmocka_unit_test(removing_keeps_the_others),
		cmocka_unit_test(the_earliest_look_wins),
		cmocka_unit_test(each_event_reaches_every_observer),
		cmocka_unit_test(one_that_fails_keeps_nothing_from_the_others),
		cmocka_unit_test(a_number_that_is_used_again_is_another_process),
		cmocka_unit_test(a_fork_reported_late_is_of_the_same_process),
		cmocka_unit_test(who_executes_is_a_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
