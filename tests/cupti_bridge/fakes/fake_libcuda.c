/* The driver: libcuda.so.1. See fake_cuda.h and ../README.md.
 *
 * FAKE_CUDA_DEVICES=n    devices (1)
 * FAKE_CUDA_NO_DEVICE=1  cuInit loads the injection, as the real one does, and returns 100
 * FAKE_CUDA_LATENCY_NS=n from a launch to its start on an idle stream (2000)
 */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NO_DEVICE 100
#define NOT_FOUND 500
#define STREAMS_MAX 256
#define FIRST_STREAM_ID 7 /* the default stream's, as CUPTI shows it */

struct fake_stream {
	uint32_t id;
	uint32_t device;
	uint64_t busy_until_ns;
	bool is_free; /* destroyed; given out again */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_stream streams[STREAMS_MAX]; /* the first ones are the devices' default */
static uint32_t stream_count, device_count;
static uint64_t latency_ns;
static atomic_bool is_initialised;
static _Atomic(const struct fake_observer *) observer;
static atomic_uint last_correlation;
static _Thread_local uint32_t depth, own_correlation, own_device;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

FAKE_EXPORT void fake_cuda_observe(const struct fake_observer *whose)
{
	atomic_store(&observer, whose);
}

FAKE_EXPORT bool fake_cuda_has_device(void)
{
	return !setting("FAKE_CUDA_NO_DEVICE", 0);
}

/* A driver call inside a runtime call has the runtime call's number. */
FAKE_EXPORT uint32_t fake_cuda_enter(enum fake_domain domain, uint32_t cbid)
{
	const struct fake_observer *who = atomic_load(&observer);

	if (!depth++)
		own_correlation = atomic_fetch_add(&last_correlation, 1) + 1;
	if (who)
		who->enter(domain, cbid, own_correlation);
	return own_correlation;
}

FAKE_EXPORT void fake_cuda_leave(enum fake_domain domain, uint32_t cbid, uint32_t correlation)
{
	const struct fake_observer *who = atomic_load(&observer);

	if (who)
		who->leave(domain, cbid, correlation);
	depth--;
}

/* The number of the calling thread's last call. */
FAKE_EXPORT uint32_t fake_cuda_last_correlation(void);
FAKE_EXPORT uint32_t fake_cuda_last_correlation(void)
{
	return own_correlation;
}

static struct fake_stream *stream_of(void *handle)
{
	return handle ? handle : &streams[own_device];
}

/* Takes the stream for this long and returns the times. */
static void occupy(struct fake_stream *stream, uint64_t duration_ns, struct fake_work *work)
{
	uint64_t earliest = now_ns() + latency_ns;

	pthread_mutex_lock(&lock);
	work->start_ns = stream->busy_until_ns > earliest ? stream->busy_until_ns : earliest;
	work->end_ns = work->start_ns + duration_ns;
	stream->busy_until_ns = work->end_ns;
	pthread_mutex_unlock(&lock);
	work->device = stream->device;
	work->context = stream->device + 1;
	work->stream = stream->id;
}

static void submit(struct fake_stream *stream, uint64_t duration_ns, struct fake_work work)
{
	const struct fake_observer *who = atomic_load(&observer);

	work.correlation = own_correlation;
	occupy(stream, duration_ns, &work);
	if (who)
		who->work(&work);
}

/* --- start ------------------------------------------------------------------------- */

/* As the real one: by this variable, in cuInit, before it is known whether there is a
 * device; called again at the next cuInit when it returns 0; every error ignored. */
static void inject(void)
{
	static bool is_done;
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path && *path && !is_done ? dlopen(path, RTLD_NOW) : NULL;
	int (*initialise)(void) =
		library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;

	is_done = initialise && initialise();
}

FAKE_EXPORT int cuInit(unsigned int flags)
{
	static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&init_lock);
	inject();
	if (!is_initialised) {
		device_count = setting("FAKE_CUDA_DEVICES", 1);
		device_count = device_count > 64 ? 64 : device_count;
		latency_ns = setting("FAKE_CUDA_LATENCY_NS", 2000);
		for (stream_count = 0; stream_count < device_count; stream_count++)
			streams[stream_count] =
				(struct fake_stream){.id = FIRST_STREAM_ID, .device = stream_count};
		is_initialised = true;
	}
	pthread_mutex_unlock(&init_lock);
	return fake_cuda_has_device() ? 0 : NO_DEVICE;
}

FAKE_EXPORT int cuDriverGetVersion(int *version)
{
	*version = FAKE_DRIVER_VERSION;
	return 0;
}

FAKE_EXPORT int cuDeviceGetCount(int *count)
{
	*count = device_count;
	return is_initialised ? 0 : 3;
}

/* Contexts are devices here. */
FAKE_EXPORT int cuCtxSetCurrent(void *context)
{
	own_device = (uint32_t)(uintptr_t)context % (device_count ? device_count : 1);
	return 0;
}

FAKE_EXPORT int cuCtxGetCurrent(void **context)
{
	uint32_t correlation = fake_cuda_enter(FAKE_DRIVER, 304);

	*context = (void *)(uintptr_t)own_device;
	fake_cuda_leave(FAKE_DRIVER, 304, correlation);
	return 0;
}

/* --- work --------------------------------------------------------------------------- */

static int launch(uint32_t cbid, const struct fake_kernel *kernel, void *stream)
{
	uint32_t correlation = fake_cuda_enter(FAKE_DRIVER, cbid);

	submit(stream_of(stream), kernel->duration_ns,
	       (struct fake_work){.kind = FAKE_KERNEL, .name = kernel->name});
	fake_cuda_leave(FAKE_DRIVER, cbid, correlation);
	return 0;
}

FAKE_EXPORT int cuLaunchKernel(void *function, unsigned int gx, unsigned int gy, unsigned int gz,
			       unsigned int bx, unsigned int by, unsigned int bz,
			       unsigned int shared, void *stream, void **parameters, void **extra)
{
	return launch(307, function, stream);
}

FAKE_EXPORT int cuLaunchKernel_ptsz(void *function, unsigned int gx, unsigned int gy,
				    unsigned int gz, unsigned int bx, unsigned int by,
				    unsigned int bz, unsigned int shared, void *stream,
				    void **parameters, void **extra)
{
	return launch(442, function, stream);
}

/* The configuration's stream is after grid, block (24 bytes) and shared memory. */
struct launch_config {
	unsigned int grid_block[6], shared;
	void *stream;
};

FAKE_EXPORT int cuLaunchKernelEx(const struct launch_config *config, void *function,
				 void **parameters, void **extra)
{
	return launch(652, function, config->stream);
}

/* Sixteen bytes a nanosecond, and a microsecond at least. */
static uint64_t transfer_ns(uint64_t bytes)
{
	return 1000 + bytes / 16;
}

static int copy(uint32_t cbid, uint32_t kind, size_t bytes, void *stream)
{
	uint32_t correlation = fake_cuda_enter(FAKE_DRIVER, cbid);

	submit(stream_of(stream), transfer_ns(bytes),
	       (struct fake_work){.kind = FAKE_MEMCPY, .subkind = kind, .bytes = bytes});
	fake_cuda_leave(FAKE_DRIVER, cbid, correlation);
	return 0;
}

FAKE_EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
	return copy(277, 1, bytes, stream);
}

FAKE_EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
	return copy(279, 2, bytes, stream);
}

FAKE_EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	return copy(281, 8, bytes, stream);
}

FAKE_EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream)
{
	uint32_t correlation = fake_cuda_enter(FAKE_DRIVER, 216);

	submit(stream_of(stream), transfer_ns(bytes),
	       (struct fake_work){.kind = FAKE_MEMSET, .subkind = value, .bytes = bytes});
	fake_cuda_leave(FAKE_DRIVER, 216, correlation);
	return 0;
}

static void launch_nodes(const struct fake_graph *graph, struct fake_stream *stream)
{
	for (uint32_t i = 0; i < graph->count; i++)
		submit(stream, graph->nodes[i].duration_ns,
		       (struct fake_work){.kind = FAKE_KERNEL,
					  .name = graph->nodes[i].name,
					  .graph = graph->id,
					  .graph_node = ((uint64_t)graph->id << 32) + i + 1});
}

FAKE_EXPORT int cuGraphLaunch(const struct fake_graph *graph, void *stream)
{
	uint32_t correlation = fake_cuda_enter(FAKE_DRIVER, 514);
	const struct fake_observer *who = atomic_load(&observer);
	uint64_t duration_ns = 0;

	for (uint32_t i = 0; i < graph->count; i++)
		duration_ns += graph->nodes[i].duration_ns;
	if (who && who->wants_whole_graphs())
		submit(stream_of(stream), duration_ns,
		       (struct fake_work){.kind = FAKE_GRAPH, .graph = graph->id});
	else
		launch_nodes(graph, stream_of(stream));
	fake_cuda_leave(FAKE_DRIVER, 514, correlation);
	return 0;
}

/* --- waiting ------------------------------------------------------------------------- */

static void sleep_until(uint64_t time_ns)
{
	struct timespec until = {time_ns / 1000000000, time_ns % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}

static int synchronise(uint32_t cbid, uint32_t type, struct fake_stream *only)
{
	uint32_t correlation = fake_cuda_enter(FAKE_DRIVER, cbid);
	const struct fake_observer *who = atomic_load(&observer);
	uint64_t until_ns = 0;
	struct fake_work work = {.kind = FAKE_SYNC,
				 .subkind = type,
				 .start_ns = now_ns(),
				 .device = own_device,
				 .context = own_device + 1,
				 .stream = only ? only->id : 0,
				 .correlation = correlation};

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < stream_count; i++)
		if (only ? &streams[i] == only : streams[i].device == own_device)
			until_ns = streams[i].busy_until_ns > until_ns ? streams[i].busy_until_ns
								       : until_ns;
	pthread_mutex_unlock(&lock);
	if (until_ns > work.start_ns)
		sleep_until(until_ns);
	work.end_ns = now_ns();
	if (who)
		who->work(&work);
	fake_cuda_leave(FAKE_DRIVER, cbid, correlation);
	return 0;
}

FAKE_EXPORT int cuStreamSynchronize(void *stream)
{
	return synchronise(126, 3, stream_of(stream));
}

FAKE_EXPORT int cuCtxSynchronize(void)
{
	return synchronise(17, 4, NULL);
}

/* Events are streams: waiting for one waits for what its stream has. */
FAKE_EXPORT int cuEventSynchronize(void *event)
{
	return synchronise(121, 1, stream_of(event));
}

/* One that was destroyed, or a new one. Under the lock. */
static struct fake_stream *find_stream(void)
{
	for (uint32_t i = device_count; i < stream_count; i++)
		if (streams[i].is_free)
			return &streams[i];
	return stream_count < STREAMS_MAX ? &streams[stream_count++] : NULL;
}

FAKE_EXPORT int cuStreamCreate(void **stream, unsigned int flags)
{
	struct fake_stream *made;

	pthread_mutex_lock(&lock);
	made = find_stream();
	if (made)
		*made = (struct fake_stream){.id = FIRST_STREAM_ID + 1 + (made - streams),
					     .device = own_device};
	pthread_mutex_unlock(&lock);
	*stream = made;
	return made ? 0 : 2;
}

FAKE_EXPORT int cuStreamDestroy_v2(struct fake_stream *stream)
{
	pthread_mutex_lock(&lock);
	stream->is_free = true;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* --- memory and look-up --------------------------------------------------------------- */

FAKE_EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	uint32_t correlation = fake_cuda_enter(FAKE_DRIVER, 243);

	*address = (uintptr_t)malloc(bytes ? bytes : 1);
	fake_cuda_leave(FAKE_DRIVER, 243, correlation);
	return *address ? 0 : 2;
}

FAKE_EXPORT int cuMemFree_v2(uint64_t address)
{
	uint32_t correlation = fake_cuda_enter(FAKE_DRIVER, 245);

	free((void *)(uintptr_t)address);
	fake_cuda_leave(FAKE_DRIVER, 245, correlation);
	return 0;
}

/* The addresses that are exported, as the real one answers; the newest of a name. */
FAKE_EXPORT int cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags,
				    int *status)
{
	void *self = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
	char newest[128] = "";
	void *found = NULL;

	if (!self || strlen(symbol) + sizeof("_v2") > sizeof(newest))
		return NOT_FOUND;
	strcat(strcpy(newest, symbol), "_v2");
	found = dlsym(self, newest);
	if (!found)
		found = dlsym(self, symbol);
	dlclose(self);
	*address = found;
	return found ? 0 : NOT_FOUND;
}
