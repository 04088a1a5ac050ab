/* The recorder keeps off its targets' CPUs: which are left, and that it goes there and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/cpu/cpu_affinity.h"

static cpu_set_t set_of(uint64_t bits)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (size_t cpu = 0; cpu < 64; cpu++) {
		if (bits >> cpu & 1)
			CPU_SET(cpu, &set);
	}
	return set;
}

static void check(uint64_t allowed, uint64_t taken, uint64_t expected)
{
	const cpu_set_t allowed_set = set_of(allowed), taken_set = set_of(taken);
	const cpu_set_t chosen = rls_affinity_choose(&allowed_set, &taken_set);
	const cpu_set_t expected_set = set_of(expected);

	assert_true(CPU_EQUAL(&chosen, &expected_set));
}

static void leaves_what_is_taken(void **state)
{
	(void)state;
	check(0x3, 0x1, 0x2);
	check(0xff, 0x81, 0x7e);
	check(0x3, 0x0, 0x3);
	check(0x3, 0x4, 0x3); /* not ours to leave */
	check(0x3, 0x3, 0x3); /* nothing would be left */
	check(0x2, 0x2, 0x2);
}

/* Of a thread that runs where we do: ourselves. */
static void goes_elsewhere_and_comes_back(void **state)
{
	struct rls_affinity affinity;
	cpu_set_t before, now;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	rls_affinity_open(&affinity);
	if (!affinity.able)
		skip();
	rls_affinity_saw(&affinity, (uint32_t)getpid(), (uint32_t)getpid());
	rls_affinity_saw(&affinity, 0x7ffffff0, 0x7ffffff0); /* gone */
	rls_affinity_tick(&affinity, 1);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_int_equal(CPU_COUNT(&now), CPU_COUNT(&before) - 1);
	assert_true(affinity.moved);
	rls_affinity_tick(&affinity, 2); /* not yet due */
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_int_equal(CPU_COUNT(&now), CPU_COUNT(&before) - 1);
	rls_affinity_close(&affinity);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
}

/* Of ourselves again: we keep off where we were, and visit where we are. */
static void visits_the_latest_and_leaves(void **state)
{
	struct rls_affinity affinity;
	cpu_set_t before, now;
	int cpu, nice;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	rls_affinity_open(&affinity);
	if (!affinity.able)
		skip();
	rls_affinity_visit(&affinity); /* nobody was seen */
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
	rls_affinity_leave(&affinity);
	rls_affinity_saw(&affinity, (uint32_t)getpid(), (uint32_t)getpid());
	nice = getpriority(PRIO_PROCESS, 0);
	rls_affinity_visit(&affinity);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_int_equal(CPU_COUNT(&now), 1);
	cpu = sched_getcpu();
	assert_true(cpu >= 0 && CPU_ISSET((size_t)cpu, &now));
	assert_true(getpriority(PRIO_PROCESS, 0) <= nice);
	rls_affinity_leave(&affinity);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
	assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
	if (!sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1})) {
		rls_affinity_visit(&affinity);
		assert_false(affinity.visiting);
		sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
		rls_affinity_visit(&affinity);
		assert_true(affinity.visiting);
		rls_affinity_leave(&affinity);
	}
	rls_affinity_saw(&affinity, 0x7ffffff0, 0x7ffffff0); /* gone */
	rls_affinity_visit(&affinity);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
	rls_affinity_close(&affinity);
}

static uint32_t busy_tid;
static bool over;

static void *be_busy(void *unused)
{
	(void)unused;
	__atomic_store_n(&busy_tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* Before anything is recorded: the thread that runs, though others have run longer. We ask, and so run, too:
 * from a child, for which nobody but that thread runs. */
static void expects_the_busiest(void **state)
{
	struct rls_affinity affinity = {.latest = {1, 1}};
	int status = -1;
	pthread_t thread;
	pid_t child;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, be_busy, NULL), 0);
	while (!__atomic_load_n(&busy_tid, __ATOMIC_ACQUIRE))
		;
	child = fork();
	if (!child) {
		/* The parent waits before long. */
		for (int i = 0; i < 1000 && affinity.latest.tid != busy_tid; i++) {
			usleep(10000);
			rls_affinity_expect(&affinity, getppid());
		}
		_exit(affinity.latest.tid == busy_tid ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(status, 0);
	rls_affinity_expect(&affinity, 0x7ffffff0); /* gone: whoever it was */
	assert_int_equal(affinity.latest.tid, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_what_is_taken),
		cmocka_unit_test(goes_elsewhere_and_comes_back),
		cmocka_unit_test(visits_the_latest_and_leaves),
		cmocka_unit_test(expects_the_busiest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
