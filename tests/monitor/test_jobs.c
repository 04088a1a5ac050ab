/* Which job a process belongs to, and how long a job is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/monitor/jobs.h"

#define SECOND_NS 1000000000ULL

static struct rls_jobs jobs;

static void identify(pid_t pid, struct rls_job_identity *out)
{
	*out = (struct rls_job_identity){.name = "train"};
	if (pid >= 1000)
		snprintf(out->name, sizeof(out->name), "job-%d", pid);
}

static struct rls_job *begin(uint32_t pid, uint32_t ppid, uint64_t time_ns)
{
	struct rls_job *job = NULL;

	assert_int_equal(rls_jobs_begin(&jobs, pid, ppid, time_ns, identify, &job), 0);
	assert_non_null(job);
	return job;
}

static int clear(void **state)
{
	rls_jobs_clear(&jobs);
	return 0;
}

static void a_tree_is_one_job(void **state)
{
	struct rls_job *job = begin(10, 1, 5);

	assert_ptr_equal(begin(11, 10, 6), job);
	assert_ptr_equal(begin(12, 11, 7), job);
	assert_ptr_equal(begin(12, 11, 8), job); /* reported anew */
	assert_int_equal(job->processes_started, 3);
	assert_int_equal(job->processes_alive, 3);
	assert_int_equal(jobs.seen, 1);
	assert_int_equal(job->started_ns, 5);
	/* It lives as long as any of them. */
	rls_jobs_end(&jobs, 10, 20);
	assert_ptr_equal(begin(13, 12, 21), job);
	rls_jobs_end(&jobs, 11, 22);
	rls_jobs_end(&jobs, 12, 23);
	assert_int_equal(job->ended_ns, 0);
	rls_jobs_end(&jobs, 13, 24);
	rls_jobs_end(&jobs, 13, 25); /* reported twice */
	assert_int_equal(job->ended_ns, 24);
	assert_int_equal(job->processes_started, 4);
	assert_int_equal(job->processes_alive, 0);
	assert_int_equal(jobs.ended, 1);
}

static void equal_names_are_distinguished_and_kept(void **state)
{
	struct rls_job *first = begin(10, 1, 1), *second = begin(20, 1, 2),
		       *third = begin(30, 1, 3);

	assert_string_equal(first->name, "train");
	assert_string_equal(second->name, "train#2");
	assert_string_equal(third->name, "train#3");
	rls_jobs_end(&jobs, 10, 10);
	rls_jobs_forget(&jobs, 11);
	rls_jobs_expire(&jobs, 10 + RLS_JOBS_KEPT_NS + 1);
	assert_int_equal(jobs.count, 2);
	assert_string_equal(second->name, "train#2");
	assert_string_equal(begin(40, 1, 20)->name, "train"); /* free again */
	assert_int_equal(jobs.seen, 4);
	assert_int_not_equal(second->id, third->id);
}

static void an_ended_job_is_reported_for_a_while(void **state)
{
	struct rls_job *job = begin(10, 1, 1);

	rls_jobs_end(&jobs, 10, SECOND_NS);
	rls_jobs_expire(&jobs, SECOND_NS + RLS_JOBS_KEPT_NS + 1);
	assert_int_equal(jobs.count, 1); /* its process has not been forgotten: figures may come */
	rls_jobs_forget(&jobs, SECOND_NS);
	assert_non_null(rls_jobs_find(&jobs, 10));
	rls_jobs_forget(&jobs, SECOND_NS + 1);
	assert_null(rls_jobs_find(&jobs, 10));
	rls_jobs_expire(&jobs, SECOND_NS + RLS_JOBS_KEPT_NS);
	assert_int_equal(jobs.count, 1);
	assert_ptr_equal(jobs.jobs[0], job);
	rls_jobs_expire(&jobs, SECOND_NS + RLS_JOBS_KEPT_NS + 1);
	assert_int_equal(jobs.count, 0);
}

static void a_late_child_wakes_its_job(void **state)
{
	struct rls_job *job = begin(10, 1, 1);

	rls_jobs_end(&jobs, 10, 10);
	assert_int_equal(jobs.ended, 1);
	assert_ptr_equal(begin(11, 10, 9), job);
	assert_int_equal(job->ended_ns, 0);
	assert_int_equal(jobs.ended, 0);
	rls_jobs_end(&jobs, 11, 12);
	assert_int_equal(jobs.ended, 1);
}

static void a_number_may_come_again(void **state)
{
	struct rls_job *job = begin(10, 1, 1);

	rls_jobs_end(&jobs, 10, 10);
	rls_jobs_forget(&jobs, 11);
	assert_ptr_not_equal(begin(10, 1, 20), job);
	assert_int_equal(jobs.seen, 2);
}

static void churn_leaves_a_bounded_number(void **state)
{
	for (uint32_t i = 0; i < 5000; i++) {
		uint64_t now_ns =
			(1 + i) * SECOND_NS / 100; /* so fast that time alone drops none */

		begin(1000 + i, 1, now_ns);
		rls_jobs_end(&jobs, 1000 + i, now_ns + 1);
		rls_jobs_forget(&jobs, now_ns + 2);
		rls_jobs_expire(&jobs, now_ns + 2);
		assert_true(jobs.count <= RLS_JOBS_ENDED_MAX + 1);
	}
	assert_int_equal(jobs.seen, 5000);
	assert_int_equal(jobs.ended, 5000);
	assert_int_equal(jobs.members.count, 0);
	/* The youngest are there. */
	assert_string_equal(jobs.jobs[jobs.count - 1]->name, "job-5999");
}

#define TEST(test) cmocka_unit_test_teardown(test, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tree_is_one_job),
		TEST(equal_names_are_distinguished_and_kept),
		TEST(an_ended_job_is_reported_for_a_while),
		TEST(a_late_child_wakes_its_job),
		TEST(a_number_may_come_again),
		TEST(churn_leaves_a_bounded_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
