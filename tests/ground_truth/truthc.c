#include "truthc.h"
#include "spin.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

int truthc_noop(int number)
{
	return number + 1;
}

double truthc_add(double a, double b)
{
	return a + b;
}

uint64_t truthc_spin(uint64_t wanted_ns)
{
	return truth_spin(wanted_ns);
}

long truthc_inner(long number)
{
	return number * 3;
}

long truthc_outer(long count)
{
	long sum = 0;

	for (long i = 0; i < count; i++)
		sum += truthc_inner(i);
	return sum;
}

long truthc_callback(long (*function)(long), long count)
{
	long sum = 0;

	for (long i = 0; i < count; i++)
		sum += function(i);
	return sum;
}

long truthc_nest(long (*function)(long), long depth)
{
	return depth > 1 ? truthc_nest(function, depth - 1) + 1 : function(depth);
}

static __thread jmp_buf jump_target;

void truthc_jump_out(long value)
{
	longjmp(jump_target, (int)value);
}

void truthc_jump_deep(long depth)
{
	if (depth > 0)
		truthc_jump_deep(depth - 1);
	else
		truthc_jump_out(1);
	__asm__ volatile("" ::: "memory"); /* no tail call: the frames must be there */
}

long truthc_protect(long depth, long count)
{
	volatile long jumps = 0;

	while (jumps < count) {
		if (setjmp(jump_target))
			jumps++;
		else
			truthc_jump_deep(depth);
	}
	return jumps;
}

static sigjmp_buf signal_target;

static void jump_from_handler(int number)
{
	siglongjmp(signal_target, number);
}

void truthc_raise(long depth)
{
	if (depth > 0)
		truthc_raise(depth - 1);
	else
		raise(SIGUSR1);
	__asm__ volatile("" ::: "memory");
}

long truthc_signal_jumps(long count)
{
	struct sigaction action = {.sa_handler = jump_from_handler}, before;
	volatile long jumps = 0;

	sigaction(SIGUSR1, &action, &before);
	while (jumps < count) {
		if (sigsetjmp(signal_target, 1))
			jumps++;
		else
			truthc_raise(3);
	}
	sigaction(SIGUSR1, &before, NULL);
	return jumps;
}

void truthc_exit(int status)
{
	_exit(status);
}

void truthc_leave_thread(long depth)
{
	if (depth > 0)
		truthc_leave_thread(depth - 1);
	else
		pthread_exit((void *)1);
	__asm__ volatile("" ::: "memory");
}

void truthc_sleep_in_thread(long depth)
{
	if (depth > 0)
		truthc_sleep_in_thread(depth - 1);
	else
		for (;;)
			pause();
	__asm__ volatile("" ::: "memory");
}

static void *leave_main(void *unused)
{
	truthc_leave_thread(3);
	return NULL;
}

static void *sleep_main(void *unused)
{
	truthc_sleep_in_thread(3);
	return NULL;
}

long truthc_thread_exits(long count)
{
	long ended = 0;

	for (long i = 0; i < count; i++) {
		pthread_t thread;
		void *result = NULL;

		if (pthread_create(&thread, NULL, leave_main, NULL))
			break;
		pthread_join(thread, &result);
		ended += result == (void *)1;
	}
	return ended;
}

long truthc_thread_cancels(long count)
{
	long ended = 0;

	for (long i = 0; i < count; i++) {
		pthread_t thread;
		void *result = NULL;

		if (pthread_create(&thread, NULL, sleep_main, NULL))
			break;
		usleep(200); /* let it get inside */
		pthread_cancel(thread);
		pthread_join(thread, &result);
		ended += result == PTHREAD_CANCELED;
	}
	return ended;
}
