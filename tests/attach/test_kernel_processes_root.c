/* Processes and threads as the kernel side tells of them: fork, exec, ends. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "probed.h"
#include "recording.h"

static void reap(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- fork ---- */

static void fork_here(void *pid_out)
{
	*(pid_t *)pid_out = fork();
}

static void simulate(void *context)
{
	into_simulator(nothing, NULL);
}

static void a_child_goes_on_where_its_parent_was(void **state)
{
	struct recording *recording = *state;
	const union control_record *fork_, *exit_;
	pid_t child;

	recording_begin(recording, RLS_PROCESS_FOLLOW);
	into_backend(fork_here, &child);
	if (!child) {
		into_simulator(nothing, NULL);
		_exit(0);
	}
	reap(child);
	recording_stop(recording);
	/* The return from where it was born is the child's first hit. */
	assert_string_equal(recording_path(recording, child), "B>P P>S S>P");
	assert_string_equal(recording_path(recording, own_tid()), "?>P P>B B>P");
	assert_int_equal(recording_hits(recording, child), 3);

	assert_int_equal(recording_controls(recording, RLS_WIRE_FORK, 0), 1);
	fork_ = recording_control(recording, RLS_WIRE_FORK, getpid(), 0);
	assert_int_equal(fork_->header.tid, own_tid());
	assert_int_equal(fork_->fork.child_pid, child);
	assert_int_equal(fork_->fork.category, RLS_CATEGORY_BACKEND);
	assert_int_equal(recording_controls(recording, RLS_WIRE_THREAD, child), 0);

	assert_int_equal(recording_controls(recording, RLS_WIRE_THREAD_EXIT, 0), 1);
	exit_ = recording_control(recording, RLS_WIRE_THREAD_EXIT, child, 0);
	assert_true(exit_->exit.process_over && exit_->exit.traced);
	assert_false(rls_kernel_is_tracked(recording->kernel, child));
	assert_true(rls_kernel_is_tracked(recording->kernel, getpid()));
}

static void grandchildren_are_followed(void **state)
{
	struct recording *recording = *state;
	pid_t child;

	recording_begin(recording, RLS_PROCESS_FOLLOW);
	child = fork();
	if (!child) {
		pid_t grandchild = fork();

		if (!grandchild) {
			into_backend(simulate, NULL);
			_exit(0);
		}
		_exit(waitpid(grandchild, NULL, 0) == grandchild ? 0 : 1);
	}
	reap(child);
	recording_stop(recording);
	assert_int_equal(recording_controls(recording, RLS_WIRE_FORK, getpid()), 1);
	assert_int_equal(recording_controls(recording, RLS_WIRE_FORK, child), 1);
	child = (pid_t)recording_control(recording, RLS_WIRE_FORK, child, 0)->fork.child_pid;
	assert_string_equal(recording_path(recording, child), "?>P P>B B>S S>B B>P");
	/* Nobody had a state to inherit: all the same it is the fork that announces this thread. */
	assert_int_equal(recording_controls(recording, RLS_WIRE_THREAD, child), 0);
}

static void children_are_left_alone_when_not_followed(void **state)
{
	struct recording *recording = *state;
	pid_t child;

	recording_begin(recording, 0);
	into_backend(fork_here, &child);
	if (!child) {
		into_simulator(nothing, NULL);
		_exit(0);
	}
	reap(child);
	recording_stop(recording);
	assert_string_equal(recording_path(recording, child), "");
	assert_int_equal(recording_controls(recording, RLS_WIRE_FORK, 0), 0);
	assert_int_equal(recording_controls(recording, RLS_WIRE_THREAD_EXIT, 0), 0);
}

/* ---- exec ---- */

static void run_true(void *context)
{
	execl("/bin/true", "true", NULL);
	_exit(1);
}

static void exec_is_reported_with_the_new_name(void **state)
{
	struct recording *recording = *state;
	const union control_record *exec_;
	pid_t child;

	recording_begin(recording, RLS_PROCESS_FOLLOW);
	child = fork();
	if (!child)
		into_backend(run_true, NULL);
	reap(child);
	recording_stop(recording);
	assert_string_equal(recording_path(recording, child), "?>P P>B");
	assert_int_equal(recording_controls(recording, RLS_WIRE_EXEC, 0), 1);
	exec_ = recording_control(recording, RLS_WIRE_EXEC, child, 0);
	assert_int_equal(exec_->header.tid, child);
	assert_string_equal(exec_->exec.comm, "true");
	assert_int_equal(recording_controls(recording, RLS_WIRE_THREAD_EXIT, child), 1);
	assert_int_equal(
		recording_control(recording, RLS_WIRE_THREAD_EXIT, child, 0)->exit.process_over, 1);
}

static void *exec_from_thread(void *context)
{
	into_backend(run_true, NULL);
	return NULL;
}

static void a_thread_that_execs_says_who_it_was(void **state)
{
	struct recording *recording = *state;
	const union control_record *exec_, *thread_;
	pid_t child;

	recording_begin(recording, RLS_PROCESS_FOLLOW);
	child = fork();
	if (!child) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, exec_from_thread, NULL))
			_exit(1);
		for (;;)
			pause();
	}
	reap(child);
	recording_stop(recording);
	exec_ = recording_control(recording, RLS_WIRE_EXEC, child, 0);
	thread_ = recording_control(recording, RLS_WIRE_THREAD, child, 0);
	assert_non_null(exec_);
	assert_non_null(thread_);
	assert_int_not_equal(exec_->header.tid, child);
	assert_int_equal(exec_->header.tid, thread_->header.tid);
	/* It has the process's number from then on, and ends with it. */
	assert_int_equal(recording_control(recording, RLS_WIRE_THREAD_EXIT, child, 0)->header.tid,
			 child);
}

/* ---- ends ---- */

#define SIDE_BY_SIDE 8

static pthread_barrier_t barrier;

static void *call_and_wait(void *context)
{
	into_backend(nothing, NULL);
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return NULL;
}

static void end_side_by_side(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, SIDE_BY_SIDE + 1);
	for (int i = 0; i < SIDE_BY_SIDE; i++) {
		if (pthread_create(&thread, NULL, call_and_wait, NULL))
			_exit(1);
	}
	pthread_barrier_wait(&barrier);
	_exit(0);
}

static void a_process_ends_once_and_each_of_its_threads(void **state)
{
	struct recording *recording = *state;

	recording_begin(recording, RLS_PROCESS_FOLLOW);
	for (int round = 0; round < 20; round++) {
		const union control_record *exit_;
		size_t over = 0, traced = 0;
		pid_t child = fork();

		if (!child)
			end_side_by_side();
		reap(child);
		recording_consume(recording);
		for (size_t i = 0;
		     (exit_ = recording_control(recording, RLS_WIRE_THREAD_EXIT, child, i)); i++) {
			over += exit_->exit.process_over;
			traced += exit_->exit.traced;
		}
		assert_int_equal(over, 1);
		assert_int_equal(traced, SIDE_BY_SIDE + 1); /* the one that forked off too */
		assert_false(rls_kernel_is_tracked(recording->kernel, child));
	}
	recording_stop(recording);
	assert_int_equal(recording_dropped(recording, RLS_DROP_CONTROL), 0);
}

static void a_killed_process_ends_too(void **state)
{
	struct recording *recording = *state;
	const union control_record *exit_;
	pid_t child;
	int status;

	recording_begin(recording, RLS_PROCESS_FOLLOW);
	into_backend(fork_here, &child);
	if (!child) {
		for (;;)
			pause();
	}
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	recording_stop(recording);
	exit_ = recording_control(recording, RLS_WIRE_THREAD_EXIT, child, 0);
	assert_non_null(exit_);
	assert_true(exit_->exit.process_over && exit_->exit.traced);
	assert_false(rls_kernel_is_tracked(recording->kernel, child));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(a_child_goes_on_where_its_parent_was),
		BOTH_WAYS(grandchildren_are_followed),
		BOTH_WAYS(children_are_left_alone_when_not_followed),
		BOTH_WAYS(exec_is_reported_with_the_new_name),
		BOTH_WAYS(a_thread_that_execs_says_who_it_was),
		BOTH_WAYS(a_process_ends_once_and_each_of_its_threads),
		BOTH_WAYS(a_killed_process_ends_too),
	};
	int skipped = recording_possible();

	return skipped ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
