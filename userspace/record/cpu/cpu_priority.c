#include "userspace/record/cpu/cpu_priority.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "userspace/base/log.h"
#include "userspace/base/clock.h"
#include "userspace/base/quiet_thread.h"

#define NICE_AHEAD -20                  /* of what all others ask for */
/* The loop waits for 10 ms at most. The rings hold what the fastest loops write in tenths of a second. */
#define LATE_NS 20000000ULL
#define GUARD_MS 20
#define ALARM_HOLD_NS 100000000ULL
/* How long it stays ahead once it was late: twice as long each time that it is again soon after. */
#define HOLD_NS_MIN 1000000000ULL
#define HOLD_NS_MAX 16000000000ULL

static void set_policy(const struct rls_background *background, int policy)
{
	const struct sched_param parameters = { 0 };

	sched_setscheduler(background->thread, policy, &parameters);
}

/* The guard's, of a loop that is not. */
static void put_ahead(struct rls_background *background)
{
	set_policy(background, SCHED_OTHER);
	__atomic_store_n(&background->put_ahead, true, __ATOMIC_RELEASE);
}

/* The guard's. Whoever is in the background may be put off amid anything, so there is no lock between the two:
 * where both decide at once, the next look or beat finds it late, or put ahead. */
static void look(struct rls_background *background, uint64_t now_ns)
{
	uint64_t until_ns = background->ahead_until_ns; /* nobody else writes it */

	if (__atomic_load_n(&background->ahead, __ATOMIC_ACQUIRE) ||
	    now_ns < __atomic_load_n(&background->beat_ns, __ATOMIC_ACQUIRE) + LATE_NS)
		return;
	if (now_ns >= until_ns) {
		if (now_ns > until_ns + background->hold_ns)
			background->hold_ns = HOLD_NS_MIN; /* it did without for long enough */
		else if (background->hold_ns < HOLD_NS_MAX)
			background->hold_ns *= 2;
		__atomic_store_n(&background->ahead_until_ns, now_ns + background->hold_ns, __ATOMIC_RELEASE);
		rls_debug("others want all CPUs: we run ahead of them for %.0f s", (double)background->hold_ns / 1e9);
	}
	put_ahead(background);
}

/* The guard's too. */
static void alarm_loop(struct rls_background *background, uint64_t now_ns)
{
	if (background->ahead_until_ns < now_ns + ALARM_HOLD_NS)
		__atomic_store_n(&background->ahead_until_ns, now_ns + ALARM_HOLD_NS, __ATOMIC_RELEASE);
	if (!__atomic_load_n(&background->ahead, __ATOMIC_ACQUIRE))
		put_ahead(background);
}

static void *guard(void *context)
{
	struct rls_background *background = context;
	struct pollfd fds[] = { { .fd = background->end_fd, .events = POLLIN },
				{ .fd = background->alarm_fd, .events = POLLIN } };
	bool alarmed = false;

	setpriority(PRIO_PROCESS, 0, NICE_AHEAD);
	for (;;) {
		/* An alarm is the loop's to read: it has some time for that. */
		int ready = poll(fds, alarmed ? 1 : 2, GUARD_MS);

		if (ready > 0 && fds[0].revents)
			return NULL;
		alarmed = ready > 0;
		if (alarmed)
			alarm_loop(background, rls_monotonic_ns());
		else
			look(background, rls_monotonic_ns());
	}
}

static bool start_guard(struct rls_background *background)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) < 2 ||
	    sched_getscheduler(0) != SCHED_OTHER)
		return false;
	background->end_fd = eventfd(0, EFD_CLOEXEC);
	if (background->end_fd < 0)
		return false;
	if (!rls_quiet_thread_create(&background->guard, NULL, guard, background))
		return true;
	close(background->end_fd);
	return false;
}

void rls_background_begin(struct rls_background *background, int alarm_fd)
{
	*background = (struct rls_background){ .begun = true, .ahead = true, .thread = gettid(),
					       .hold_ns = HOLD_NS_MIN, .end_fd = -1, .alarm_fd = alarm_fd };
	background->nice = getpriority(PRIO_PROCESS, 0);
	background->beat_ns = rls_monotonic_ns();
	if (!setpriority(PRIO_PROCESS, 0, NICE_AHEAD))
		background->able = start_guard(background);
}

/* The loop's own thread, which may be put off after each step: the guard is not to take it for ahead before it is, nor
 * after. */
static void set_ahead(struct rls_background *background, bool ahead)
{
	if (!background->able || background->ahead == ahead)
		return;
	if (ahead)
		set_policy(background, SCHED_OTHER);
	__atomic_store_n(&background->ahead, ahead, __ATOMIC_RELEASE);
	if (!ahead)
		set_policy(background, SCHED_IDLE);
}

void rls_background_beat(struct rls_background *background, uint64_t now_ns)
{
	__atomic_store_n(&background->beat_ns, now_ns, __ATOMIC_RELEASE);
	if (__atomic_exchange_n(&background->put_ahead, false, __ATOMIC_ACQ_REL))
		__atomic_store_n(&background->ahead, true, __ATOMIC_RELEASE);
	set_ahead(background, now_ns < __atomic_load_n(&background->ahead_until_ns, __ATOMIC_ACQUIRE));
}

void rls_background_hurry(struct rls_background *background)
{
	set_ahead(background, true);
}

static void stop_guard(struct rls_background *background)
{
	set_ahead(background, true);
	eventfd_write(background->end_fd, 1);
	pthread_join(background->guard, NULL);
	close(background->end_fd);
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
