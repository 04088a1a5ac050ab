/* What NVIDIA's own libraries do with ours, in a process of its own without a GPU:
 *
 *     real_libraries parse LIBCUPTI    its parser walks our hand-made records, we decode them
 *     real_libraries clock LIBCUPTI    what its clock is
 *     real_libraries calls HEADERS     do our numbers name the calls that we mean?
 *     real_libraries inject            cuInit, by libcuda itself, loads the bridge
 *     real_libraries runtime CUDART    the same by the real CUDA runtime
 *
 * Compiled once a CUDA version, for the sizes of its records.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cupti_bridge/calls.h"
#include "cupti_bridge/clock.h"
#include "cupti_bridge/decode.h"
#include "tests/cupti_bridge/fakes/fake_records.h"

#define COUNT 8
#define BEGIN_NS 1000000
#define WAIT_US 50000 /* in which the bridge has looked, many times */

static void fail(const char *what)
{
	const char *why = dlerror();

	fprintf(stderr, "not so: %s%s%s\n", what, why ? ": " : "", why ? why : "");
	exit(1);
}

static void *find(void *library, const char *name)
{
	void *address = library ? dlsym(library, name) : NULL;

	if (!address)
		fail(name);
	return address;
}

static void *load_driver(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (!driver)
		fail("libcuda can be loaded");
	return driver;
}

/* One of each kind, distinguished by their correlation numbers. */
static size_t make(uint32_t i, void *record)
{
	static const struct {
		enum fake_work_kind kind;
		uint32_t subkind;
	} works[] = {{FAKE_KERNEL, 0},
		     {FAKE_MEMCPY, 8},
		     {FAKE_MEMSET, 3},
		     {FAKE_SYNC, 3},
		     {FAKE_GRAPH, 0}};
	struct fake_api_record api = {i & 1 ? FAKE_RUNTIME : FAKE_DRIVER,
				      i & 1 ? 211 : 307,
				      1,
				      77,
				      100 + i,
				      BEGIN_NS,
				      BEGIN_NS + i};

	if (i < 5) {
		const struct fake_work work = {
			.kind = works[i].kind,
			.subkind = works[i].subkind,
			.start_ns = BEGIN_NS,
			.end_ns = BEGIN_NS + i,
			.device = 1,
			.context = 2,
			.stream = 3,
			.correlation = 100 + i,
			.bytes = 4096,
			.name = "rls_fake_kernel_0",
			.graph_node = 9,
			.graph = 8,
		};

		return fake_record_work(&work, record);
	}
	if (i < 7)
		return fake_record_api(&api, record);
	return fake_record_overhead(1 << 16, 1, 77, BEGIN_NS, BEGIN_NS + i, record);
}

static void check(uint32_t i, const struct rls_cupti_record *got, const char *name)
{
	static const uint8_t kinds[COUNT] = {RLS_CUPTI_KERNEL, RLS_CUPTI_MEMCPY,  RLS_CUPTI_MEMSET,
					     RLS_CUPTI_SYNC,   RLS_CUPTI_GRAPH,   RLS_CUPTI_API,
					     RLS_CUPTI_API,    RLS_CUPTI_OVERHEAD};
	bool is_work = i < 5, has_device = is_work && i != 3, is_kernel = !i;

	if (got->kind != kinds[i] || got->start_ns != BEGIN_NS || got->end_ns != BEGIN_NS + i)
		fail("kind and times");
	if (i < 7 && got->correlation != 100 + i)
		fail("correlation");
	if (is_work && (got->context != 2 || got->stream != 3 || got->device != has_device))
		fail("device, context, stream");
	if (is_kernel && (!name || strcmp(name, "rls_fake_kernel_0") || got->graph_node != 9))
		fail("kernel");
	if ((i == 1 || i == 2) && (got->value != 4096 || got->graph != 8))
		fail("bytes");
	if (!is_work && got->tid != 77)
		fail("thread");
}

static int parse(const char *path)
{
	static uint8_t buffer[COUNT * 2 * FAKE_RECORD_BYTES_MAX];
	uint8_t record[FAKE_RECORD_BYTES_MAX];
	struct rls_walk walk = {.buffer = buffer};
	const uint8_t *bytes;
	uint32_t i = 0;
	size_t length;

	load_driver();
	walk.next = (rls_next_record)find(dlopen(path, RTLD_NOW), "cuptiActivityGetNextRecord");
	for (; i < 2 * COUNT; i++) {
		size_t made = make(i % COUNT, record);

		memcpy(buffer + walk.valid_bytes, record, made);
		walk.valid_bytes += made;
	}
	for (i = 0; rls_walk_step(&walk, &bytes, &length) > 0; i++) {
		struct rls_cupti_record got;
		const char *name = NULL;

		if (length != make(i % COUNT, record))
			fail("a record is as long as NVIDIA's parser says");
		if (rls_record_decode(bytes, length, &got, &name) != RLS_DECODED)
			fail("decoded");
		check(i % COUNT, &got, name);
	}
	if (i != 2 * COUNT || walk.error)
		fail("every record is walked");
	return 0;
}

/* CUPTI's own clock, which ours stands in for. A clock of ours can be registered only where
 * there is a device. */
static int has_default_clock(const char *path)
{
	int (*get_timestamp)(uint64_t *), (*register_clock)(uint64_t(*)(void));
	struct rls_clock_reading reading;
	void *cupti;
	uint64_t own;

	load_driver();
	cupti = dlopen(path, RTLD_NOW);
	get_timestamp = (int (*)(uint64_t *))find(cupti, "cuptiGetTimestamp");
	register_clock =
		(int (*)(uint64_t(*)(void)))find(cupti, "cuptiActivityRegisterTimestampCallback");
	rls_clock_lend(false);
	own = rls_clock_for_cupti();
	if (rls_clock_read(get_timestamp, &reading) || rls_clock_is_ours(&reading))
		fail("CUPTI's clock is not CLOCK_MONOTONIC");
	if (reading.cupti_ns < own || reading.cupti_ns - own > 10000000000)
		fail("CUPTI's clock is CLOCK_REALTIME");
	if (!register_clock(rls_clock_for_cupti))
		fail("without a device a clock is refused");
	return 0;
}

static bool begins(const char *name, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (!strncmp(name, *prefixes, strlen(*prefixes)))
			return true;
	return false;
}

/* By its name: puts work on the GPU, or waits for it. */
static bool is_meant(const char *name)
{
	static const char *const launching[] = {"cudaLaunch",
						"__cudaLaunchKernel",
						"cudaMemcpy",
						"cudaMemset",
						"cudaGraphLaunch",
						"cudaThreadSynchronize",
						"cudaStreamSynchronize",
						"cudaEventSynchronize",
						"cudaDeviceSynchronize",
						"cudaExecutionCtxSynchronize",
						"cuSubgridScheduleLaunch",
						"cuLaunch",
						"cuMemcpy",
						"cu64Memcpy",
						"cuMemset",
						"cu64Memset",
						"cuGraphLaunch",
						"cuCtxSynchronize",
						"cuStreamSynchronize",
						"cuEventSynchronize",
						NULL};
	static const char *const not [] = {"cudaLaunchHostFunc", "cuLaunchHostFunc", NULL};

	return begins(name, launching) && !begins(name, not );
}

/* "    CUPTI_DRIVER_TRACE_CBID_cuInit    = 1," of NVIDIA's header. Returns how many there are. */
static unsigned int check_calls(const char *folder, const char *header, unsigned int domain)
{
	char path[4096], line[512], name[256];
	unsigned int cbid, count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, header);
	file = fopen(path, "re");
	if (!file)
		fail(path);
	while (fgets(line, sizeof(line), file)) {
		const char *begin = strstr(line, "_TRACE_CBID_");

		if (!begin || sscanf(begin, "_TRACE_CBID_%255s = %u", name, &cbid) != 2)
			continue;
		count++;
		if (strcmp(name, "SIZE") && rls_call_launches(domain, cbid) != is_meant(name)) {
			fprintf(stderr, "%u is %s\n", cbid, name);
			fail("the calls that are recorded are those that launch");
		}
	}
	fclose(file);
	return count;
}

static int check_all_calls(const char *folder)
{
	return check_calls(folder, "cupti_runtime_cbid.h", RLS_CUPTI_RUNTIME) < 400 ||
	       check_calls(folder, "cupti_driver_cbid.h", RLS_CUPTI_DRIVER) < 600;
}

static int inject(void)
{
	int (*initialise)(unsigned int) = (int (*)(unsigned int))find(load_driver(), "cuInit");
	int result = initialise(0);

	if (!result)
		fail("there is no GPU here");
	printf("cuInit: %d\n", result);
	usleep(WAIT_US);
	return 0;
}

static int use_runtime(const char *path)
{
	int (*count_devices)(int *) =
		(int (*)(int *))find(dlopen(path, RTLD_NOW), "cudaGetDeviceCount");
	int count = 0, result = count_devices(&count);

	printf("cudaGetDeviceCount: %d\n", result);
	usleep(WAIT_US);
	return result ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "parse"))
		return parse(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "clock"))
		return has_default_clock(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "calls"))
		return check_all_calls(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "inject"))
		return inject();
	if (argc == 3 && !strcmp(argv[1], "runtime"))
		return use_runtime(argv[2]);
	fprintf(stderr, "usage: see %s\n", __FILE__);
	return 2;
}
