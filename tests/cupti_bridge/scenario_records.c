/* What arrives: every interval, or a count of what does not. */
#include "scenario.h"

#include <stdlib.h>
#include <unistd.h>

#define THREADS 4

static void start(sink_receiver receiver)
{
	bridge_load(receiver);
	bridge_watch(1);
	cuda_start();
	REQUIRE(collector.last_status == RLS_CUPTI_ARMED); /* before cuInit has returned */
}

static void launch_wave(unsigned long count)
{
	struct launches launches[THREADS];

	launches_by_threads(launches, THREADS, count);
	wait_for_all();
	for (int i = 0; i < THREADS; i++) {
		launches_check(&launches[i]);
		launches_free(&launches[i]);
	}
}

/* LAUNCHES in all, on THREADS threads: each has its one interval, and nothing is lost. In
 * waves that the bridge's buffers can hold: how fast it is, is not tested here. */
static void every_launch(void)
{
	unsigned long count = setting("LAUNCHES", 100000);
	unsigned long wave = count < 100000 ? count / THREADS : 25000;

	start(collector_receive);
	for (unsigned long done = 0; done < count; done += THREADS * wave)
		launch_wave(wave);
	REQUIRE(collector.count[RLS_CUPTI_KERNEL] == count);
	REQUIRE(collector.count[RLS_CUPTI_API] >= 2 * count);
	REQUIRE(!collector.dropped && !collector.refused && !collector.unpooled &&
		!collector.unclaimed);
	REQUIRE(collector.clock_gap_ns > -1000000 && collector.clock_gap_ns < 1000000);
}

/* What came of CUPTI's: waits are reported by their calls' records. */
static unsigned long of_cupti(void)
{
	return collector_records() - atomic_load(&collector.count[RLS_CUPTI_SYNC]);
}

/* Those that CUPTI did not write it counts; all that it wrote have arrived. A launch makes
 * three: the kernel's, the runtime call's, the driver call's. */
static void dropped_by_cupti(void)
{
	unsigned long count = setting("LAUNCHES", 40000) / THREADS;
	struct launches launches[THREADS];

	start(collector_receive);
	launches_by_threads(launches, THREADS, count);
	wait_for_all();
	REQUIRE(of_cupti() == cupti_stored());
	REQUIRE(collector.dropped == cupti_dropped());
	REQUIRE(collector.dropped == (cupti_stored() + cupti_dropped()) / 7);
	REQUIRE(of_cupti() + collector.dropped > 3 * THREADS * count);
	for (int i = 0; i < THREADS; i++)
		launches_free(&launches[i]);
}

/* Work that was passed on though it starts before its launch: a thread that is kept between
 * launching and returning has its call recorded later than its work. */
static unsigned long count_early(const struct launches *launches)
{
	unsigned long count = 0;

	for (unsigned long i = 0; i < launches->count; i++) {
		const struct collected_launch *got = &collector.launches[launches->correlations[i]];

		count += got->works && got->start_ns < got->call_ns;
	}
	return count;
}

/* Times that cannot be: EVERY says how many of the kernels have them. */
static void impossible(void)
{
	unsigned long count = setting("LAUNCHES", 40000) / THREADS;
	unsigned long wrong = THREADS * count / setting("EVERY", 10), early = 0;
	struct launches launches[THREADS];

	start(collector_receive);
	launches_by_threads(launches, THREADS, count);
	wait_for_all();
	for (int i = 0; i < THREADS; i++) {
		early += count_early(&launches[i]);
		launches_free(&launches[i]);
	}
	REQUIRE(early <= THREADS && collector.refused == wrong - early);
	REQUIRE(collector.count[RLS_CUPTI_KERNEL] == THREADS * count - wrong + early);
	REQUIRE(!collector.dropped && !collector.unpooled);
}

static void all_kinds(void)
{
	struct fake_graph graph = {5, 4, kernels};
	struct launches launches = {0};
	void *stream = NULL;
	uint32_t copy, graph_launch;

	start(collector_receive);
	cuda.make_stream(&stream);
	launches_make(&launches, 10);
	REQUIRE(!cuda.copy(NULL, NULL, 4096, 1, stream));
	copy = cuda.last_correlation();
	REQUIRE(!cuda.set(NULL, 0, 64, stream));
	REQUIRE(!cuda.launch_graph(&graph, stream));
	graph_launch = cuda.last_correlation();
	for (int i = 0; i < 100; i++)
		cuda.last_error(); /* a call that launches nothing */
	cuda.wait_stream(stream);
	wait_for_all();
	launches_check(&launches);
	launches_free(&launches);
	REQUIRE(collector.count[RLS_CUPTI_MEMCPY] == 1 && collector.count[RLS_CUPTI_MEMSET] == 1);
	REQUIRE(collector.launches[copy].end_ns - collector.launches[copy].start_ns == 1256);
	REQUIRE(collector.count[RLS_CUPTI_SYNC] == 2 && collector.count[RLS_CUPTI_OVERHEAD] > 0);
	REQUIRE(collector.launches[graph_launch].driver_calls == 1);
	if (getenv("RLSCOPE_CUPTI_WHOLE_GRAPHS")) {
		REQUIRE(collector.count[RLS_CUPTI_KERNEL] == 10);
		REQUIRE(collector.count[RLS_CUPTI_GRAPH] == 1);
		REQUIRE(collector.launches[graph_launch].works == 1);
	} else {
		REQUIRE(collector.count[RLS_CUPTI_KERNEL] == 14);
		REQUIRE(collector.launches[graph_launch].works == 4);
	}
	/* 10 launches, copy, set, graph, two waits: by the runtime and the driver each. */
	REQUIRE(collector.count[RLS_CUPTI_API] == 2 * 15);
	REQUIRE(!collector.unclaimed && !collector.refused);
}

static atomic_bool was_launched;

static void receive_later(const void *batch, uint32_t bytes)
{
	collector_receive(batch, bytes);
	while (collector_records() > 1000 && !atomic_load(&was_launched))
		usleep(1000);
}

/* More than all buffers hold while the bridge's thread is kept: what is lost is counted. */
static void starved(void)
{
	unsigned long count = setting("LAUNCHES", 600000) / THREADS;
	struct launches launches[THREADS];

	start(receive_later);
	launches_by_threads(launches, THREADS, count);
	atomic_store(&was_launched, true);
	wait_for_all();
	REQUIRE(collector.unpooled > 0);
	REQUIRE(of_cupti() + collector.unpooled == cupti_stored());
	REQUIRE(!collector.dropped);
	for (int i = 0; i < THREADS; i++)
		launches_free(&launches[i]);
}

const struct scenario record_scenarios[] = {
	{"every-launch", every_launch}, {"dropped", dropped_by_cupti}, {"impossible", impossible},
	{"all-kinds", all_kinds},       {"starved", starved},          {0},
};
