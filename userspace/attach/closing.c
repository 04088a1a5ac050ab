#include "userspace/attach/closing.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "userspace/base/quiet_thread.h"
#include "userspace/cpu/cpu_priority.h"

#define CREW_MAX 128
#define STACK_BYTES 65536

static struct crew {
	pid_t owner; /* whose threads they are: a child of it has none */
	size_t size;
	struct member {
		sem_t go;
		pid_t tid;
	} members[CREW_MAX];
	sem_t ready; /* a member has begun, or is through */
	const struct rls_live_link *items;
	size_t count, next;
} crew;

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore) && errno == EINTR)
		;
}

static void close_some(void)
{
	for (;;) {
		size_t i = __atomic_fetch_add(&crew.next, 1, __ATOMIC_RELAXED);

		if (i >= crew.count)
			return;
		bpf_link__destroy(crew.items[i].link);
	}
}

static void *work(void *context)
{
	struct member *member = context;

	member->tid = gettid();
	for (;;) {
		sem_post(&crew.ready);
		await(&member->go);
		close_some();
	}
	return NULL;
}

static int hire(const pthread_attr_t *attributes)
{
	struct member *member = &crew.members[crew.size];
	pthread_t thread;
	int r;

	sem_init(&member->go, 0, 0);
	r = rls_quiet_thread_create(&thread, attributes, work, member);
	if (r)
		return -r;
	await(&crew.ready);
	crew.size++;
	return 0;
}

void rls_closing_prepare(size_t links)
{
	size_t wanted = links < CREW_MAX ? links : CREW_MAX;
	pthread_attr_t attributes;

	if (crew.owner != getpid()) {
		crew.owner = getpid();
		crew.size = 0;
		sem_init(&crew.ready, 0, 0);
	}
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	while (crew.size < wanted && !hire(&attributes))
		;
	pthread_attr_destroy(&attributes);
}

/* Where it works matters to the process that is probed (cpu/cpu_affinity.h). */
static void take_after_caller(size_t members)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return;
	for (size_t i = 0; i < members; i++) {
		sched_setaffinity(crew.members[i].tid, sizeof(cpus), &cpus);
		rls_priority_copy_to(crew.members[i].tid);
	}
}

void rls_closing_run(const struct rls_live_link *items, size_t count)
{
	size_t helpers = count ? count - 1 : 0; /* the caller works too */

	rls_closing_prepare(helpers);
	if (helpers > crew.size)
		helpers = crew.size;
	take_after_caller(helpers);
	crew.items = items;
	crew.count = count;
	__atomic_store_n(&crew.next, 0, __ATOMIC_RELEASE);
	for (size_t i = 0; i < helpers; i++)
		sem_post(&crew.members[i].go);
	close_some();
	for (size_t i = 0; i < helpers; i++)
		await(&crew.ready);
}
