/* Prints how many events per second the trace file takes and gives, and its bytes per event.
 * No test: run it by hand, `rls_trace_speed [millions of events]`.
 *
 * The stream is what a busy recording looks like: a few threads change category every 1 to
 * 50 microseconds, each change with its probe hits, now and then with time off the CPU.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "analysis/trace/trace_reader.h"
#include "analysis/trace/trace_writer.h"

#define THREADS 4

static uint64_t random_state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 32) % below;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void add(struct rls_trace_writer *writer, const struct rls_event *event)
{
	if (rls_trace_writer_add(writer, event)) {
		fputs("cannot write\n", stderr);
		exit(1);
	}
}

/* One change of category: two events, with time off the CPU three. Returns how many. */
static int add_change(struct rls_trace_writer *writer, uint64_t time_ns)
{
	static unsigned int category[THREADS];
	unsigned int thread = draw(THREADS);
	struct rls_event event = {.pid = 4000, .tid = 4000 + thread, .time_ns = time_ns};
	uint32_t silent = draw(4) ? 0 : draw(6);

	category[thread] = category[thread] == RLS_CATEGORY_PYTHON
				   ? RLS_CATEGORY_SIMULATOR + draw(2)
				   : RLS_CATEGORY_PYTHON;
	event.kind = RLS_EVENT_CATEGORY;
	event.category.category = category[thread];
	add(writer, &event);
	event.kind = RLS_EVENT_HITS;
	event.hits.count = 1 + silent;
	event.hits.cost_ns = (category[thread] == RLS_CATEGORY_PYTHON ? 420 : 640) + silent * 610;
	add(writer, &event);
	if (draw(20))
		return 2;
	event.kind = RLS_EVENT_OFF_CPU;
	event.off_cpu.ns = draw(20000);
	add(writer, &event);
	return 3;
}

static void write_trace(int fd, const struct rls_string_pool *strings, uint64_t wanted)
{
	struct rls_trace_writer *writer;
	uint64_t time_ns = 1000000000000, events = 0;
	double start = seconds(), took;

	if (rls_trace_writer_open_fd(dup(fd), strings, &writer))
		exit(1);
	while (events < wanted) {
		time_ns += 1000 + draw(49000);
		events += add_change(writer, time_ns);
	}
	if (rls_trace_writer_flush(writer))
		exit(1);
	took = seconds() - start;
	printf("write %.1f million events/s, %.2f bytes an event\n", events / took / 1e6,
	       (double)lseek(fd, 0, SEEK_END) / (double)events);
	rls_trace_writer_close(writer);
}

static void read_trace(int fd)
{
	struct rls_event_source *source;
	struct rls_event event;
	char message[200];
	uint64_t events = 0;
	double start = seconds(), took;

	if (rls_trace_reader_open(dup(fd), &source, message, sizeof(message)))
		exit(1);
	while (source->next(source, &event) > 0)
		events++;
	took = seconds() - start;
	printf("read %.1f million events/s\n", events / took / 1e6);
	source->free(source);
}

int main(int argc, char **argv)
{
	uint64_t millions = argc > 1 ? strtoull(argv[1], NULL, 10) : 4;
	struct rls_string_pool *strings = rls_string_pool_new();
	int fd = memfd_create("trace", MFD_CLOEXEC);

	if (!strings || fd < 0)
		return 1;
	write_trace(fd, strings, millions * 1000000);
	read_trace(fd);
	rls_string_pool_free(strings);
	close(fd);
	return 0;
}
