/* The runtime: libcudart.so.11.0, .12, .13. Every call does its work by the driver's, whose
 * addresses it asks cuGetProcAddress_v2 for, as the real one does. See fake_cuda.h.
 */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <pthread.h>

#define NO_DRIVER 35

static struct driver {
	int (*init)(unsigned int flags);
	int (*launch)(const void *function, unsigned int gx, unsigned int gy, unsigned int gz,
		      unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
		      void *stream, void **parameters, void **extra);
	int (*launch_graph)(const void *graph, void *stream);
	int (*copy_in)(uint64_t to, const void *from, size_t bytes, void *stream);
	int (*copy_out)(void *to, uint64_t from, size_t bytes, void *stream);
	int (*copy_within)(uint64_t to, uint64_t from, size_t bytes, void *stream);
	int (*set)(uint64_t to, unsigned char value, size_t bytes, void *stream);
	int (*wait_stream)(void *stream);
	int (*wait_context)(void);
	int (*wait_event)(void *event);
	int (*make_stream)(void **stream, unsigned int flags);
	int (*end_stream)(void *stream);
	int (*allocate)(uint64_t *address, size_t bytes);
	int (*release)(uint64_t address);
	int (*count)(int *count);
	int (*set_current)(void *context);
	uint32_t (*enter)(enum fake_domain domain, uint32_t cbid);
	void (*leave)(enum fake_domain domain, uint32_t cbid, uint32_t correlation);
} driver;
static int driver_result = NO_DRIVER;

static void load_driver(void)
{
	static const char *const names[] = {
		"cuInit",
		"cuLaunchKernel",
		"cuGraphLaunch",
		"cuMemcpyHtoDAsync",
		"cuMemcpyDtoHAsync",
		"cuMemcpyDtoDAsync",
		"cuMemsetD8Async",
		"cuStreamSynchronize",
		"cuCtxSynchronize",
		"cuEventSynchronize",
		"cuStreamCreate",
		"cuStreamDestroy",
		"cuMemAlloc",
		"cuMemFree",
		"cuDeviceGetCount",
		"cuCtxSetCurrent",
		"fake_cuda_enter",
		"fake_cuda_leave",
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*find)(const char *, void **, int, uint64_t, int *) =
		library ? (int (*)(const char *, void **, int, uint64_t, int *))dlsym(
				  library, "cuGetProcAddress_v2")
			: NULL;

	_Static_assert(sizeof(names) / sizeof(*names) == sizeof(driver) / sizeof(void *), "names");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!find || find(names[i], (void **)&driver + i, 12000, 0, NULL))
			return;
	driver_result = driver.init(0);
}

static bool is_ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_driver);
	return !driver_result;
}

/* Every entry point: nothing without a driver, else the call between enter and leave. */
#define CALL(cbid, work)                                                                           \
	do {                                                                                       \
		if (!is_ready())                                                                   \
			return driver_result;                                                      \
		uint32_t correlation = driver.enter(FAKE_RUNTIME, cbid);                           \
		int result = (work);                                                               \
		driver.leave(FAKE_RUNTIME, cbid, correlation);                                     \
		return result;                                                                     \
	} while (0)

FAKE_EXPORT int cudaLaunchKernel(const void *function, struct fake_dim3 grid,
				 struct fake_dim3 block, void **arguments, size_t shared,
				 void *stream)
{
	CALL(211, driver.launch(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
				stream, arguments, NULL));
}

FAKE_EXPORT int cudaLaunchKernel_ptsz(const void *function, struct fake_dim3 grid,
				      struct fake_dim3 block, void **arguments, size_t shared,
				      void *stream)
{
	CALL(214, driver.launch(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
				stream, arguments, NULL));
}

FAKE_EXPORT int cudaGraphLaunch(const void *graph, void *stream)
{
	CALL(311, driver.launch_graph(graph, stream));
}

static int copy(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	switch (kind) {
	case 1:
		return driver.copy_in((uintptr_t)to, from, bytes, stream);
	case 2:
		return driver.copy_out(to, (uintptr_t)from, bytes, stream);
	case 3:
		return driver.copy_within((uintptr_t)to, (uintptr_t)from, bytes, stream);
	}
	return 21;
}

static int copy_and_wait(void *to, const void *from, size_t bytes, int kind)
{
	int result = copy(to, from, bytes, kind, NULL);

	return result ? result : driver.wait_stream(NULL);
}

FAKE_EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	CALL(41, copy(to, from, bytes, kind, stream));
}

FAKE_EXPORT int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	CALL(31, copy_and_wait(to, from, bytes, kind));
}

FAKE_EXPORT int cudaMemsetAsync(void *to, int value, size_t bytes, void *stream)
{
	CALL(51, driver.set((uintptr_t)to, value, bytes, stream));
}

FAKE_EXPORT int cudaMemset(void *to, int value, size_t bytes)
{
	CALL(49, driver.set((uintptr_t)to, value, bytes, NULL));
}

FAKE_EXPORT int cudaStreamSynchronize(void *stream)
{
	CALL(131, driver.wait_stream(stream));
}

FAKE_EXPORT int cudaDeviceSynchronize(void)
{
	CALL(165, driver.wait_context());
}

FAKE_EXPORT int cudaEventSynchronize(void *event)
{
	CALL(137, driver.wait_event(event));
}

FAKE_EXPORT int cudaStreamCreate(void **stream)
{
	CALL(129, driver.make_stream(stream, 0));
}

FAKE_EXPORT int cudaStreamDestroy(void *stream)
{
	CALL(130, driver.end_stream(stream));
}

FAKE_EXPORT int cudaMalloc(void **address, size_t bytes)
{
	CALL(20, driver.allocate((uint64_t *)address, bytes));
}

FAKE_EXPORT int cudaFree(void *address)
{
	CALL(22, driver.release((uintptr_t)address));
}

FAKE_EXPORT int cudaGetDeviceCount(int *count)
{
	CALL(3, driver.count(count));
}

FAKE_EXPORT int cudaSetDevice(int device)
{
	CALL(16, driver.set_current((void *)(uintptr_t)device));
}

static int get_last_error(void)
{
	return 0;
}

FAKE_EXPORT int cudaGetLastError(void)
{
	CALL(10, get_last_error());
}

FAKE_EXPORT int cudaRuntimeGetVersion(int *version)
{
	*version = FAKE_DRIVER_VERSION;
	return 0;
}
