#include "userspace/record/background.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "userspace/log.h"
#include "userspace/monotonic.h"
#include "userspace/quiet_thread.h"

#define NICE_AHEAD -20                  /* of what all others ask for */
/* The loop waits for 10 ms at most. The rings hold what the fastest loops write in tenths of a second. */
#define LATE_NS 20000000ULL
#define GUARD_NS 20000000L
/* How long it stays ahead once it was late: twice as long each time that it is again soon after. */
#define HOLD_NS_MIN 1000000000ULL
#define HOLD_NS_MAX 16000000000ULL

/* The lock is held. */
static void set_ahead(struct rls_background *background, bool ahead)
{
	const struct sched_param parameters = { 0 };

	if (background->ahead == ahead)
		return;
	background->ahead = ahead;
	sched_setscheduler(background->thread, ahead ? SCHED_OTHER : SCHED_IDLE, &parameters);
}

/* The lock is held. */
static void look(struct rls_background *background, uint64_t now_ns)
{
	if (background->ahead || now_ns < background->beat_ns + LATE_NS)
		return;
	if (now_ns > background->ahead_until_ns + background->hold_ns)
		background->hold_ns = HOLD_NS_MIN; /* it did without for long enough */
	else if (background->hold_ns < HOLD_NS_MAX)
		background->hold_ns *= 2;
	background->ahead_until_ns = now_ns + background->hold_ns;
	set_ahead(background, true);
	rls_debug("others want all CPUs: we run ahead of them for %.0f s", (double)background->hold_ns / 1e9);
}

static void *guard(void *context)
{
	struct rls_background *background = context;

	setpriority(PRIO_PROCESS, 0, NICE_AHEAD);
	pthread_mutex_lock(&background->lock);
	while (background->begun) {
		struct timespec until;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += GUARD_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (pthread_cond_timedwait(&background->ended, &background->lock, &until) == ETIMEDOUT)
			look(background, rls_monotonic_ns());
	}
	pthread_mutex_unlock(&background->lock);
	return NULL;
}

static bool start_guard(struct rls_background *background)
{
	pthread_condattr_t attributes;
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) < 2 ||
	    sched_getscheduler(0) != SCHED_OTHER)
		return false;
	pthread_mutex_init(&background->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&background->ended, &attributes);
	pthread_condattr_destroy(&attributes);
	return !rls_quiet_thread_create(&background->guard, NULL, guard, background);
}

void rls_background_begin(struct rls_background *background)
{
	*background = (struct rls_background){ .begun = true, .ahead = true, .thread = gettid(), .hold_ns = HOLD_NS_MIN };
	background->nice = getpriority(PRIO_PROCESS, 0);
	background->beat_ns = rls_monotonic_ns();
	if (!setpriority(PRIO_PROCESS, 0, NICE_AHEAD))
		background->able = start_guard(background);
}

void rls_background_beat(struct rls_background *background, uint64_t now_ns)
{
	if (!background->able)
		return;
	pthread_mutex_lock(&background->lock);
	background->beat_ns = now_ns;
	set_ahead(background, now_ns < background->ahead_until_ns);
	pthread_mutex_unlock(&background->lock);
}

void rls_background_hurry(struct rls_background *background)
{
	if (!background->able)
		return;
	pthread_mutex_lock(&background->lock);
	set_ahead(background, true);
	pthread_mutex_unlock(&background->lock);
}

static void stop_guard(struct rls_background *background)
{
	pthread_mutex_lock(&background->lock);
	set_ahead(background, true);
	background->begun = false;
	pthread_cond_signal(&background->ended);
	pthread_mutex_unlock(&background->lock);
	pthread_join(background->guard, NULL);
	pthread_cond_destroy(&background->ended);
	pthread_mutex_destroy(&background->lock);
}

void rls_background_end(struct rls_background *background)
{
	if (!background->begun)
		return;
	if (background->able)
		stop_guard(background);
	background->begun = background->able = false;
	setpriority(PRIO_PROCESS, 0, background->nice);
}
