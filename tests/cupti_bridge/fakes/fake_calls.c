#include "fake_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

static void *load_any(const char *const *names, int flags)
{
	void *library = NULL;

	for (; *names && !library; names++)
		library = dlopen(*names, RTLD_NOW | flags);
	return library;
}

static void *find(void *library, const char *name)
{
	void *address = library ? dlsym(library, name) : NULL;

	if (!address) {
		fprintf(stderr, "no %s in the fake libraries (LD_LIBRARY_PATH?)\n", name);
		_exit(2);
	}
	return address;
}

static const char *const cuptis[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", NULL};

void *fake_calls_cupti(void)
{
	return load_any(cuptis, RTLD_NOLOAD);
}

void fake_calls_load(struct fake_calls *calls, bool loads_cupti)
{
	static const char *const runtimes[] = {"libcudart.so.13", "libcudart.so.12",
					       "libcudart.so.11.0", NULL};
	static const char *const drivers[] = {"libcuda.so.1", NULL};
	void *runtime = load_any(runtimes, 0), *driver;

	if (loads_cupti)
		load_any(cuptis, 0);
	driver = load_any(drivers, 0);
	calls->driver_launch = find(driver, "cuLaunchKernel");
	calls->last_correlation = find(driver, "fake_cuda_last_correlation");
	calls->launch = find(runtime, "cudaLaunchKernel");
	calls->launch_graph = find(runtime, "cudaGraphLaunch");
	calls->copy = find(runtime, "cudaMemcpyAsync");
	calls->set = find(runtime, "cudaMemsetAsync");
	calls->make_stream = find(runtime, "cudaStreamCreate");
	calls->end_stream = find(runtime, "cudaStreamDestroy");
	calls->wait_stream = find(runtime, "cudaStreamSynchronize");
	calls->set_device = find(runtime, "cudaSetDevice");
	calls->count = find(runtime, "cudaGetDeviceCount");
	calls->last_error = find(runtime, "cudaGetLastError");
}
