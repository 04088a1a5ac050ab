/* That each part of the recorder which keeps something for each process is called when it forks, executes or ends. The parts are the
 * tests'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/record/gpu/gpu_activity.h"
#include "userspace/record/samples/stack_samples.h"
#include "userspace/record/session.h"

#define JOB 70000000
#define CHILD 70000001

/* How often CHILD was reported to each. */
static struct {
	int kernel, threads, gpu_ended, gpu_execed, code, samples, samples_forked;
} reported;

#define NOTES(call, parameters, pid, counter)                                                      \
	call parameters;                                                                           \
	call parameters                                                                            \
	{                                                                                          \
		reported.counter += (pid) == CHILD;                                                \
	}
#define NOTES_AND_RETURNS(call, parameters, pid, counter)                                          \
	call parameters;                                                                           \
	call parameters                                                                            \
	{                                                                                          \
		reported.counter += (pid) == CHILD;                                                \
		return 0;                                                                          \
	}

NOTES_AND_RETURNS(int __wrap_rls_kernel_untrack, (struct rls_kernel * kernel, pid_t pid), pid,
		  kernel)
NOTES(void __wrap_rls_translator_forget, (struct rls_translator * translator, uint32_t pid), pid,
      threads)
NOTES(void __wrap_rls_gpu_ended, (struct rls_gpu * gpu, uint32_t pid, uint64_t time_ns), pid,
      gpu_ended)
NOTES(void __wrap_rls_gpu_execed, (struct rls_gpu * gpu, uint32_t pid), pid, gpu_execed)
NOTES(void __wrap_rls_code_map_forget, (struct rls_code_map * map, pid_t pid), pid, code)
NOTES(void __wrap_rls_samples_catch_up, (struct rls_samples * samples), CHILD, samples)
NOTES_AND_RETURNS(int __wrap_rls_samples_forked,
		  (struct rls_samples * samples, pid_t parent, pid_t child, uint64_t time_ns),
		  child, samples_forked)

static struct rls_recorder recorder;

static int set_up(void **state)
{
	int r = rls_recorder_observe_targets(&recorder);

	if (!r)
		r = rls_targets_add(&recorder.targets, JOB, true);
	if (!r)
		r = rls_targets_forked(&recorder.targets, JOB, CHILD, 1);
	assert_int_equal(reported.samples_forked, 1);
	memset(&reported, 0, sizeof(reported));
	return r;
}

static int tear_down(void **state)
{
	while (recorder.targets.observer_count)
		rls_targets_leave(&recorder.targets, recorder.targets.observer_count - 1);
	rls_targets_clear(&recorder.targets);
	return 0;
}

static void all_forget_one_that_ends(void **state)
{
	rls_targets_ended(&recorder.targets, CHILD, 2);
	assert_int_equal(reported.gpu_ended, 1);
	assert_int_equal(reported.code, 1);
	assert_int_equal(reported.samples, 1);
	assert_int_equal(reported.kernel + reported.threads, 0); /* they have reported it */
}

static void all_forget_one_that_is_left_out(void **state)
{
	rls_targets_unfollow(&recorder.targets, CHILD, 2);
	assert_int_equal(reported.kernel, 1);
	assert_int_equal(reported.threads, 1);
	assert_int_equal(reported.gpu_ended, 1);
	assert_int_equal(reported.code, 1);
	assert_int_equal(reported.samples, 1);
}

static void all_forget_what_ran_before_an_exec(void **state)
{
	assert_int_equal(rls_targets_execed(&recorder.targets, CHILD, 2), 0);
	assert_int_equal(reported.gpu_execed, 1);
	assert_int_equal(reported.code, 1);
	assert_int_equal(reported.samples, 1);
	assert_int_equal(reported.kernel + reported.threads + reported.gpu_ended, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(all_forget_one_that_ends),
		TEST(all_forget_one_that_is_left_out),
		TEST(all_forget_what_ran_before_an_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
