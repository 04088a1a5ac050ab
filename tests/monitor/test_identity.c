/* What a job is called, from texts of /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/monitor/identity.h"

static const char *job_of(const char *text, size_t length)
{
	static char name[RLS_JOB_NAME_BYTES];

	rls_job_of_environment(text, length, name);
	return name;
}

static void the_environment_names_a_job(void **state)
{
	static const char text[] = "PATH=/bin\0RLSCOPE_JOB=walker\0HOME=/root";
	static const char other[] =
		"XRLSCOPE_JOB=no\0RLSCOPE_JOBS=no\0RLSCOPE_JOB=\0A=RLSCOPE_JOB=no";

	assert_string_equal(job_of(text, sizeof(text)), "walker");
	assert_string_equal(job_of(text, sizeof(text) - 1), "walker");
	assert_string_equal(job_of(other, sizeof(other)), "");
	assert_string_equal(job_of("", 0), "");
	/* Cut in the middle by the kernel: no byte is read beyond. */
	assert_string_equal(job_of(text, strlen("PATH=/bin") + 1 + strlen("RLSCOPE_JOB=wal")),
			    "wal");
}

static void a_hostile_name_is_tamed(void **state)
{
	static const char text[] = "RLSCOPE_JOB=a\nb\x1b[2Jc\x7f";
	char long_text[1024] = "RLSCOPE_JOB=";
	const char *name;

	assert_string_equal(job_of(text, sizeof(text)), "a?b?[2Jc?");
	for (size_t i = strlen(long_text); i + 3 < sizeof(long_text); i += 2)
		memcpy(long_text + i, "\xc3\xbc", 3); /* ü */
	name = job_of(long_text, sizeof(long_text));
	assert_true(strlen(name) < RLS_JOB_NAME_BYTES);
	assert_true(strlen(name) % 2 == 0); /* no half of a character at its end */
}

static void cgroups_of_both_versions_are_read(void **state)
{
	char path[RLS_JOB_CGROUP_BYTES];

	rls_cgroup_path("0::/system.slice/train.service\n", path);
	assert_string_equal(path, "/system.slice/train.service");
	rls_cgroup_path("9:name=systemd:/user.slice/session-3.scope\n4:memory:/x\n0::/\n", path);
	assert_string_equal(path, "/user.slice/session-3.scope");
	rls_cgroup_path("9:name=systemd:/\n4:memory:/x\n0::/y\n", path);
	assert_string_equal(path, "/y");
	rls_cgroup_path("nonsense", path);
	assert_string_equal(path, "");
	rls_cgroup_path("", path);
	assert_string_equal(path, "");
}

static void the_innermost_unit_counts(void **state)
{
	char unit[RLS_JOB_NAME_BYTES];

	rls_unit_of_cgroup("/user.slice/user@1000.service/app.slice/run-r12.scope", unit);
	assert_string_equal(unit, "run-r12.scope");
	rls_unit_of_cgroup("/system.slice/train.service/payload", unit);
	assert_string_equal(unit, "train.service");
	rls_unit_of_cgroup("/kubepods/.service/x", unit);
	assert_string_equal(unit, "");
	rls_unit_of_cgroup("/", unit);
	assert_string_equal(unit, "");
}

static void names_are_chosen_in_order(void **state)
{
	struct rls_job_identity job = {.command = "python3"};

	rls_job_name("", &job);
	assert_string_equal(job.name, "python3");
	strcpy(job.cgroup, "/");
	rls_job_name("", &job);
	assert_string_equal(job.name, "python3");
	strcpy(job.cgroup, "/batch/7");
	rls_job_name("", &job);
	assert_string_equal(job.name, "/batch/7");
	strcpy(job.unit, "train.service");
	rls_job_name("", &job);
	assert_string_equal(job.name, "train.service");
	strcpy(job.container, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
	rls_job_name("", &job);
	assert_string_equal(job.name, "0123456789ab");
	rls_job_name("walker", &job);
	assert_string_equal(job.name, "walker");
	memset(&job, 0, sizeof(job));
	rls_job_name("", &job);
	assert_string_equal(job.name, "job");
}

static void a_process_that_is_gone_has_a_name_too(void **state)
{
	struct rls_job_identity job;

	rls_job_identity_read(0x3fffffff, &job);
	assert_string_equal(job.name, "job");
	assert_string_equal(job.cgroup, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_environment_names_a_job),
		cmocka_unit_test(a_hostile_name_is_tamed),
		cmocka_unit_test(cgroups_of_both_versions_are_read),
		cmocka_unit_test(the_innermost_unit_counts),
		cmocka_unit_test(names_are_chosen_in_order),
		cmocka_unit_test(a_process_that_is_gone_has_a_name_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
