#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/record/targets/scan.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* ---- names ---- */

static bool is_named(const char *glob, const char *comm, const char *cmdline, size_t bytes)
{
	struct rls_selector selector = {RLS_SELECT_NAME, (char *)glob, 0};
	struct rls_candidate candidate = {.cmdline = (char *)cmdline, .cmdline_bytes = bytes};

	strncpy(candidate.comm, comm, sizeof(candidate.comm) - 1);
	return rls_selector_matches(&selector, &candidate);
}

#define named(glob, comm, cmdline) is_named(glob, comm, cmdline, sizeof(cmdline))

static void a_name_is_comm_program_or_script(void **state)
{
	assert_true(named("python3", "python3", "/usr/bin/python3\0train.py"));
	assert_true(named("python3.11", "python3", "/opt/venv/bin/python3.11\0train.py"));
	assert_true(named("train.py", "python3", "python3\0/home/me/train.py\0--seed\0001"));
	assert_true(named("train*", "python3", "python3\0-u\0-X\0dev\0-W\0ignore\0train.py"));
	assert_true(named("rl.train", "python3", "python3\0-u\0-m\0rl.train\0--env\0Ant"));
	assert_true(named("ray::*", "ray::rollout", "ray::rollout"));
	assert_true(named("train.sh", "bash", "/bin/bash\0./train.sh"));
	assert_true(named("*", "x", ""));
}

static void a_name_is_nothing_else(void **state)
{
	assert_false(named("train", "python3", "python3\0train.py"));
	assert_false(named("config.py", "python3", "python3\0train.py\0config.py"));
	assert_false(named("dev", "python3", "python3\0-X\0dev\0train.py"));
	assert_false(named("train.py", "python3", "python3\0-c\0pass\0train.py"));
	assert_false(named("home", "python3", "python3\0/home/me/train.py"));
	assert_false(named("/home/me/train.py", "python3", "python3\0/home/me/train.py"));
	assert_false(named("Train.py", "python3", "python3\0train.py"));
	assert_false(named("?", "", ""));
}

static void hostile_command_lines_do_no_harm(void **state)
{
	assert_false(is_named("x", "", "", 0));
	assert_false(is_named("x", "", "\0", 2));
	assert_false(is_named("x", "", NULL, 0));
	assert_false(named("x", "", "\0\0\0\0"));
	assert_false(named("x", "", "python\0-m"));
	assert_false(named("x", "", "python\0-X"));
	assert_false(named("x", "", "python\0-X\0x\0-"));
	assert_true(named("", "y", "python\0\0"));
}

/* ---- selections ---- */

static void selectors_are_a_union(void **state)
{
	struct rls_selection selection = {0};
	struct rls_candidate job = {.comm = "python3", .is_job = true};
	struct rls_candidate contained = {.comm = "bash", .container = ID};
	struct rls_candidate grouped = {.comm = "sh", .cgroup = (char *)"0::/jobs/one\n"};

	assert_false(rls_selection_matches(&selection, &job));
	assert_int_equal(rls_selection_add(&selection, RLS_SELECT_CONTAINER, "0123456789AB"), 0);
	assert_true(rls_selection_matches(&selection, &contained));
	assert_false(rls_selection_matches(&selection, &grouped));
	assert_int_equal(rls_selection_add(&selection, RLS_SELECT_CGROUP, "/jobs"), 0);
	assert_true(rls_selection_matches(&selection, &grouped));
	assert_false(rls_selection_matches(&selection, &job));
	assert_int_equal(rls_selection_add(&selection, RLS_SELECT_ALL, NULL), 0);
	assert_true(rls_selection_matches(&selection, &job));
	job.is_job = false;
	assert_false(rls_selection_matches(&selection, &job));
	assert_int_equal(selection.kinds,
			 RLS_SELECT_CONTAINER | RLS_SELECT_CGROUP | RLS_SELECT_ALL);
	rls_selection_clear(&selection);
	assert_int_equal(selection.count, 0);
}

static void texts_that_select_nothing_are_refused(void **state)
{
	struct rls_selection selection = {0};

	assert_int_equal(rls_selection_add(&selection, RLS_SELECT_NAME, ""), -EINVAL);
	assert_int_equal(rls_selection_add(&selection, RLS_SELECT_CGROUP, ""), -EINVAL);
	assert_int_equal(rls_selection_add(&selection, RLS_SELECT_CONTAINER, ""), -EINVAL);
	assert_int_equal(rls_selection_add(&selection, RLS_SELECT_CONTAINER, "web"), -EINVAL);
	assert_int_equal(rls_selection_add(&selection, RLS_SELECT_CONTAINER, ID "0"), -EINVAL);
	assert_int_equal(selection.count, 0);
	assert_int_equal(selection.kinds, 0);
	assert_int_equal(rls_selection_add(&selection, RLS_SELECT_CONTAINER, ID), 0);
	rls_selection_clear(&selection);
}

/* ---- processes ---- */

static void our_own_process_is_no_candidate(void **state)
{
	struct rls_selection selection = {.kinds = RLS_SELECT_NAME};
	struct rls_candidate candidate = {.pid = 7};

	assert_int_equal(rls_candidate_read(&selection, NULL, getpid(), &candidate), -ESRCH);
	assert_int_equal(rls_candidate_read(&selection, NULL, 2, &candidate),
			 -ESRCH); /* kthreadd */
	assert_int_equal(candidate.pid, 7);
}

static pid_t start_named(const char *name)
{
	int pipes[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		if (write(pipes[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	close(pipes[1]);
	return pid;
}

static int collect(const struct rls_candidate *candidate, void *context)
{
	pid_t *found = context;

	assert_int_equal(*found, 0);
	assert_int_equal(candidate->ppid, getpid());
	*found = candidate->pid;
	return 0;
}

static void a_scan_finds_those_who_live(void **state)
{
	const char *name = ") S 1 (x\\*"; /* looks like the fields behind it */
	struct rls_selection selection = {0};
	pid_t pid = start_named(name), found = 0;
	siginfo_t ended;

	assert_int_equal(rls_selection_add(&selection, RLS_SELECT_NAME, ") S 1 (x*"), 0);
	assert_int_equal(rls_selection_resolve(&selection), 0);
	assert_int_equal(selection.selectors[0].matches, 1);
	assert_int_equal(rls_scan(&selection, NULL, collect, &found), 0);
	assert_int_equal(found, pid);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
	found = 0;
	assert_int_equal(rls_scan(&selection, NULL, collect, &found), 0);
	assert_int_equal(found, 0); /* a zombie */
	waitpid(pid, NULL, 0);
	rls_selection_clear(&selection);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_comm_program_or_script),
		cmocka_unit_test(a_name_is_nothing_else),
		cmocka_unit_test(hostile_command_lines_do_no_harm),
		cmocka_unit_test(selectors_are_a_union),
		cmocka_unit_test(texts_that_select_nothing_are_refused),
		cmocka_unit_test(our_own_process_is_no_candidate),
		cmocka_unit_test(a_scan_finds_those_who_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
