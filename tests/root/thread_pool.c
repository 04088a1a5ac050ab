/* A library that has threads of its own, for test_threads.py: they work on request, and no thread that
 * Python made is among them. What each ran is known by its own clock.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 2048

struct pool_thread {
	int64_t tid;
	int64_t ran_ns; /* in all, so far */
};

static struct pool_thread threads[THREADS_MAX];
static sem_t wanted[THREADS_MAX], done;
static int64_t work_ns;
static volatile uint64_t sink;

static int64_t ran_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Keeps the calling thread busy until it has run for so long more. The pool's threads call nothing that is exported:
 * where the library has a role, they meet no probe. */
static void burn(int64_t ns)
{
	int64_t end_ns = ran_ns() + ns;
	uint64_t x = 1;

	while (ran_ns() < end_ns) {
		for (int i = 0; i < 20000; i++)
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	}
	sink += x;
}

void pool_burn(int64_t ns)
{
	burn(ns);
}

static void *pool_main(void *place)
{
	struct pool_thread *thread = place;

	thread->tid = syscall(SYS_gettid);
	for (;;) {
		while (sem_wait(&wanted[thread - threads]))
			;
		burn(work_ns);
		thread->ran_ns = ran_ns();
		sem_post(&done);
	}
	return NULL;
}

int pool_start(int count)
{
	pthread_attr_t attributes;
	pthread_t ignored;
	int r = pthread_attr_init(&attributes);

	pthread_attr_setstacksize(&attributes, 64 << 10);
	sem_init(&done, 0, 0);
	for (int i = 0; !r && i < count && i < THREADS_MAX; i++) {
		sem_init(&wanted[i], 0, 0);
		r = pthread_create(&ignored, &attributes, pool_main, &threads[i]);
	}
	return r;
}

/* The first `count` of them work for so long each, and it returns when they have. */
void pool_work(int count, int64_t ns)
{
	work_ns = ns;
	for (int i = 0; i < count; i++)
		sem_post(&wanted[i]);
	for (int i = 0; i < count; i++) {
		while (sem_wait(&done))
			;
	}
}

int64_t pool_tid(int i)
{
	return threads[i].tid;
}

int64_t pool_ran_ns(int i)
{
	return threads[i].ran_ns;
}

static void *brief_main(void *ns)
{
	burn((intptr_t)ns);
	return NULL;
}

/* So many threads, one after the other, that live for what they run. */
int pool_brief(int count, int64_t ns)
{
	int r = 0;

	for (int i = 0; !r && i < count; i++) {
		pthread_t thread;

		r = pthread_create(&thread, NULL, brief_main, (void *)(intptr_t)ns);
		if (!r)
			r = pthread_join(thread, NULL);
	}
	return r;
}
