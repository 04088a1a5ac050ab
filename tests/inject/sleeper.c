/* sleeper 3 KIND: three threads that sleep in the same way again and again, and look whether each sleep
 * was what it was to be: as long, and with no other end than its own. Nobody runs meanwhile.
 *
 * KIND: condition, instant (a condition with a time), nap (to an instant), poll, select, thread; and,
 * which must not be disturbed, lock and relative (a nap of a length).
 *
 * Says "ready"; ends when its standard input does, with "kept" and status 0, or with what was lost.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3
#define NAP_NS 300000000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_over_now;
static atomic_bool is_over;
static atomic_int lost;
static int ending[2]; /* a pipe: readable when it is over */

static struct timespec in_a_while(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += NAP_NS;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return at;
}

static bool is_past(const struct timespec *at)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > at->tv_sec || (now.tv_sec == at->tv_sec && now.tv_nsec >= at->tv_nsec);
}

static bool wait_condition(void)
{
	pthread_mutex_lock(&mutex);
	while (!is_over)
		pthread_cond_wait(&is_over_now, &mutex);
	pthread_mutex_unlock(&mutex);
	return true;
}

static bool wait_until_instant(void)
{
	struct timespec at = in_a_while();
	int r = 0;

	pthread_mutex_lock(&mutex);
	while (!is_over && !r)
		r = pthread_cond_timedwait(&is_over_now, &mutex, &at);
	pthread_mutex_unlock(&mutex);
	return is_over || (r == ETIMEDOUT && is_past(&at));
}

static bool nap(void)
{
	struct timespec at = in_a_while();

	return !clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) && is_past(&at);
}

static bool nap_relative(void)
{
	const struct timespec length = {.tv_sec = 2}; /* so that nobody wakes while it is tried */
	struct timespec at = in_a_while();

	return !nanosleep(&length, NULL) && is_past(&at);
}

static bool wait_by_poll(void)
{
	struct pollfd end = {.fd = ending[0], .events = POLLIN};

	return poll(&end, 1, -1) == 1 && is_over;
}

static bool wait_by_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ending[0], &set);
	return select(ending[0] + 1, &set, NULL, NULL, NULL) == 1 && is_over;
}

static void *wait_in_thread(void *unused)
{
	while (!is_over)
		wait_by_poll();
	return NULL;
}

static bool wait_for_thread(void)
{
	pthread_t thread;

	return !pthread_create(&thread, NULL, wait_in_thread, NULL) && !pthread_join(thread, NULL);
}

static bool wait_for_lock(void)
{
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	return is_over;
}

static const struct {
	const char *name;
	bool (*sleep)(void);
} kinds[] = {
	{"condition", wait_condition}, {"instant", wait_until_instant}, {"nap", nap},
	{"poll", wait_by_poll},        {"select", wait_by_select},      {"thread", wait_for_thread},
	{"lock", wait_for_lock},       {"relative", nap_relative},
};

static void *run(void *kind)
{
	while (!is_over) {
		if (!kinds[(uintptr_t)kind].sleep())
			lost++;
	}
	return NULL;
}

static void end(pthread_t *threads)
{
	is_over = true;
	pthread_mutex_lock(&mutex);
	pthread_cond_broadcast(&is_over_now);
	pthread_mutex_unlock(&mutex);
	pthread_mutex_unlock(&held);
	if (write(ending[1], "", 1) != 1)
		lost++;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	pthread_condattr_t attributes;
	pthread_t threads[THREADS];
	uintptr_t kind = 0;
	char byte;

	while (argc == 3 && kind < sizeof(kinds) / sizeof(kinds[0]) &&
	       strcmp(argv[2], kinds[kind].name))
		kind++;
	if (argc != 3 || kind == sizeof(kinds) / sizeof(kinds[0]) || pipe(ending))
		return 2;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&is_over_now, &attributes);
	pthread_mutex_lock(&held);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)kind);
	usleep(50000);
	printf("ready\n");
	fflush(stdout);
	while (read(0, &byte, 1) == 1)
		;
	end(threads);
	printf(lost ? "lost %d\n" : "kept\n", lost);
	return lost ? 1 : 0;
}
