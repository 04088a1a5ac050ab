/* CUPTI: libcupti.so.11.8, .12, .13, of what the bridge uses. See ../README.md.
 *
 * It is stricter than the real one: what would crash, hang or give wrong numbers there ends
 * the program here, with a sentence ("misuse"). It counts every call made to it.
 *
 * FAKE_CUPTI_SLOT_TAKEN=1    cuptiSubscribe: 39
 * FAKE_CUPTI_ENABLE=n        cuptiActivityEnable: n
 * FAKE_CUPTI_DROP=n          every n-th record is dropped, and counted
 * FAKE_CUPTI_ZERO=n          every n-th piece of work has no times
 * FAKE_CUPTI_BACKWARD=n      every n-th ends before it starts
 * FAKE_CUPTI_EARLY=n         every n-th starts a second before it was launched
 * FAKE_CUPTI_FUTURE=n        every n-th ends an hour from now
 * FAKE_CUPTI_VERSION=n       what cuptiGetVersion says
 * FAKE_CUPTI_REVERSE=1       buffers are delivered last first
 * FAKE_CUPTI_CALL_NS=n       each runtime call that it keeps a record of takes n longer
 * FAKE_CUPTI_STAYS=1         cuptiFinalize: 999
 * FAKE_CUPTI_LOG=path        one line a call is appended
 */
#include "fake_buffers.h"
#include "fake_records.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	SUCCESS = 0,
	INVALID_PARAMETER = 1,
	NOT_INITIALIZED = 15,
	INVALID_OPERATION = 16,
	SLOT_TAKEN = 39,
	UNKNOWN = 999,
};
#define KINDS_MAX 64
#define CALLS_MAX 1024
#define SECOND_NS 1000000000

typedef void (*api_callback)(void *userdata, int domain, uint32_t cbid, const void *data);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(uint64_t (*)(void)) client_clock;
static atomic_bool kind_is_on[KINDS_MAX], call_is_on[3][CALLS_MAX];
static bool is_subscribed, was_refused, were_settings_read;
static atomic_bool was_enabled, are_graphs_broken, were_graphs_recorded;
static _Atomic(api_callback) subscriber_callback;
static atomic_bool is_enabled[3][CALLS_MAX];
static atomic_uint finalized;
static atomic_uint thread_id_type;
static pid_t owner;
static atomic_ulong call_count, thread_count;
static atomic_uint flushing;
static _Thread_local uint64_t
	entered_ns[3]; /* by domain; [0]: not 0 where a call is reported to have ended well */
static _Thread_local unsigned long thread_number;

static uint64_t default_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static uint64_t clock_ns(void)
{
	uint64_t (*own)(void) = atomic_load(&client_clock);

	return own ? own() : default_clock();
}

/* One that is CLOCK_MONOTONIC itself has no shift at all, not a reading's worth of it. */
static void read_clock_shift(void)
{
	uint64_t before, now, after;
	int tries = 100;

	do {
		before = fake_monotonic_ns();
		now = clock_ns();
		after = fake_monotonic_ns();
	} while (after - before > 1000 && --tries);
	fake_buffers.clock_shift_ns =
		now >= before && now <= after ? 0 : (int64_t)(now - (before + after) / 2);
}

static uint64_t setting(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : 0;
}

static void misuse(const char *what)
{
	fprintf(stderr, "fake libcupti: misuse: %s\n", what);
	abort();
}

static void log_call(const char *name)
{
	const char *path = getenv("FAKE_CUPTI_LOG");
	FILE *file = path ? fopen(path, "ae") : NULL;

	if (!file)
		return;
	fprintf(file, "%d %s\n", getpid(), name);
	fclose(file);
}

static void read_settings(void)
{
	if (were_settings_read)
		return;
	were_settings_read = true;
	owner = getpid();
	fake_buffers.drop_every = setting("FAKE_CUPTI_DROP");
	fake_buffers.zero_every = setting("FAKE_CUPTI_ZERO");
	fake_buffers.backward_every = setting("FAKE_CUPTI_BACKWARD");
	fake_buffers.early_every = setting("FAKE_CUPTI_EARLY");
	fake_buffers.future_every = setting("FAKE_CUPTI_FUTURE");
	fake_buffers.is_reversed = setting("FAKE_CUPTI_REVERSE");
}

/* The beginning of every call: 13.2 overruns its stack without a driver, and a forked
 * child's libcupti has lost the thread that it waits for. */
static void begin(const char *name)
{
	bool is_subscribing = !strcmp(name, "cuptiSubscribe");
	static atomic_bool was_driver_seen; /* it is never unloaded */

	atomic_fetch_add(&call_count, 1);
	log_call(name);
	if (!atomic_load(&was_driver_seen) && !dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY))
		misuse("called without libcuda");
	atomic_store(&was_driver_seen, true);
	pthread_mutex_lock(&lock);
	read_settings();
	if (was_refused && !is_subscribing)
		misuse("called again after cuptiSubscribe failed");
	pthread_mutex_unlock(&lock);
	while (getpid() != owner)
		pause();
}

/* How many calls were made to this library in this process. */
FAKE_EXPORT unsigned long fake_cupti_calls(void);
FAKE_EXPORT unsigned long fake_cupti_calls(void)
{
	return atomic_load(&call_count);
}

/* How many records it has put into buffers. */
FAKE_EXPORT unsigned long fake_cupti_stored(void);
FAKE_EXPORT unsigned long fake_cupti_stored(void)
{
	unsigned long count;

	pthread_mutex_lock(&lock);
	count = fake_buffers.stored;
	pthread_mutex_unlock(&lock);
	return count;
}

/* And how many it has dropped. */
FAKE_EXPORT unsigned long fake_cupti_dropped(void);
FAKE_EXPORT unsigned long fake_cupti_dropped(void)
{
	unsigned long count;

	pthread_mutex_lock(&lock);
	count = fake_buffers.dropped_in_all;
	pthread_mutex_unlock(&lock);
	return count;
}

/* NULL when there is no driver. */
static void *driver_function(const char *name)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);

	return driver ? dlsym(driver, name) : NULL;
}

static bool has_device(void)
{
	bool (*ask)(void) = (bool (*)(void))driver_function("fake_cuda_has_device");

	return ask && ask();
}

/* Callers let a flush pass: threads that launch on and on would keep the lock among them. */
static void lock_as_caller(void)
{
	while (atomic_load(&flushing))
		sched_yield();
	pthread_mutex_lock(&lock);
}

static void lock_to_flush(void)
{
	atomic_fetch_add(&flushing, 1);
	pthread_mutex_lock(&lock);
	atomic_fetch_sub(&flushing, 1);
}

/* --- what the fake driver tells --------------------------------------------------------- */

static bool wants_call(enum fake_domain domain, uint32_t cbid)
{
	return cbid < CALLS_MAX &&
	       atomic_load_explicit(&call_is_on[domain][cbid], memory_order_relaxed);
}

struct api_callback_data {
	uint32_t site; /* 0 enter, 1 exit */
	const char *name;
	const void *arguments;
	int *result;
};

/* Every call here ends well; what a call within a capture returns is made up first. */
static void call_subscriber(enum fake_domain domain, uint32_t cbid, uint32_t site)
{
	api_callback callback = atomic_load(&subscriber_callback);
	int refused = 900, success = SUCCESS;
	struct api_callback_data data = {.site = site};

	if (!callback || cbid >= CALLS_MAX || !atomic_load(&is_enabled[domain][cbid]))
		return;
	if (site) {
		data.result = &refused;
		callback(NULL, domain, cbid, &data);
		data.result = &success;
	}
	entered_ns[0] = site;
	callback(NULL, domain, cbid, &data);
	entered_ns[0] = 0;
}

static void on_enter(enum fake_domain domain, uint32_t cbid, uint32_t correlation)
{
	call_subscriber(domain, cbid, 0);
	entered_ns[domain] = wants_call(domain, cbid) ? clock_ns() : 0;
}

static size_t own_place(void)
{
	if (!thread_number)
		thread_number = atomic_fetch_add(&thread_count, 1) + 1;
	return 1 + (FAKE_CUPTI_MAJOR >= 13 ? thread_number % FAKE_THREADS_MAX : 0);
}

/* The caller's time, as CUPTI's own work is. */
static void spend_time(uint64_t ns)
{
	uint64_t begin_ns = ns ? clock_ns() : 0;

	while (ns && clock_ns() - begin_ns < ns)
		;
}

static void on_leave(enum fake_domain domain, uint32_t cbid, uint32_t correlation)
{
	uint8_t record[FAKE_RECORD_BYTES_MAX];
	struct fake_api_record api = {.domain = domain,
				      .cbid = cbid,
				      .pid = getpid(),
				      .correlation = correlation,
				      .start_ns = entered_ns[domain]};

	call_subscriber(domain, cbid, 1);
	if (!api.start_ns || !wants_call(domain, cbid))
		return;
	if (domain == FAKE_RUNTIME)
		spend_time(setting("FAKE_CUPTI_CALL_NS"));
	api.end_ns = clock_ns();
	api.tid = thread_id_type == 1 ? (uint32_t)gettid() : (uint32_t)pthread_self();
	lock_as_caller();
	fake_buffers_store(own_place(), record, fake_record_api(&api, record));
	pthread_mutex_unlock(&lock);
}

static void on_work(const struct fake_work *work)
{
	if (!atomic_load_explicit(&kind_is_on[work->kind], memory_order_relaxed))
		return;
	if (work->graph)
		atomic_store(&were_graphs_recorded, true);
	lock_as_caller();
	if (!fake_buffers_add_work(work))
		misuse("no memory");
	pthread_mutex_unlock(&lock);
}

/* The real 13.0.1 ends the program at such a launch. */
static bool wants_whole_graphs(void)
{
	if (atomic_load(&are_graphs_broken))
		misuse("a graph launch with GRAPH_TRACE switched on after cuInit, or off again");
	return atomic_load(&kind_is_on[FAKE_GRAPH]);
}

static void observe(void)
{
	static const struct fake_observer observer = {on_enter, on_leave, on_work,
						      wants_whole_graphs};
	void (*hook)(const struct fake_observer *) =
		(void (*)(const struct fake_observer *))driver_function("fake_cuda_observe");

	if (hook)
		hook(&observer);
}

/* --- entry points, by CUPTI's names ------------------------------------------------------- */

FAKE_EXPORT int cuptiGetVersion(uint32_t *version)
{
	begin(__func__);
	*version =
		setting("FAKE_CUPTI_VERSION") ? setting("FAKE_CUPTI_VERSION") : FAKE_CUPTI_VERSION;
	return SUCCESS;
}

FAKE_EXPORT int cuptiGetTimestamp(uint64_t *timestamp)
{
	begin(__func__);
	*timestamp = clock_ns();
	return SUCCESS;
}

FAKE_EXPORT int cuptiGetResultString(int result, const char **text)
{
	begin(__func__);
	*text = result == SLOT_TAKEN ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
				     : "CUPTI_ERROR_OF_THE_FAKE";
	return SUCCESS;
}

FAKE_EXPORT int cuptiSubscribe(void **subscriber, void *callback, void *userdata)
{
	int result = SUCCESS;

	begin(__func__);
	pthread_mutex_lock(&lock);
	if (setting("FAKE_CUPTI_SLOT_TAKEN") || is_subscribed) {
		was_refused = !is_subscribed;
		result = SLOT_TAKEN;
	} else {
		was_refused = false;
		is_subscribed = true;
		atomic_store(&subscriber_callback, (api_callback)callback);
		*subscriber = &is_subscribed;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

FAKE_EXPORT int cuptiUnsubscribe(void *subscriber)
{
	begin(__func__);
	if (subscriber != &is_subscribed)
		return INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	is_subscribed = false;
	atomic_store(&subscriber_callback, NULL);
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}

FAKE_EXPORT int cuptiEnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t cbid)
{
	begin(__func__);
	if (subscriber != &is_subscribed || !is_subscribed)
		return INVALID_PARAMETER;
	if ((domain != FAKE_DRIVER && domain != FAKE_RUNTIME) || cbid >= CALLS_MAX)
		return INVALID_PARAMETER;
	atomic_store(&is_enabled[domain][cbid], enable);
	return SUCCESS;
}

static bool is_any_kind_on(void)
{
	for (size_t kind = 0; kind < KINDS_MAX; kind++)
		if (atomic_load(&kind_is_on[kind]))
			return true;
	return false;
}

/* All settings are forgotten. */
FAKE_EXPORT int cuptiFinalize(void)
{
	begin(__func__);
	if (FAKE_CUPTI_MAJOR < 13)
		misuse("cuptiFinalize of a version that frameworks saw crash after it");
	if (!entered_ns[0])
		misuse("cuptiFinalize elsewhere than where a call ends that ended well");
	if (is_any_kind_on())
		misuse("cuptiFinalize with kinds switched on");
	if (atomic_load(&were_graphs_recorded)) /* the real one does so when it comes back */
		misuse("cuptiFinalize after a graph was launched and recorded");
	if (setting("FAKE_CUPTI_STAYS"))
		return UNKNOWN;
	for (int domain = FAKE_DRIVER; domain <= FAKE_RUNTIME; domain++)
		for (size_t cbid = 0; cbid < CALLS_MAX; cbid++)
			atomic_store(&is_enabled[domain][cbid], false);
	pthread_mutex_lock(&lock);
	is_subscribed = false;
	atomic_store(&subscriber_callback, NULL);
	thread_id_type = 0;
	atomic_store(&client_clock, NULL);
	fake_buffers.request = NULL;
	fake_buffers.complete = NULL;
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&finalized, 1);
	return SUCCESS;
}

/* How many times it has left the process. */
FAKE_EXPORT unsigned long fake_cupti_finalized(void);
FAKE_EXPORT unsigned long fake_cupti_finalized(void)
{
	return atomic_load(&finalized);
}

FAKE_EXPORT int cuptiSetThreadIdType(uint32_t type)
{
	begin(__func__);
	thread_id_type = type;
	return SUCCESS;
}

FAKE_EXPORT int cuptiGetThreadIdType(uint32_t *type)
{
	begin(__func__);
	*type = thread_id_type;
	return SUCCESS;
}

FAKE_EXPORT int cuptiActivityRegisterTimestampCallback(uint64_t (*callback)(void))
{
	begin(__func__);
	if (!callback)
		return INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	atomic_store(&client_clock, callback);
	read_clock_shift();
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}

FAKE_EXPORT int cuptiActivityRegisterCallbacks(buffer_requested requested,
					       buffer_completed completed)
{
	begin(__func__);
	if (!requested || !completed)
		return INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	fake_buffers.request = requested;
	fake_buffers.complete = completed;
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}

static void set_calls(enum fake_domain domain, bool is_on)
{
	for (size_t cbid = 0; cbid < CALLS_MAX; cbid++)
		atomic_store(&call_is_on[domain][cbid], is_on);
}

static bool has_cuda_begun(void)
{
	int (*count)(int *) = (int (*)(int *))driver_function("cuDeviceGetCount");
	int devices;

	return count && !count(&devices);
}

static void set_kind(uint32_t kind, bool is_on)
{
	if (kind == FAKE_GRAPH && (is_on ? has_cuda_begun() : atomic_load(&kind_is_on[kind])))
		atomic_store(&are_graphs_broken, true);
	atomic_store(&kind_is_on[kind], is_on);
	if (kind == FAKE_RUNTIME_API)
		set_calls(FAKE_RUNTIME, is_on);
	if (kind == FAKE_DRIVER_API)
		set_calls(FAKE_DRIVER, is_on);
}

FAKE_EXPORT int cuptiActivityEnable(uint32_t kind)
{
	int refusal = setting("FAKE_CUPTI_ENABLE");

	begin(__func__);
	if (!has_device())
		return FAKE_CUPTI_MAJOR >= 13 ? UNKNOWN : NOT_INITIALIZED;
	if (refusal)
		return refusal;
	if (!fake_record_bytes(kind))
		return FAKE_INVALID_KIND;
	pthread_mutex_lock(&lock);
	read_clock_shift();
	was_enabled = true;
	pthread_mutex_unlock(&lock);
	set_kind(kind, true);
	observe();
	return SUCCESS;
}

FAKE_EXPORT int cuptiActivityDisable(uint32_t kind)
{
	begin(__func__);
	if (!fake_record_bytes(kind))
		return FAKE_INVALID_KIND;
	set_kind(kind, false);
	return SUCCESS;
}

#if FAKE_CUPTI_MAJOR >= 13 /* since 12.5 */
/* Those alone that were asked for, without their kind, the real 13.0.1 records before cuInit has
 * ended, and later on none of them. */
static int set_call(enum fake_domain domain, uint32_t cbid, uint8_t enable)
{
	uint32_t kind = domain == FAKE_RUNTIME ? FAKE_RUNTIME_API : FAKE_DRIVER_API;

	if (cbid >= CALLS_MAX)
		return INVALID_PARAMETER;
	if (!atomic_load(&kind_is_on[kind]) && has_cuda_begun())
		return SUCCESS;
	atomic_store(&call_is_on[domain][cbid], enable);
	return SUCCESS;
}

FAKE_EXPORT int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
	begin(__func__);
	return set_call(FAKE_RUNTIME, cbid, enable);
}

FAKE_EXPORT int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
	begin(__func__);
	return set_call(FAKE_DRIVER, cbid, enable);
}
#endif

FAKE_EXPORT int cuptiActivityFlushAll(uint32_t flag)
{
	uint8_t record[FAKE_RECORD_BYTES_MAX];
	uint64_t start_ns = clock_ns();

	begin(__func__);
	lock_to_flush();
	if (!fake_buffers.complete) {
		pthread_mutex_unlock(&lock);
		return INVALID_OPERATION;
	}
	read_clock_shift();
	fake_buffers_write_work(flag & 1);
	if (atomic_load(&kind_is_on[FAKE_OVERHEAD]) && fake_buffers.places[0].used)
		fake_buffers_store(0, record,
				   fake_record_overhead(1 << 16, getpid(), gettid(), start_ns,
							clock_ns(), record));
	fake_buffers_deliver_all(flag & 1);
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}

FAKE_EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
	begin(__func__);
	if (!was_enabled)
		misuse("cuptiActivityGetNumDroppedRecords before a successful enable");
	pthread_mutex_lock(&lock);
	*count = fake_buffers.dropped;
	fake_buffers.dropped = 0;
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}

FAKE_EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_size, uint8_t **record)
{
	atomic_fetch_add(&call_count, 1);
	return fake_record_next(buffer, valid_size, record);
}
