/* Into threads that would notice: registers, vectors, red zone, flags, mask, signal stack. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/inject/inject.h"
#include "userspace/inject/sandbox.h"

#define LIBRARY FOLDER "/injected.so"
#define LIMIT_NS 5000000000ULL

struct keeper {
	pid_t pid;
	int in, out; /* its standard streams, our ends */
};

static struct keeper start(const char *program, const char *second)
{
	struct keeper keeper;
	char said[6];
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	keeper.pid = fork();
	if (!keeper.pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(program, program, "3", second, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	keeper.in = in[1];
	keeper.out = out[0];
	assert_int_equal(read(keeper.out, said, 6), 6);
	assert_memory_equal(said, "ready\n", 6);
	return keeper;
}

static struct keeper start_keeper(void)
{
	return start(FOLDER "/inject_keeper", NULL);
}

/* Ends it; everything that it has said since. */
static int finish(struct keeper *keeper, char *said, size_t room)
{
	size_t length = 0;
	ssize_t got;
	int status;

	close(keeper->in);
	while ((got = read(keeper->out, said + length, room - 1 - length)) > 0)
		length += (size_t)got;
	said[length] = '\0';
	close(keeper->out);
	waitpid(keeper->pid, &status, 0);
	return status;
}

static int inject(pid_t pid, const char *library, const char *function, uint64_t limit_ns,
		  char *why)
{
	const struct rls_injection injection = {
		.pid = pid, .library = library, .start = function, .limit_ns = limit_ns};

	why[0] = '\0';
	return rls_inject(&injection, why);
}

static void test_nothing_is_lost(void **state)
{
	struct keeper keeper = start_keeper();
	char why[RLS_INJECT_WHY_BYTES], said[4096], expected[4096] = "";

	for (int i = 0; i < 100; i++) {
		if (inject(keeper.pid, LIBRARY, "started", LIMIT_NS, why))
			fail_msg("turn %d: the process %s", i, why);
		strcat(expected, "started\n");
	}
	strcat(expected, "kept\n");
	assert_int_equal(finish(&keeper, said, sizeof(said)), 0);
	assert_string_equal(said, expected);
}

/* Nobody runs: who sleeps makes the thread, and then sleeps on as if nothing had been. */
static void test_nobody_runs(void **state)
{
	const char *const kinds[] = {"condition", "instant", "nap", "poll", "select", "thread"};

	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		struct keeper keeper = start(FOLDER "/inject_sleeper", kinds[kind]);
		char why[RLS_INJECT_WHY_BYTES], said[4096], expected[4096] = "";

		for (int i = 0; i < 30; i++) {
			if (inject(keeper.pid, LIBRARY, "started", LIMIT_NS, why))
				fail_msg("%s, turn %d: the process %s", kinds[kind], i, why);
			strcat(expected, "started\n");
		}
		strcat(expected, "kept\n");
		assert_int_equal(finish(&keeper, said, sizeof(said)), 0);
		assert_string_equal(said, expected);
	}
}

static int count_folders(void)
{
	int count = 0;
	char line[256];
	FILE *list = popen("ls -d /tmp/rlscope-bpf-[0-9]*-* 2>/dev/null", "r");

	while (list && fgets(line, sizeof(line), list))
		count++;
	if (list)
		pclose(list);
	return count;
}

/* Where not everybody may read it a copy is made, loaded, and is gone then. */
static void test_copy(void **state)
{
	char private[] = "/tmp/test_inject.XXXXXX", library[64], command[256];
	struct keeper keeper = start_keeper();
	char why[RLS_INJECT_WHY_BYTES], said[256];
	int before = count_folders();

	assert_non_null(mkdtemp(private)); /* for its owner alone */
	snprintf(library, sizeof(library), "%s/injected.so", private);
	snprintf(command, sizeof(command), "cp %s %s", LIBRARY, library);
	assert_int_equal(system(command), 0);
	if (inject(keeper.pid, library, "started", LIMIT_NS, why))
		fail_msg("the process %s", why);
	assert_int_equal(count_folders(), before);
	snprintf(command, sizeof(command),
		 "grep -q 'rlscope-bpf-.*/injected.so (deleted)' /proc/%d/maps", keeper.pid);
	assert_int_equal(system(command), 0);
	assert_int_equal(finish(&keeper, said, sizeof(said)), 0);
	assert_string_equal(said, "started\nkept\n");
	snprintf(command, sizeof(command), "rm -r %s", private);
	assert_int_equal(system(command), 0);
}

static void expect_refusal(struct keeper *keeper, const char *library, const char *function,
			   int error, const char *word, int *status)
{
	char why[RLS_INJECT_WHY_BYTES], said[256];
	uint64_t limit_ns = error == -EAGAIN ? 200000000 : LIMIT_NS;

	assert_int_equal(inject(keeper->pid, library, function, limit_ns, why), error);
	if (!strstr(why, word))
		fail_msg("'%s' is not in '%s'", word, why);
	kill(keeper->pid, SIGCONT);
	*status = finish(keeper, said, sizeof(said));
	assert_string_equal(said, "kept\n");
}

static void test_refusals(void **state)
{
	char why[RLS_INJECT_WHY_BYTES];
	struct keeper keeper = start(FOLDER "/inject_keeper_static", NULL);
	int status;

	expect_refusal(&keeper, LIBRARY, "started", -ENOTSUP, "statically", &status);
	assert_int_equal(status, 0);
	keeper = start(FOLDER "/inject_keeper", "sleep");
	expect_refusal(&keeper, LIBRARY, "started", -EAGAIN, "was never seen in a state", &status);
	assert_int_equal(status, 0);
	keeper = start(FOLDER "/inject_sleeper", "lock");
	expect_refusal(&keeper, LIBRARY, "started", -EAGAIN, "was never seen in a state", &status);
	assert_int_equal(status, 0);
	keeper = start(FOLDER "/inject_sleeper", "relative");
	expect_refusal(&keeper, LIBRARY, "started", -EAGAIN, "was never seen in a state", &status);
	assert_int_equal(status, 0);
	keeper = start_keeper();
	kill(keeper.pid, SIGSTOP);
	waitpid(keeper.pid, NULL, WUNTRACED);
	expect_refusal(&keeper, LIBRARY, "started", -EBUSY, "stopped", &status);
	assert_int_equal(status, 0);
	keeper = start_keeper();
	expect_refusal(&keeper, FOLDER "/CTestTestfile.cmake", "started", -ENOEXEC,
		       "could not load", &status);
	assert_int_equal(status, 0);
	keeper = start_keeper();
	expect_refusal(&keeper, LIBRARY, "nothing_of_this_name", -ENOEXEC, "could not load",
		       &status);
	assert_int_equal(status, 0);
	assert_int_not_equal(inject(70000000, LIBRARY, "started", LIMIT_NS, why), 0);
	assert_non_null(strstr(why, "has ended"));
}

static void test_sandboxes(void **state)
{
	const char *const kinds[] = {"errors", "kills"};

	for (int kills = 0; kills < 2; kills++) {
		struct keeper keeper = start(FOLDER "/inject_keeper", kinds[kills]);
		char why[RLS_INJECT_WHY_BYTES], said[256];
		int r = inject(keeper.pid, LIBRARY, "started", LIMIT_NS, why);
		int status = finish(&keeper, said, sizeof(said));

		if (geteuid() || kills) {
			assert_int_not_equal(r, 0);
			assert_non_null(strstr(why, "is in a sandbox"));
			assert_string_equal(said, "kept\n");
		} else {
			assert_int_equal(r, 0);
			assert_string_equal(said, "started\nkept\n");
		}
		assert_int_equal(status, 0);
	}
}

static void test_guard_pages(void **state)
{
	struct keeper keeper = start(FOLDER "/inject_keeper", "guards");
	char why[RLS_INJECT_WHY_BYTES], said[256];

	if (inject(keeper.pid, LIBRARY, "started", LIMIT_NS, why))
		fail_msg("the process %s", why);
	assert_int_equal(finish(&keeper, said, sizeof(said)), 0);
	assert_string_equal(said, "started\nkept\n");
}

/* Filters in the shapes that libseccomp and by-hand ones have. */
static void test_filters(void **state)
{
	const struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 400, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x7e020000),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_filter endless[] = {
		BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_filter outside[] = {
		BPF_STMT(BPF_LD | BPF_MEM, 16),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct rls_sandbox_call thread = {SYS_clone, 0x3d0f00},
				      space = {SYS_clone, 0x10000000}, other = {500, 0};
	const size_t count = sizeof(program) / sizeof(program[0]);

	assert_int_equal(rls_sandbox_run(program, count, &thread), SECCOMP_RET_ALLOW);
	assert_int_equal(rls_sandbox_run(program, count, &space), SECCOMP_RET_ERRNO | 1);
	assert_int_equal(rls_sandbox_run(program, count, &other), SECCOMP_RET_ERRNO | 1);
	assert_int_equal(rls_sandbox_run(program, 5, &thread), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(rls_sandbox_run(endless, 2, &thread), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(rls_sandbox_run(outside, 2, &thread), SECCOMP_RET_KILL_PROCESS);
}

/* Whoever injects is killed at any instant: the process goes on, and can be injected into again. */
static void test_killed(void **state)
{
	struct keeper keeper = start_keeper();
	char why[RLS_INJECT_WHY_BYTES], said[65536], number[16];
	int status;

	snprintf(number, sizeof(number), "%d", keeper.pid);
	fcntl(keeper.out, F_SETPIPE_SZ, 1 << 20);
	srandom(6);
	for (int i = 0; i < 60; i++) {
		struct timespec life = {.tv_nsec = 1000000 + random() % 12000000};
		pid_t pid = fork();

		if (!pid) {
			int null = open("/dev/null", O_WRONLY);

			dup2(null, 1);
			dup2(null, 2);
			execl(FOLDER "/inject_again", "inject_again", number, LIBRARY, "started",
			      "1000", NULL);
			_exit(127);
		}
		nanosleep(&life, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	if (inject(keeper.pid, LIBRARY, "started", LIMIT_NS, why))
		fail_msg("in the end the process %s", why);
	status = finish(&keeper, said, sizeof(said));
	assert_int_equal(status, 0);
	assert_true(strlen(said) > 5 && !strcmp(said + strlen(said) - 5, "kept\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_lost),
		cmocka_unit_test(test_nobody_runs),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_sandboxes),
		cmocka_unit_test(test_guard_pages),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
