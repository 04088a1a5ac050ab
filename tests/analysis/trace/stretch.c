/* stretch TRACE EVENTS OUTPUT: a long trace, made of a recorded one played again and again.
 *
 * Each round continues where the last one stopped: states, names and rates are the recorded
 * ones, only ends, metadata and births come once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event/event_source.h"
#include "analysis/trace/trace_writer.h"

struct stretch {
	const char *path;
	struct rls_trace_writer *writer;
	uint64_t wanted;
	uint64_t written;
	uint64_t shift_ns;
	bool timed; /* the two below hold */
	uint64_t first_ns, last_ns;
};

static bool comes_once(enum rls_event_kind kind)
{
	switch (kind) {
	case RLS_EVENT_CATEGORY:
	case RLS_EVENT_OPERATION:
	case RLS_EVENT_PHASE:
	case RLS_EVENT_LAUNCH:
	case RLS_EVENT_GPU:
	case RLS_EVENT_HITS:
	case RLS_EVENT_OFF_CPU:
		return false;
	default:
		return true;
	}
}

static bool is_end(enum rls_event_kind kind)
{
	return kind == RLS_EVENT_END || kind == RLS_EVENT_PROCESS_END ||
	       kind == RLS_EVENT_THREAD_END;
}

/* 0, or -errno. */
static int play(struct stretch *stretch, struct rls_event_source *source, bool first_round)
{
	struct rls_event event;
	int more;

	while (stretch->written < stretch->wanted && (more = source->next(source, &event)) > 0) {
		int err;

		if (is_end(event.kind) || (!first_round && comes_once(event.kind)))
			continue;
		if (!comes_once(event.kind)) {
			if (!stretch->timed)
				stretch->first_ns = event.time_ns;
			stretch->timed = true;
			stretch->last_ns = event.time_ns;
			event.time_ns += stretch->shift_ns;
			if (event.kind == RLS_EVENT_GPU)
				event.gpu.end_ns += stretch->shift_ns;
		}
		err = rls_trace_writer_add(stretch->writer, &event);
		if (err)
			return err;
		stretch->written++;
	}
	return 0;
}

static int finish(struct stretch *stretch)
{
	const struct rls_event end = {
		.kind = RLS_EVENT_END,
		.time_ns = stretch->last_ns + stretch->shift_ns + 1,
		.end.complete = true,
	};
	int err = rls_trace_writer_add(stretch->writer, &end);
	int closed = rls_trace_writer_close(stretch->writer);

	return err ? err : closed;
}

static struct rls_event_source *open_trace(const char *path)
{
	struct rls_event_source *source;
	char message[300];

	if (!rls_event_source_open(path, &source, message, sizeof(message)))
		return source;
	fprintf(stderr, "stretch: %s\n", message);
	exit(1);
}

int main(int argc, char **argv)
{
	struct stretch stretch = {0};
	struct rls_event_source *names, *source;
	int err;

	if (argc != 4)
		return fprintf(stderr, "usage: stretch TRACE EVENTS OUTPUT\n"), 2;
	stretch.wanted = strtoull(argv[2], NULL, 10);
	/* Every round reads the same file, so its ids are those of this source's pool. */
	names = open_trace(argv[1]);
	err = rls_trace_writer_open(argv[3], names->strings, &stretch.writer);
	for (bool first = true; !err && stretch.written < stretch.wanted; first = false) {
		uint64_t before = stretch.written;

		source = open_trace(argv[1]);
		err = play(&stretch, source, first);
		source->free(source);
		if (stretch.written == before)
			break;
		if (stretch.written < stretch.wanted)
			stretch.shift_ns += stretch.last_ns - stretch.first_ns + 1;
	}
	if (!err)
		err = finish(&stretch);
	names->free(names);
	if (err)
		return fprintf(stderr, "stretch: %s\n", strerror(-err)), 1;
	printf("%" PRIu64 " events, %.1f s\n", stretch.written,
	       (double)(stretch.last_ns + stretch.shift_ns - stretch.first_ns) / 1e9);
	return 0;
}
