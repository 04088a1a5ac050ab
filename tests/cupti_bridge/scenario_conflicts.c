/* What else may be there, or not be there. */
#include "scenario.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int (*inject)(void);

static void start(void)
{
	bridge_load(collector_receive);
	bridge_watch(1);
	cuda_start();
}

/* CUDA goes on whatever became of the bridge. */
static void work_on(void)
{
	struct launches launches = {0};

	launches_make(&launches, 1000);
	launches_free(&launches);
}

/* A fault is reported when it begins, and again each second. */
static unsigned int at_most_since(uint64_t begin_ns)
{
	return 1 + (unsigned int)((now_ns() - begin_ns) / 1000000000);
}

/* STATUS and, where not zero, CODE are what is expected; the fake ends the program at a call
 * that it may not get. */
static void refused(void)
{
	uint64_t begin_ns = now_ns();
	unsigned int said;

	start();
	REQUIRE(collector.last_status == setting("STATUS", 0));
	REQUIRE(collector.last_code == setting("CODE", 0));
	work_on();
	usleep(300000);
	said = collector.status_count;
	REQUIRE(said >= 1 && said <= at_most_since(begin_ns) && collector_records() == 0);
	bridge_watch(0);
	usleep(200000);
	bridge_watch(1);
	wait_for_more(said);
	REQUIRE(collector.status_count <= 1 + at_most_since(begin_ns) &&
		collector.last_status == setting("STATUS", 0));
}

static void no_device(void)
{
	start();
	REQUIRE(collector.last_status == RLS_CUPTI_FAILED);
	REQUIRE(collector.last_code == 15 || collector.last_code == 999);
}

/* Loaded by who comes later, before CUDA is. */
static void no_driver(void)
{
	uint64_t begin_ns;
	void *bridge;

	bridge_load(collector_receive);
	bridge_watch(1);
	begin_ns = now_ns();
	bridge = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
	inject = (int (*)(void))dlsym(bridge, "InitializeInjection");
	REQUIRE(inject() == 1 && inject() == 1);
	REQUIRE(collector.last_status == RLS_CUPTI_NO_DRIVER);
	usleep(50000);
	REQUIRE(collector.status_count <= at_most_since(begin_ns));
	cuda_start();
	wait_for_status(RLS_CUPTI_ARMED);
}

/* Another tool that holds the place, and lets it go; and one that comes after us. */
static void slot_shared(void)
{
	int (*subscribe)(void **, void *, void *), (*unsubscribe)(void *);
	int (*get_thread_id_type)(uint32_t *), (*get_timestamp)(uint64_t *);
	struct launches launches = {0};
	struct timespec before, after;
	uint64_t timestamp;
	uint32_t type = 9;
	unsigned int said;
	void *handle;

	bridge_load(collector_receive);
	cuda_start();
	subscribe = cupti_function("cuptiSubscribe");
	unsubscribe = cupti_function("cuptiUnsubscribe");
	get_thread_id_type = cupti_function("cuptiGetThreadIdType");
	get_timestamp = cupti_function("cuptiGetTimestamp");
	REQUIRE(!subscribe(&handle, NULL, NULL));
	bridge_watch(1);
	wait_for_status(RLS_CUPTI_SLOT_TAKEN);
	work_on();
	said = collector
		       .status_count; /* again each second: the semaphore tells of one profiler, not two */
	wait_for_more(said);
	REQUIRE(collector.last_status == RLS_CUPTI_SLOT_TAKEN);
	REQUIRE(!unsubscribe(handle));
	watch_anew(RLS_CUPTI_ARMED);
	REQUIRE(subscribe(&handle, NULL, NULL) == 39);
	launches_make(&launches, 100);
	bridge_watch(0);
	wait_for_status(RLS_CUPTI_DISARMED);
	launches_check(&launches);
	launches_free(&launches);
	/* All is as it was. */
	REQUIRE(!subscribe(&handle, NULL, NULL));
	REQUIRE(!get_thread_id_type(&type) && type == 0);
	clock_gettime(CLOCK_REALTIME, &before);
	REQUIRE(!get_timestamp(&timestamp));
	clock_gettime(CLOCK_REALTIME, &after);
	REQUIRE(timestamp / 1000000000 >= (uint64_t)before.tv_sec &&
		timestamp / 1000000000 <= (uint64_t)after.tv_sec);
}

static uint64_t their_clock(void)
{
	return __builtin_ia32_rdtsc();
}

static uint8_t *theirs[1024];
static atomic_uint their_count;

static void their_request(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*size = 65536;
	*buffer = malloc(*size);
	*records_max = 0;
	theirs[atomic_fetch_add(&their_count, 1) % 1024] = *buffer;
}

/* As NVIDIA's samples do: whatever comes is freed, our buffers too. */
static void their_completion(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			     size_t valid_size)
{
	free(buffer);
}

static void steal(void)
{
	int (*register_clock)(uint64_t(*)(void)) =
		cupti_function("cuptiActivityRegisterTimestampCallback");
	int (*register_callbacks)(void *, void *) =
		cupti_function("cuptiActivityRegisterCallbacks");

	REQUIRE(!register_clock(their_clock));
	REQUIRE(!register_callbacks((void *)their_request, (void *)their_completion));
}

/* What a newer Kineto does when torch.profiler starts. */
static void stolen(void)
{
	struct launches launches = {0};
	unsigned long unpooled;

	start();
	for (int i = 0; i < 5; i++) {
		launches_make(&launches, 100); /* buffers of ours are out */
		launches_free(&launches);
		steal();
		wait_for_status(RLS_CUPTI_STOLEN);
		work_on();
		unpooled = collector.unpooled;
		watch_anew(RLS_CUPTI_ARMED);
		collector_reset();
		launches_make(&launches, 100);
		wait_for_all();
		launches_check(&launches);
		launches_free(&launches);
		REQUIRE(collector.unpooled >= unpooled); /* theirs, which came back to us */
	}
}

/* The same, between our end and the next call at which CUPTI would leave: it stays for the other tool. */
static void stolen_while_leaving(void)
{
	int (*enable)(uint32_t), (*flush)(uint32_t);
	struct launches launches = {0};

	start();
	launches_make(&launches, 100);
	bridge_watch(0);
	wait_for_status(RLS_CUPTI_DISARMED);
	launches_free(&launches);
	enable = cupti_function("cuptiActivityEnable");
	flush = cupti_function("cuptiActivityFlushAll");
	steal();
	REQUIRE(!enable(10));
	cuda.wait_stream(NULL); /* the fake ends the program where CUPTI leaves now */
	work_on();
	REQUIRE(!flush(0));
	REQUIRE(cupti_left() == 0 && atomic_load(&their_count) > 0);
	bridge_watch(1);
	wait_for_status(RLS_CUPTI_ARMED);
}

const struct scenario conflict_scenarios[] = {
	{"refused", refused},
	{"no-device", no_device},
	{"no-driver", no_driver},
	{"slot-shared", slot_shared},
	{"stolen", stolen},
	{"stolen-while-leaving", stolen_while_leaving},
	{0},
};
