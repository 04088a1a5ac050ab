/* Events per second through the sweep, and that its memory does not grow with them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "analysis/report/report.h"

struct maker {
	struct rls_event_source source;
	uint64_t left;
	uint64_t now_ns;
	uint64_t correlation;
	rls_string_id operations[4];
	unsigned int step;
};

/* A loop as a training job has it: boundary calls with their hits, now and then an operation,
 * a launch and its kernel, on two threads. */
static int next(struct rls_event_source *source, struct rls_event *event)
{
	struct maker *maker = (struct maker *)source;
	unsigned int step = maker->step++ % 16;

	if (!maker->left--)
		return 0;
	maker->now_ns += 100;
	event->pid = 1;
	event->tid = 1 + maker->step / 64 % 2;
	event->time_ns = maker->now_ns;
	if (step == 0) {
		event->kind = RLS_EVENT_OPERATION;
		event->operation.depth = 1;
		event->operation.stack[0] = maker->operations[maker->step / 16 % 4];
	} else if (step == 1) {
		event->kind = RLS_EVENT_LAUNCH;
		event->launch.name = 0;
		event->launch.correlation = ++maker->correlation;
	} else if (step == 2) {
		event->kind = RLS_EVENT_GPU;
		memset(&event->gpu, 0, sizeof(event->gpu));
		event->gpu.end_ns = maker->now_ns + 300;
		event->gpu.correlation = maker->correlation;
	} else if (step % 2) {
		event->kind = RLS_EVENT_CATEGORY;
		event->category.category = 1 + step / 2 % 3;
	} else {
		event->kind = RLS_EVENT_HITS;
		event->hits.count = 3;
		event->hits.cost_ns = 40;
	}
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000000;
	struct rls_string_pool *strings = rls_string_pool_new();
	struct maker maker = {.source = {.next = next, .strings = strings}, .left = count};
	struct rls_report *report;
	struct timespec begin, end;
	struct rusage usage;
	double seconds;

	for (int i = 0; i < 4; i++)
		rls_string_pool_add(strings, &"abcd"[i], 1, &maker.operations[i]);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (rls_report_build(&maker.source, &report))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &end);
	getrusage(RUSAGE_SELF, &usage);
	seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	printf("%" PRIu64 " events, %zu rows: %.1f million events/s, %ld KiB at most\n", count,
	       report->breakdown_count, (double)count / seconds / 1e6, usage.ru_maxrss);
	rls_report_free(report);
	rls_string_pool_free(strings);
	return 0;
}
