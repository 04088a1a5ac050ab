/* Trials of code in a child, and what they find in the C library that this test runs with. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/record/memory/code_trial.h"
#include "userspace/record/memory/libc_sites.h"

static volatile int done;

__attribute__((noinline)) static void act_once(size_t step)
{
	done = (int)step;
}

static void act_badly(size_t step)
{
	if (step == 2)
		raise(SIGSEGV);
}

static void count_hit(void *context, size_t site, size_t step,
		      const struct user_regs_struct *registers)
{
	size_t *hits = context;

	assert_int_equal(site, 0);
	assert_int_equal(registers->rdi, step);
	hits[step]++;
}

static void each_step_is_seen_and_nothing_is_changed_here(void **state)
{
	uint64_t site = (uintptr_t)act_once;
	size_t hits[5] = {0};
	const struct rls_code_trial trial = {.sites = &site,
					     .site_count = 1,
					     .steps = 5,
					     .act = act_once,
					     .hit = count_hit,
					     .context = hits};
	int r = rls_code_trial_run(&trial);

	if (r == -ECHILD || r == -EPERM)
		skip(); /* nobody may be traced here */
	assert_int_equal(r, 0);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(hits[i], 1);
	assert_int_equal(done, 0);
	act_once(3);
	assert_int_equal(done, 3);
}

static void a_child_that_fails_is_no_result(void **state)
{
	const struct rls_code_trial trial = {.steps = 5, .act = act_badly, .hit = count_hit};
	const struct rls_code_trial crowded = {.site_count = RLS_TRIAL_SITES_MAX + 1};

	assert_int_equal(rls_code_trial_run(&trial), -ECHILD);
	assert_int_equal(rls_code_trial_run(&crowded), -EINVAL);
}

/* Where this program's own C library lies. */
static bool find_own(char path[256])
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, "libc.so.6") &&
			sscanf(line, "%*s %*s %*s %*s %*s %255s", path) == 1;
	if (maps)
		fclose(maps);
	return found;
}

/* The file with a byte of its code changed. */
static void write_other(const char *path, char other[64])
{
	char command[512];
	FILE *file;

	snprintf(other, 64, "/tmp/test_libc_sites.%d", getpid());
	snprintf(command, sizeof(command), "cp -L %s %s", path, other);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
	file = fopen(other, "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0x100000, SEEK_SET), 0);
	assert_true(fputc(0xcc, file) >= 0);
	assert_int_equal(fputc(0xcd, file), 0xcd);
	fclose(file);
}

static void finds_what_our_own_has(void **state)
{
	struct rls_libc_sites libc = {0};
	char path[256], other[64];
	const char *reason;

	if (!find_own(path))
		skip();
	reason = rls_libc_sites_fit(&libc, path, getpid());
	if (reason || libc.copies_reason || libc.rungs_reason) {
		/* A sanitizer's functions, no ptrace, another glibc: but each has a reason. */
		print_message("%s, %s, %s\n", reason ? reason : "-",
			      libc.copies_reason ? libc.copies_reason : "-",
			      libc.rungs_reason ? libc.rungs_reason : "-");
		skip();
	}
	assert_true(libc.copies.report == RLS_MEMORY_COPY_BYTES);
	assert_int_equal(libc.copies.site_class, RLS_SITE_EMULATED);
	assert_true(libc.copies_from > 256 && libc.copies_from <= 8192);
	for (size_t i = 0; i < RLS_LIBC_RUNGS; i++)
		for (size_t k = 0; k < libc.rungs[i].count; k++) {
			assert_true(libc.rungs[i].sites[k].report == RLS_MEMORY_RUNG);
			assert_true(i + 1 == RLS_LIBC_RUNGS ||
				    libc.rungs[i].sites[k].site_class == RLS_SITE_EMULATED);
		}
	write_other(path, other);
	assert_non_null(strstr(rls_libc_sites_fit(&libc, other, getpid()), "another build"));
	unlink(other);
	assert_non_null(rls_libc_sites_fit(&libc, "/proc/self/status", getpid()));
}

static void tunables_are_refused(void **state)
{
	struct rls_libc_sites libc = {.tried = true};
	char *const arguments[] = {"sleep", "100", NULL};
	char *const environment[] = {"A=b", "GLIBC_TUNABLES=glibc.malloc.check=0", NULL};
	const char *reason = NULL;
	char path[256];
	pid_t child;

	if (!find_own(path))
		skip();
	child = fork();
	if (!child) {
		execve("/bin/sleep", arguments, environment);
		_exit(1);
	}
	for (int i = 0; i < 3000 && !reason; i++) {
		usleep(10000);
		reason = rls_libc_sites_fit(&libc, path, child);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_non_null(reason);
	assert_true(strstr(reason, "TUNABLES") || strstr(reason, "another build"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_step_is_seen_and_nothing_is_changed_here),
		cmocka_unit_test(a_child_that_fails_is_no_result),
		cmocka_unit_test(finds_what_our_own_has),
		cmocka_unit_test(tunables_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
