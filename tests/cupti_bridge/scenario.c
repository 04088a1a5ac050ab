#include "scenario.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct fake_calls cuda;
const struct fake_kernel kernels[4] = {
	{"rls_fake_kernel_0", 500},
	{"rls_fake_kernel_1", 700},
	{"rls_fake_kernel_2", 900},
	{"rls_fake_kernel_3", 1100},
};
static void (*watch)(unsigned int);

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

unsigned long setting(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

void bridge_load(sink_receiver receiver)
{
	void *bridge = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
	void (*receive)(sink_receiver) = NULL;

	if (!bridge)
		fprintf(stderr, "%s\n", dlerror());
	REQUIRE(bridge != NULL);
	watch = (void (*)(unsigned int))dlsym(bridge, "sink_watch");
	receive = (void (*)(sink_receiver))dlsym(bridge, "sink_receive");
	REQUIRE(watch && receive);
	collector_reset();
	receive(receiver);
}

void bridge_watch(unsigned int watchers)
{
	watch(watchers);
}

void cuda_start(void)
{
	int devices = 0;

	fake_calls_load(&cuda, true);
	cuda.count(&devices);
}

static void nap(void)
{
	usleep(1000);
}

void wait_for_status(enum rls_cupti_status status)
{
	uint64_t until_ns = now_ns() + PATIENCE_NS;

	while (collector.last_status != status && now_ns() < until_ns)
		nap();
	REQUIRE(collector.last_status == status);
}

void wait_for_more(unsigned int statuses)
{
	uint64_t until_ns = now_ns() + PATIENCE_NS;

	while (collector.status_count <= statuses && now_ns() < until_ns)
		nap();
	REQUIRE(collector.status_count > statuses);
}

void watch_anew(enum rls_cupti_status status)
{
	uint64_t until_ns = now_ns() + PATIENCE_NS;

	while (collector.last_status != status && now_ns() < until_ns) {
		bridge_watch(0);
		usleep(200000);
		bridge_watch(1);
		for (int i = 0; i < 1000 && collector.last_status != status; i++)
			nap();
	}
	REQUIRE(collector.last_status == status);
}

void wait_for_all(void)
{
	uint64_t asked_ns = now_ns();

	while (collector.flushed_ns <= asked_ns && now_ns() < asked_ns + PATIENCE_NS)
		nap();
	REQUIRE(collector.flushed_ns > asked_ns);
}

static void launch_all(struct launches *launches, void *stream)
{
	struct fake_dim3 one = {1, 1, 1};

	for (unsigned long i = 0; i < launches->count; i++) {
		REQUIRE(!cuda.launch(&kernels[(i + launches->thread) % 4], one, one, NULL, 0,
				     stream));
		launches->correlations[i] = cuda.last_correlation();
		if (i % 1000 == 999)
			cuda.wait_stream(stream);
	}
	cuda.wait_stream(stream);
}

void launches_make(struct launches *launches, unsigned long count)
{
	void *stream = NULL;

	launches->count = count;
	launches->tid = gettid();
	launches->correlations = malloc(count * sizeof(*launches->correlations));
	REQUIRE(launches->correlations && !cuda.make_stream(&stream));
	launch_all(launches, stream);
	cuda.end_stream(stream);
}

void launches_check(const struct launches *launches)
{
	for (unsigned long i = 0; i < launches->count; i++) {
		const struct collected_launch *got = &collector.launches[launches->correlations[i]];
		unsigned int name = (i + launches->thread) % 4;

		REQUIRE(got->works == 1);
		REQUIRE(got->runtime_calls == 1 && got->driver_calls == 1);
		REQUIRE(got->tid == (uint32_t)launches->tid);
		REQUIRE(got->name == name);
		REQUIRE(got->end_ns - got->start_ns == kernels[name].duration_ns);
		REQUIRE(got->start_ns >= got->call_ns);
	}
}

void launches_free(struct launches *launches)
{
	free(launches->correlations);
	launches->correlations = NULL;
}

static void *make_in_thread(void *argument)
{
	struct launches *launches = argument;

	launches_make(launches, launches->count);
	return NULL;
}

void launches_by_threads(struct launches *launches, unsigned int threads, unsigned long count)
{
	pthread_t ids[64];

	REQUIRE(threads <= 64);
	for (unsigned int i = 0; i < threads; i++) {
		launches[i] = (struct launches){.count = count, .thread = i};
		REQUIRE(!pthread_create(&ids[i], NULL, make_in_thread, &launches[i]));
	}
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
}

void *cupti_function(const char *name)
{
	void *cupti = fake_calls_cupti(), *function = cupti ? dlsym(cupti, name) : NULL;

	REQUIRE(function != NULL);
	return function;
}

static unsigned long ask(const char *function)
{
	unsigned long (*count)(void) = (unsigned long (*)(void))cupti_function(function);

	return count();
}

unsigned long cupti_calls(void)
{
	return ask("fake_cupti_calls");
}

unsigned long cupti_stored(void)
{
	return ask("fake_cupti_stored");
}

unsigned long cupti_dropped(void)
{
	return ask("fake_cupti_dropped");
}

unsigned long cupti_left(void)
{
	return ask("fake_cupti_finalized");
}

void wait_for_leave(unsigned long times)
{
	uint64_t until_ns = now_ns() + PATIENCE_NS;

	while (cupti_left() < times && now_ns() < until_ns)
		nap();
	REQUIRE(cupti_left() == times);
	usleep(20000); /* and the bridge has seen it */
}

static bool play(const struct scenario *scenarios, const char *name)
{
	for (; scenarios->name; scenarios++)
		if (!strcmp(scenarios->name, name)) {
			scenarios->play();
			return true;
		}
	return false;
}

int main(int argc, char **argv)
{
	if (argc != 2 || (!play(record_scenarios, argv[1]) && !play(life_scenarios, argv[1]) &&
			  !play(conflict_scenarios, argv[1]))) {
		fprintf(stderr, "usage: %s SCENARIO\n", argv[0]);
		return 2;
	}
	return 0;
}
