/* Lifecycle: what the bridge does from its loading to the end of the process.
 *
 * Nothing happens before CUDA is initialised, because a preloaded library is in every child of a
 * job. cuInit loads what CUDA_INJECTION64_PATH names and calls InitializeInjection. A preloaded
 * bridge sets that variable in its constructor, unless it is set already. From then on one thread
 * checks ten times a second whether a profiler has raised the site's semaphore. It alone calls
 * CUPTI, and only while the semaphore is raised.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "cupti_bridge/buffers.h"
#include "cupti_bridge/session.h"
#include "cupti_bridge/site.h"

#define INJECTION "CUDA_INJECTION64_PATH"
#ifndef RLS_CUPTI_POLL_NS /* tests check more often */
#define RLS_CUPTI_POLL_NS 100000000ull
#endif
#define SLACK_NS (RLS_CUPTI_POLL_NS / 5)
#define REPEAT_NS 1000000000ull /* of trouble, for profilers that have come meanwhile */
#define AWAIT_MS_MAX 1000
#ifndef RLS_CUPTI_EXIT_WAIT_NS /* tests are more patient, on machines that are slower */
#define RLS_CUPTI_EXIT_WAIT_NS 1000000000ull
#endif
#define STACK_BYTES (2ul << 20) /* CUPTI's calls run on it */

/* Of the bridge's thread; in InitializeInjection before it is started, of that one's. */
static struct rls_session session;
static unsigned int watchers_seen;
static uint64_t next_flush_ns, next_repeat_ns;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the four below */
static pthread_cond_t has_ended;
static bool is_started, is_running, is_ending, is_exit_caught;
static pid_t owner; /* no lock: set once, before there is a thread */

static void end_at_exit(void);

/* What cuInit calls, in the thread that calls it; also for whoever loads the bridge into a
 * process that runs. 1: done, do not call again. */
__attribute__((visibility("default"))) int InitializeInjection(void);

/* Is called again once libcupti is loaded: what is registered last is run first, and the last
 * records are to be fetched before CUPTI's own handlers run. */
static void catch_exit(void)
{
	atexit(end_at_exit);
}

/* What a raised, held or released semaphore means, by what there is now. */
static void lifecycle_check(void)
{
	unsigned int watchers = rls_site_watchers();
	bool has_changed = watchers != watchers_seen;

	watchers_seen = watchers;
	rls_session_check_leave(&session);
	if (session.is_armed && !watchers) {
		rls_session_disarm(&session);
	} else if (session.is_armed) {
		if (has_changed)
			rls_session_repeat_status(&session);
	} else if (!watchers) {
		session.status = 0;
	} else if (!session.status || session.status == RLS_CUPTI_NO_DRIVER ||
		   session.status == RLS_CUPTI_DISARMED) {
		rls_session_arm(&session);
		next_flush_ns = rls_clock_now_ns() + RLS_CUPTI_FLUSH_NS;
		next_repeat_ns = rls_clock_now_ns() + REPEAT_NS;
		if (session.cupti.version && !is_exit_caught) {
			is_exit_caught = true;
			catch_exit();
		}
	} else if (has_changed || rls_clock_now_ns() >= next_repeat_ns) {
		rls_session_repeat_status(&session);
		next_repeat_ns = rls_clock_now_ns() + REPEAT_NS;
	}
}

/* Every RLS_CUPTI_FLUSH_NS, and at once when many buffers wait. */
static void flush(bool is_urgent)
{
	uint64_t now_ns = rls_clock_now_ns();

	if (!session.is_armed && is_urgent)
		rls_session_discard();
	if (!session.is_armed || (now_ns < next_flush_ns && !is_urgent))
		return;
	next_flush_ns = now_ns + RLS_CUPTI_FLUSH_NS;
	rls_session_flush(&session);
}

static bool must_end(void)
{
	bool answer;

	pthread_mutex_lock(&lock);
	answer = is_ending;
	pthread_mutex_unlock(&lock);
	return answer;
}

static void *lifecycle_run(void *unused)
{
	uint64_t next_poll_ns = 0;

	pthread_setname_np(pthread_self(), "rlscope-cupti");
	prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
	while (!must_end()) {
		uint64_t now_ns = rls_clock_now_ns();

		if (now_ns >= next_poll_ns) {
			lifecycle_check();
			next_poll_ns = now_ns + RLS_CUPTI_POLL_NS;
		}
		flush(rls_buffers_wait(next_poll_ns));
	}
	session.wants_to_leave = false; /* the process ends */
	if (session.is_armed)
		rls_session_disarm(&session);
	rls_session_stay(&session);
	pthread_mutex_lock(&lock);
	is_running = false;
	pthread_cond_broadcast(&has_ended);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* The target's signals are for the target's threads. */
static void start_thread(void)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	is_running = !pthread_create(&thread, &attributes, lifecycle_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

/* Waits for the last records, but not for a CUPTI that does not answer: the program ends. */
static void end_at_exit(void)
{
	struct timespec until;

	if (getpid() != owner)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += RLS_CUPTI_EXIT_WAIT_NS / 1000000000;
	pthread_mutex_lock(&lock);
	is_ending = true;
	rls_buffers_wake();
	while (is_running && !pthread_cond_timedwait(&has_ended, &lock, &until))
		;
	pthread_mutex_unlock(&lock);
}

/* The child has no thread of ours, and may not use CUDA. A report of that writes to memory that is
 * shared until then, so it is made only if a profiler is attached. */
static void abandon_in_child(void)
{
	owner = 0;
	rls_buffers_abandon();
	if (rls_site_watchers())
		rls_session_abandon(&session);
}

/* A profiler that started this program finds us shortly after we are mapped. Work that is launched
 * before would be missed, so cuInit waits for it once, if the environment announces a profiler. */
static void await_profiler(void)
{
	const struct timespec tick = {.tv_nsec = 1000000};
	const char *named = getenv("RLSCOPE_CUPTI_AWAIT_MS");
	long left_ms = named ? strtol(named, NULL, 10) : 0;

	if (left_ms > AWAIT_MS_MAX)
		left_ms = AWAIT_MS_MAX;
	for (; left_ms > 0 && !rls_site_watchers(); left_ms--)
		nanosleep(&tick, NULL);
}

/* Of this file; 0 or -1. */
static int find_own_path(char path[PATH_MAX])
{
	Dl_info self;

	return dladdr((void *)InitializeInjection, &self) && realpath(self.dli_fname, path) ? 0
											    : -1;
}

/* libcuda loads what that variable names before anything of CUDA's has been made. */
static bool is_loaded_by_cuda(void)
{
	const char *named = getenv(INJECTION);
	char own[PATH_MAX], other[PATH_MAX];

	return named && realpath(named, other) && !find_own_path(own) && !strcmp(own, other);
}

static void lifecycle_start(void)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&has_ended, &attributes);
	pthread_condattr_destroy(&attributes);
	owner = getpid();
	session.wants_whole_graphs = getenv("RLSCOPE_CUPTI_WHOLE_GRAPHS") != NULL;
	session.may_trace_whole_graphs = session.wants_whole_graphs && is_loaded_by_cuda();
	session.wants_to_leave = getenv("RLSCOPE_CUPTI_LEAVE") != NULL;
	pthread_atfork(NULL, NULL, abandon_in_child);
	catch_exit();
	await_profiler();
	lifecycle_check(); /* here, so that a profiler that waits for us misses no launch */
	session.may_trace_whole_graphs = false;
	start_thread();
}

int InitializeInjection(void)
{
	bool is_first;

	pthread_mutex_lock(&lock);
	is_first = !is_started;
	is_started = true;
	pthread_mutex_unlock(&lock);
	if (is_first)
		lifecycle_start();
	return 1;
}

/* Only when preloaded: the program has not begun, so that its environment is still ours to
 * add to. A bridge that is loaded in any other way is started by who loads it. */
__attribute__((constructor)) static void ask_for_injection(void)
{
	const char *preloaded = getenv("LD_PRELOAD");
	char path[PATH_MAX];

	if (!preloaded || getenv(INJECTION) || find_own_path(path))
		return;
	if (strstr(preloaded, strrchr(path, '/') + 1))
		setenv(INJECTION, path, 0);
}
