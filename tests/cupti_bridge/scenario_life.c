/* Arming and disarming, forking, and being idle. */
#include "scenario.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(void)
{
	bridge_load(collector_receive);
	cuda_start();
}

/* No recorder: CUPTI is not called, though the program works, and forks. */
static void idle(void)
{
	struct launches launches[2];
	int status = 0;
	pid_t child;

	start();
	launches_by_threads(launches, 2, 100000);
	usleep(300000);
	REQUIRE(cupti_calls() == 0);
	REQUIRE(collector.batches == 0);
	child = fork();
	if (!child)
		exit(collector.batches == 0 ? 7 : 1);
	REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
		WEXITSTATUS(status) == 7);
	launches_free(&launches[0]);
	launches_free(&launches[1]);
}

/* Each time all that is launched while armed arrives, and nothing of before. */
static void again_and_again(void)
{
	unsigned long rounds = setting("ROUNDS", 1000);
	unsigned long calls;
	struct launches before = {0}, launches = {0};

	start();
	for (unsigned long i = 0; i < rounds; i++) {
		collector_reset();
		launches_make(&before, 5);
		bridge_watch(1);
		wait_for_status(RLS_CUPTI_ARMED);
		launches_make(&launches, 20);
		bridge_watch(0);
		wait_for_status(RLS_CUPTI_DISARMED);
		launches_check(&launches);
		REQUIRE(collector.count[RLS_CUPTI_KERNEL] == 20);
		launches_free(&before);
		launches_free(&launches);
	}
	calls = cupti_calls();
	launches_make(&before, 100);
	usleep(50000);
	REQUIRE(cupti_calls() == calls);
	REQUIRE(!collector.dropped && !collector.refused && !collector.unpooled);
	launches_free(&before);
}

static void arm_and_launch(unsigned long count)
{
	struct launches launches = {0};

	collector_reset();
	bridge_watch(1);
	wait_for_status(RLS_CUPTI_ARMED);
	launches_make(&launches, count);
	bridge_watch(0);
	wait_for_status(RLS_CUPTI_DISARMED);
	launches_check(&launches);
	launches_free(&launches);
}

/* Not before the target waits for its GPU, and then for good: nothing of CUPTI's is called again, and it comes back
 * for the next recorder. */
static void leaves(void)
{
	struct launches after = {0};
	unsigned long calls;

	start();
	for (unsigned long i = 1; i <= 5; i++) {
		arm_and_launch(20);
		usleep(50000);
		REQUIRE(cupti_left() == i - 1);
		cuda.wait_stream(NULL);
		wait_for_leave(i);
		calls = cupti_calls();
		launches_make(&after, 100);
		launches_free(&after);
		usleep(50000);
		REQUIRE(cupti_calls() == calls);
	}
}

/* Nobody waits for the GPU before the next one begins. */
static void leaves_no_more(void)
{
	start();
	for (int i = 0; i < 20; i++)
		arm_and_launch(20);
	bridge_watch(1);
	wait_for_status(RLS_CUPTI_ARMED);
	cuda.wait_stream(NULL);
	REQUIRE(cupti_left() == 0);
}

static void stays(void)
{
	int (*subscribe)(void **, void *, void *) = cupti_function("cuptiSubscribe");
	uint64_t until_ns = now_ns() + PATIENCE_NS;
	void *handle;
	int refused;

	cuda.wait_stream(NULL);
	usleep(50000);
	REQUIRE(cupti_left() == 0);
	while ((refused = subscribe(&handle, NULL, NULL)) && now_ns() < until_ns)
		usleep(1000);
	REQUIRE(!refused); /* the place is free all the same */
}

/* Not asked to, too old to, refusing to, or asked for what it must go on with. */
static void never_leaves(void)
{
	bridge_load(collector_receive);
	bridge_watch(1);
	cuda_start();
	arm_and_launch(20);
	stays();
}

static void launch_graphs(unsigned long count)
{
	struct fake_graph graph = {5, 4, kernels};

	for (unsigned long i = 0; i < count; i++)
		REQUIRE(!cuda.launch_graph(&graph, NULL));
	cuda.wait_stream(NULL);
}

static void arm_and_launch_graphs(unsigned long count)
{
	bridge_watch(1);
	wait_for_status(RLS_CUPTI_ARMED);
	launch_graphs(count);
	bridge_watch(0);
	wait_for_status(RLS_CUPTI_DISARMED);
}

static void never_leaves_graphs(void)
{
	start();
	arm_and_launch_graphs(10);
	stays();
}

/* Recorded while a recorder wants it. In between CUPTI has to go on with it, which goes nowhere. */
static void whole_graphs_again(void)
{
	bridge_load(collector_receive);
	bridge_watch(1);
	cuda_start();
	arm_and_launch_graphs(10);
	REQUIRE(collector.count[RLS_CUPTI_GRAPH] == 10);
	launch_graphs(setting("LAUNCHES", 200000));
	arm_and_launch_graphs(20);
	REQUIRE(collector.count[RLS_CUPTI_GRAPH] == 30 && !collector.count[RLS_CUPTI_KERNEL]);
	REQUIRE(!collector.dropped && !collector.refused && !collector.unpooled);
}

/* Who comes when CUDA runs already gets nodes: CUPTI would end the program at the next graph. */
static void whole_graphs_late(void)
{
	start();
	launch_graphs(10);
	arm_and_launch_graphs(10);
	REQUIRE(collector.count[RLS_CUPTI_KERNEL] == 40 && !collector.count[RLS_CUPTI_GRAPH]);
	launch_graphs(10);
}

static atomic_bool must_stop;

static void *launch_on(void *unused)
{
	struct launches launches = {0};

	while (!atomic_load(&must_stop)) {
		launches_make(&launches, 200);
		launches_free(&launches);
		usleep(1000); /* locks are not fair: others get theirs */
	}
	return NULL;
}

static bool has_seen(unsigned long kernels_beyond, unsigned long leaves)
{
	return collector.count[RLS_CUPTI_KERNEL] > kernels_beyond && cupti_left() >= leaves;
}

/* Switched while threads launch and never wait for it. What arrives is whole and in order,
 * which the collector sees to; how much does depends on when, so it goes on until that is enough. */
static void switch_under_load(unsigned long rounds, unsigned long leaves)
{
	uint64_t until_ns = now_ns() + PATIENCE_NS;
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		REQUIRE(!pthread_create(&threads[i], NULL, launch_on, NULL));
	for (unsigned long i = 0; i < rounds || (!has_seen(rounds, leaves) && now_ns() < until_ns);
	     i++) {
		bridge_watch(1);
		wait_for_status(RLS_CUPTI_ARMED);
		usleep(i % 8 * 500);
		bridge_watch(0);
		wait_for_status(RLS_CUPTI_DISARMED);
	}
	atomic_store(&must_stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	REQUIRE(has_seen(rounds, leaves));
	REQUIRE(!collector.dropped && !collector.unpooled);
}

static void under_load(void)
{
	start();
	switch_under_load(setting("ROUNDS", 200), 0);
}

/* Threads wait for the GPU all the time: one of them takes CUPTI out while others launch. */
static void leaves_under_load(void)
{
	start();
	switch_under_load(setting("ROUNDS", 200), 1);
}

static void second_profiler(void)
{
	unsigned int said;

	start();
	bridge_watch(1);
	wait_for_status(RLS_CUPTI_ARMED);
	said = collector.status_count;
	bridge_watch(2);
	wait_for_more(said);
	REQUIRE(collector.status_count == said + 1 && collector.last_status == RLS_CUPTI_ARMED);
	bridge_watch(1);
	usleep(50000);
	REQUIRE(collector.last_status == RLS_CUPTI_ARMED);
	bridge_watch(0);
	wait_for_status(RLS_CUPTI_DISARMED);
}

/* In the child: one status, and the end as if the bridge were not there. */
static void live_as_child(void)
{
	REQUIRE(collector.last_status == RLS_CUPTI_FORKED);
	bridge_watch(0);
	bridge_watch(3);
	usleep(20000);
	REQUIRE(collector.last_status == RLS_CUPTI_FORKED);
	exit(7);
}

static void forks(void)
{
	struct launches launches = {0};

	start();
	bridge_watch(1);
	wait_for_status(RLS_CUPTI_ARMED);
	for (int i = 0; i < 10; i++) {
		int status = 0;
		pid_t child;

		launches_make(&launches, 50);
		child = fork();
		if (!child)
			live_as_child();
		REQUIRE(waitpid(child, &status, 0) == child);
		REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		wait_for_all();
		launches_check(&launches);
		launches_free(&launches);
	}
	REQUIRE(collector.last_status == RLS_CUPTI_ARMED);
	REQUIRE(collector.count[RLS_CUPTI_KERNEL] == 10 * 50);
}

static struct launches last;

/* Runs after the bridge's own, which was registered later. */
static void check_at_exit(void)
{
	if (collector.last_status != RLS_CUPTI_DISARMED ||
	    collector.count[RLS_CUPTI_KERNEL] != last.count) {
		fprintf(stderr, "status %u, kernels %lu at exit\n", collector.last_status,
			collector.count[RLS_CUPTI_KERNEL]);
		_exit(1);
	}
	launches_check(&last);
	launches_free(&last);
}

/* What was launched just before is fetched. */
static void exits(void)
{
	atexit(check_at_exit);
	start();
	bridge_watch(1);
	wait_for_status(RLS_CUPTI_ARMED);
	launches_make(&last, 500);
	exit(0);
}

/* 0 until it has its name. */
static int bridge_thread(void)
{
	FILE *list = popen("grep -l '^Name:.rlscope-cupti' /proc/$PPID/task/*/status", "r");
	int tid = 0;

	REQUIRE(list != NULL);
	if (fscanf(list, "/proc/%*d/task/%d/", &tid) != 1)
		tid = 0;
	pclose(list);
	return tid;
}

/* The target's handlers run on the target's threads. */
static void signals(void)
{
	char path[64], line[128];
	unsigned long long blocked = 0;
	FILE *status;
	int tid = 0;

	start();
	for (uint64_t until_ns = now_ns() + PATIENCE_NS; !tid && now_ns() < until_ns;)
		tid = bridge_thread();
	REQUIRE(tid);
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	status = fopen(path, "re");
	REQUIRE(status != NULL);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "SigBlk: %llx", &blocked);
	fclose(status);
	REQUIRE((blocked | 0x1c0040100) == 0xffffffffffffffff); /* but KILL, STOP, libc's own two */
}

const struct scenario life_scenarios[] = {
	{"idle", idle},
	{"again-and-again", again_and_again},
	{"leaves", leaves},
	{"leaves-no-more", leaves_no_more},
	{"leaves-under-load", leaves_under_load},
	{"never-leaves", never_leaves},
	{"never-leaves-graphs", never_leaves_graphs},
	{"whole-graphs-again", whole_graphs_again},
	{"whole-graphs-late", whole_graphs_late},
	{"under-load", under_load},
	{"second-profiler", second_profiler},
	{"forks", forks},
	{"exits", exits},
	{"signals", signals},
	{0},
};
