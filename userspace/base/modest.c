#include "userspace/base/modest.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "userspace/base/clock.h"
#include "userspace/base/quiet_thread.h"

#define POLITE_NICE 10          /* a tenth of what a thread of usual priority gets beside it */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	pthread_t watch;
	bool begun, patient;
	pid_t thread;
	int nice;
	uint64_t until_ns;
	enum rls_modesty modesty;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void set_policy(int policy, int nice)
{
	const struct sched_param parameters = { 0 };

	sched_setscheduler(state.thread, policy, &parameters);
	setpriority(PRIO_PROCESS, (id_t)state.thread, nice);
}

/* The lock is held. */
static void apply(enum rls_modesty modesty)
{
	switch (modesty) {
	case RLS_MODEST_SPARE:
		set_policy(SCHED_IDLE, state.nice);
		break;
	case RLS_MODEST_POLITE:
		set_policy(SCHED_OTHER, state.nice > POLITE_NICE ? state.nice : POLITE_NICE);
		break;
	default:
		set_policy(SCHED_OTHER, state.nice);
	}
}

static void *watch(void *unused)
{
	const struct timespec until = rls_monotonic_timespec(state.until_ns);

	(void)unused;
	pthread_mutex_lock(&state.lock);
	while (state.begun && pthread_cond_timedwait(&state.ended, &state.lock, &until) != ETIMEDOUT)
		;
	state.patient = false;
	apply(RLS_MODEST_NOT);
	pthread_mutex_unlock(&state.lock);
	return NULL;
}

/* Whoever may raise a priority may also take back having lowered it. */
static bool is_able(pid_t thread, int *nice)
{
	errno = 0;
	*nice = getpriority(PRIO_PROCESS, (id_t)thread);
	if (errno || sched_getscheduler(thread) != SCHED_OTHER)
		return false;
	if (*nice > -20 && setpriority(PRIO_PROCESS, (id_t)thread, *nice - 1))
		return false;
	return !setpriority(PRIO_PROCESS, (id_t)thread, *nice);
}

static bool start_watch(void)
{
	rls_monotonic_cond_init(&state.ended);
	return !rls_quiet_thread_create(&state.watch, NULL, watch, NULL);
}

void rls_modest_begin(uint64_t patience_ns)
{
	pid_t thread = gettid();
	int nice;

	if (state.begun || !is_able(thread, &nice))
		return;
	state.thread = thread;
	state.nice = nice;
	state.until_ns = rls_monotonic_ns() + patience_ns;
	state.modesty = RLS_MODEST_NOT;
	state.begun = state.patient = true;
	if (!start_watch())
		state.begun = false;
}

void rls_modest_end(void)
{
	if (!state.begun)
		return;
	pthread_mutex_lock(&state.lock);
	state.begun = false;
	pthread_cond_signal(&state.ended);
	pthread_mutex_unlock(&state.lock);
	pthread_join(state.watch, NULL);
	pthread_cond_destroy(&state.ended);
}

enum rls_modesty rls_modest_set(enum rls_modesty modesty)
{
	enum rls_modesty before = RLS_MODEST_NOT;

	pthread_mutex_lock(&state.lock);
	if (state.begun && state.thread == gettid()) {
		before = state.modesty;
		state.modesty = modesty;
		if (state.patient && modesty != before)
			apply(modesty);
	}
	pthread_mutex_unlock(&state.lock);
	return before;
}
