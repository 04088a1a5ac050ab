/* The crew that closes links: each once, where and as urgently as the caller works, in children too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "userspace/attach/closing.h"
#include "userspace/attach/links.h"

#define LINKS 300
#define NICE 7

static int closed[LINKS];
static bool waits;
static int elsewhere, other_nice, by_others;
static pid_t caller;

/* A link is its number. As the kernel does, it has who closes it wait. */
int __wrap_bpf_link__destroy(struct bpf_link *link);
int __wrap_bpf_link__destroy(struct bpf_link *link)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	cpu_set_t cpus;

	if (waits)
		nanosleep(&pause, NULL);
	__atomic_fetch_add(&closed[(uintptr_t)link - 1], 1, __ATOMIC_RELAXED);
	if (gettid() == caller)
		return 0;
	__atomic_fetch_add(&by_others, 1, __ATOMIC_RELAXED);
	if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) != 1)
		__atomic_fetch_add(&elsewhere, 1, __ATOMIC_RELAXED);
	if (getpriority(PRIO_PROCESS, 0) != NICE)
		__atomic_fetch_add(&other_nice, 1, __ATOMIC_RELAXED);
	return 0;
}

static bool close_all(size_t count)
{
	struct rls_live_link links[LINKS];

	caller = gettid();
	for (size_t i = 0; i < LINKS; i++) {
		links[i] = (struct rls_live_link){.link = (struct bpf_link *)(i + 1)}; /* NOLINT */
		closed[i] = 0;
	}
	rls_closing_run(links, count);
	for (size_t i = 0; i < LINKS; i++) {
		if (closed[i] != (i < count))
			return false;
	}
	return true;
}

static void each_is_closed_once(void **state)
{
	(void)state;
	assert_true(close_all(0));
	assert_true(close_all(1));
	assert_true(close_all(LINKS));
	assert_true(close_all(2));
	assert_true(close_all(LINKS));
}

/* So it does not take LINKS times as long as one. */
static void they_are_closed_side_by_side_where_the_caller_is(void **state)
{
	cpu_set_t before, one;
	bool all;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	rls_closing_prepare(LINKS); /* before the priority changes */
	assert_int_equal(setpriority(PRIO_PROCESS, 0, NICE), 0);
	waits = true;
	by_others = elsewhere = other_nice = 0;
	all = close_all(LINKS);
	waits = false;
	sched_setaffinity(0, sizeof(before), &before);
	assert_true(all);
	assert_true(by_others > LINKS / 2);
	assert_int_equal(elsewhere, 0);
	assert_int_equal(other_nice, 0);
}

/* It has none of its parent's threads. */
static void a_child_has_its_own_crew(void **state)
{
	int status = -1;
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(close_all(LINKS) ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(close_all(LINKS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_closed_once),
		cmocka_unit_test(they_are_closed_side_by_side_where_the_caller_is),
		cmocka_unit_test(a_child_has_its_own_crew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
