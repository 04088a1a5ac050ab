#include "userspace/cpu/cpu_priority.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/base/quiet_thread.h"

#define NICE_AHEAD -20 /* of what all others ask for */
#define NICE_POLITE 10 /* a tenth of what a thread of usual priority gets beside it */
/* The loop waits for 10 ms at most. The rings hold what the fastest loops write in tenths of a second. */
#define LATE_NS 20000000ULL
#define WATCH_MS 20
#define ALARM_HOLD_NS 100000000ULL
/* How long it stays ahead once it was late: twice as long each time that it is again soon after. */
#define HOLD_NS_MIN 1000000000ULL
#define HOLD_NS_MAX 16000000000ULL

struct rls_cpu_priority rls_cpu_priority;
static struct rls_cpu_priority *const state = &rls_cpu_priority;

static void apply(enum rls_priority priority)
{
	const struct sched_param parameters = {0};
	int nice = state->records ? NICE_AHEAD : state->nice;

	if (priority == RLS_PRIORITY_POLITE && nice < NICE_POLITE)
		nice = NICE_POLITE;
	sched_setscheduler(state->thread, priority == RLS_PRIORITY_SPARE ? SCHED_IDLE : SCHED_OTHER,
			   &parameters);
	setpriority(PRIO_PROCESS, (id_t)state->thread, nice);
}

/* ---- the watch: a thread of low priority may be put off amid anything, so there is no lock between the two.
 * Where both decide at once, the next check or beat finds it late, or raised. ---- */

static bool is_usual(void)
{
	return __atomic_load_n(&state->now, __ATOMIC_ACQUIRE) == RLS_PRIORITY_USUAL;
}

static void raise_thread(void)
{
	apply(RLS_PRIORITY_USUAL);
	__atomic_store_n(&state->raised, true, __ATOMIC_RELEASE);
}

/* The loop is late: for how long it stays ahead. */
static void hold(uint64_t now_ns)
{
	if (now_ns < state->until_ns) /* nobody else writes it */
		return;
	if (now_ns > state->until_ns + state->hold_ns)
		state->hold_ns = HOLD_NS_MIN; /* it did without for long enough */
	else if (state->hold_ns < HOLD_NS_MAX)
		state->hold_ns *= 2;
	__atomic_store_n(&state->until_ns, now_ns + state->hold_ns, __ATOMIC_RELEASE);
	rls_debug("others want all CPUs: we run ahead of them for %.0f s",
		  (double)state->hold_ns / 1e9);
}

static void cpu_priority_check(uint64_t now_ns)
{
	uint64_t late_ns = state->records
				   ? __atomic_load_n(&state->beat_ns, __ATOMIC_ACQUIRE) + LATE_NS
				   : state->until_ns;

	if (is_usual() || now_ns < late_ns)
		return;
	if (state->records)
		hold(now_ns);
	raise_thread();
}

static void alarm_loop(uint64_t now_ns)
{
	if (state->until_ns < now_ns + ALARM_HOLD_NS)
		__atomic_store_n(&state->until_ns, now_ns + ALARM_HOLD_NS, __ATOMIC_RELEASE);
	if (!is_usual())
		raise_thread();
}

static void *cpu_priority_watch(void *unused)
{
	struct pollfd fds[] = {{.fd = state->end_fd, .events = POLLIN},
			       {.fd = state->alarm_fd, .events = POLLIN}};
	bool alarmed = false;

	(void)unused;
	setpriority(PRIO_PROCESS, 0, NICE_AHEAD);
	for (;;) {
		/* An alarm is the loop's to read: it has some time for that. */
		int ready = poll(fds, alarmed ? 1 : 2, WATCH_MS);

		if (ready > 0 && fds[0].revents)
			return NULL;
		alarmed = ready > 0;
		if (alarmed)
			alarm_loop(rls_monotonic_ns());
		else
			cpu_priority_check(rls_monotonic_ns());
	}
}

/* ---- the thread ---- */

/* A thread that may raise its priority may also take back having lowered it. */
static bool can_raise(void)
{
	if (sched_getscheduler(0) != SCHED_OTHER)
		return false;
	if (state->nice > NICE_AHEAD && setpriority(PRIO_PROCESS, 0, state->nice - 1))
		return false;
	return !setpriority(PRIO_PROCESS, 0, state->nice);
}

static bool start_watch(void)
{
	state->end_fd = eventfd(0, EFD_CLOEXEC);
	if (state->end_fd < 0)
		return false;
	if (!rls_quiet_thread_create(&state->watch, NULL, cpu_priority_watch, NULL))
		return true;
	close(state->end_fd);
	return false;
}

static void cpu_priority_begin(bool records, uint64_t until_ns, int alarm_fd)
{
	*state = (struct rls_cpu_priority){.begun = true,
					   .records = records,
					   .thread = gettid(),
					   .nice = getpriority(PRIO_PROCESS, 0),
					   .until_ns = until_ns,
					   .hold_ns = HOLD_NS_MIN,
					   .beat_ns = rls_monotonic_ns(),
					   .end_fd = -1,
					   .alarm_fd = alarm_fd};
}

void rls_priority_prepare(uint64_t patience_ns)
{
	if (state->begun)
		return;
	cpu_priority_begin(false, rls_monotonic_ns() + patience_ns, -1);
	state->able = can_raise() && start_watch();
}

void rls_priority_record(int alarm_fd)
{
	cpu_set_t cpus;

	if (state->begun)
		return;
	cpu_priority_begin(true, 0, alarm_fd);
	if (setpriority(PRIO_PROCESS, 0, NICE_AHEAD))
		return;
	state->able = sched_getscheduler(0) == SCHED_OTHER &&
		      !sched_getaffinity(0, sizeof(cpus), &cpus) && CPU_COUNT(&cpus) > 1 &&
		      start_watch();
}

/* It may be put off after each step: the watch is not to take it for usual before it is, nor after. */
static void cpu_priority_change(enum rls_priority priority)
{
	if (!state->able || state->now == priority)
		return;
	if (priority == RLS_PRIORITY_USUAL)
		apply(priority);
	__atomic_store_n(&state->now, priority, __ATOMIC_RELEASE);
	if (priority != RLS_PRIORITY_USUAL)
		apply(priority);
}

enum rls_priority rls_priority_set(enum rls_priority priority)
{
	enum rls_priority before = state->now;

	if (!state->able || state->records || state->thread != gettid())
		return RLS_PRIORITY_USUAL;
	if (__atomic_load_n(&state->raised, __ATOMIC_ACQUIRE)) /* for good */
		priority = RLS_PRIORITY_USUAL;
	cpu_priority_change(priority);
	return before;
}

void rls_priority_beat(uint64_t now_ns)
{
	if (!state->records)
		return;
	__atomic_store_n(&state->beat_ns, now_ns, __ATOMIC_RELEASE);
	if (__atomic_exchange_n(&state->raised, false, __ATOMIC_ACQ_REL))
		__atomic_store_n(&state->now, RLS_PRIORITY_USUAL, __ATOMIC_RELEASE);
	cpu_priority_change(now_ns < __atomic_load_n(&state->until_ns, __ATOMIC_ACQUIRE)
				    ? RLS_PRIORITY_USUAL
				    : RLS_PRIORITY_SPARE);
}

void rls_priority_hurry(void)
{
	if (state->records)
		cpu_priority_change(RLS_PRIORITY_USUAL);
}

void rls_priority_end(void)
{
	if (!state->begun)
		return;
	if (state->able) {
		cpu_priority_change(RLS_PRIORITY_USUAL);
		eventfd_write(state->end_fd, 1);
		pthread_join(state->watch, NULL);
		close(state->end_fd);
	}
	setpriority(PRIO_PROCESS, (id_t)state->thread, state->nice);
	*state = (struct rls_cpu_priority){0};
}

int rls_priority_raise(void)
{
	int nice = getpriority(PRIO_PROCESS, 0);

	setpriority(PRIO_PROCESS, 0, NICE_AHEAD);
	return nice;
}

void rls_priority_lower(int nice)
{
	setpriority(PRIO_PROCESS, 0, nice);
}

void rls_priority_leave_spare(void)
{
	const struct sched_param parameters = {0};

	if (sched_getscheduler(0) == SCHED_IDLE)
		sched_setscheduler(0, SCHED_OTHER, &parameters);
}

void rls_priority_copy_to(pid_t thread)
{
	int policy = sched_getscheduler(0);
	const struct sched_param parameters = {0};

	setpriority(PRIO_PROCESS, (id_t)thread, getpriority(PRIO_PROCESS, 0));
	if (policy == SCHED_OTHER || policy == SCHED_IDLE)
		sched_setscheduler(thread, policy, &parameters);
}
