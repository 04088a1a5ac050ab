#include "userspace/commands/shared/read_progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "userspace/base/clock.h"

#define NS_PER_S 1000000000ull
#define FIRST_NS NS_PER_S /* shorter waits need no line */
#define NEXT_NS (NS_PER_S / 4)
#define REPORT_EVENTS 16384 /* the clock is looked at so often */
#define SHARE_MIN 0.005 /* a remaining time needs something to go by */

/* The line, and when it is due. */
struct progress {
	uint64_t start_ns;
	uint64_t due_ns;
	bool shown;
};

struct watched_source {
	struct rls_event_source source; /* first: the source is this */
	struct rls_event_source *inner;
	uint64_t events;
	struct progress progress;
};

struct opening {
	struct rls_event_source_watch watch; /* first: the watch is this */
	struct progress progress;
};

const char *rls_read_progress_line(char buffer[static RLS_READ_PROGRESS_BYTES], double share,
				   uint64_t events, uint64_t passed_ns)
{
	double seconds = passed_ns ? (double)passed_ns / (double)NS_PER_S : 1e-9;
	int used = snprintf(buffer, RLS_READ_PROGRESS_BYTES, "reading a trace: ");

	if (share >= 0)
		used += snprintf(buffer + used, RLS_READ_PROGRESS_BYTES - (size_t)used, "%.0f %%, ",
				 100 * share);
	used += snprintf(buffer + used, RLS_READ_PROGRESS_BYTES - (size_t)used,
			 "%.1f million events/s", (double)events / seconds / 1e6);
	if (share >= SHARE_MIN)
		snprintf(buffer + used, RLS_READ_PROGRESS_BYTES - (size_t)used, ", %.0f s left",
			 seconds * (1 - share) / share);
	return buffer;
}

static struct progress read_progress_begin(void)
{
	uint64_t now_ns = rls_monotonic_ns();

	return (struct progress){.start_ns = now_ns, .due_ns = now_ns + FIRST_NS};
}

static void read_progress_check(struct progress *progress, double share, uint64_t events)
{
	char line[RLS_READ_PROGRESS_BYTES];
	uint64_t now_ns = rls_monotonic_ns();

	if (now_ns < progress->due_ns)
		return;
	fprintf(stderr, "\r%s\033[K",
		rls_read_progress_line(line, share, events, now_ns - progress->start_ns));
	progress->shown = true;
	progress->due_ns = now_ns + NEXT_NS;
}

static void wipe(struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}

static void report_opening(struct rls_event_source_watch *watch, double share, uint64_t events)
{
	read_progress_check(&((struct opening *)watch)->progress, share, events);
}

int rls_read_progress_open(const char *path, struct rls_event_source **out, char *message,
			   size_t message_bytes)
{
	struct opening opening = {.watch.report = report_opening,
				  .progress = read_progress_begin()};
	int error = rls_event_source_open_watched(
		path, isatty(STDERR_FILENO) ? &opening.watch : NULL, out, message, message_bytes);

	wipe(&opening.progress);
	if (!error)
		*out = rls_read_progress(*out);
	return error;
}

static int next_event(struct rls_event_source *source, struct rls_event *out)
{
	struct watched_source *watched = (struct watched_source *)source;
	int got = watched->inner->next(watched->inner, out);

	source->damaged = watched->inner->damaged;
	if (got <= 0)
		wipe(&watched->progress);
	else if (++watched->events % REPORT_EVENTS == 0)
		read_progress_check(&watched->progress, rls_event_source_share(watched->inner),
				    watched->events);
	return got;
}

static double share_read(const struct rls_event_source *source)
{
	return rls_event_source_share(((const struct watched_source *)source)->inner);
}

static void free_source(struct rls_event_source *source)
{
	struct watched_source *watched = (struct watched_source *)source;

	wipe(&watched->progress);
	watched->inner->free(watched->inner);
	free(watched);
}

struct rls_event_source *rls_read_progress(struct rls_event_source *source)
{
	struct watched_source *watched = isatty(STDERR_FILENO) ? calloc(1, sizeof(*watched)) : NULL;

	if (!watched)
		return source;
	watched->source = (struct rls_event_source){
		.next = next_event,
		.share = share_read,
		.free = free_source,
		.strings = source->strings,
		.damaged = source->damaged,
	};
	watched->inner = source;
	watched->progress = read_progress_begin();
	return &watched->source;
}
