#include "userspace/commands/read_progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "userspace/monotonic.h"

#define NS_PER_S 1000000000ull
#define FIRST_NS NS_PER_S               /* shorter waits need no line */
#define NEXT_NS (NS_PER_S / 4)
#define LOOK_EVENTS 16384               /* the clock is looked at so often */
#define SHARE_TOLD 0.005                /* a remaining time needs something to go by */

struct watched_source {
	struct rls_event_source source; /* first: the source is this */
	struct rls_event_source *inner;
	uint64_t events;
	uint64_t start_ns;
	uint64_t due_ns;
	bool shown;
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
	if (share >= SHARE_TOLD)
		snprintf(buffer + used, RLS_READ_PROGRESS_BYTES - (size_t)used, ", %.0f s left",
			 seconds * (1 - share) / share);
	return buffer;
}

static void look(struct watched_source *watched)
{
	char line[RLS_READ_PROGRESS_BYTES];
	uint64_t now_ns = rls_monotonic_ns();

	if (now_ns < watched->due_ns)
		return;
	fprintf(stderr, "\r%s\033[K",
		rls_read_progress_line(line, rls_event_source_share(watched->inner),
				       watched->events, now_ns - watched->start_ns));
	watched->shown = true;
	watched->due_ns = now_ns + NEXT_NS;
}

static void wipe(struct watched_source *watched)
{
	if (watched->shown)
		fputs("\r\033[K", stderr);
	watched->shown = false;
}

static int next_event(struct rls_event_source *source, struct rls_event *out)
{
	struct watched_source *watched = (struct watched_source *)source;
	int got = watched->inner->next(watched->inner, out);

	source->damaged = watched->inner->damaged;
	if (got <= 0)
		wipe(watched);
	else if (++watched->events % LOOK_EVENTS == 0)
		look(watched);
	return got;
}

static double share_read(const struct rls_event_source *source)
{
	return rls_event_source_share(((const struct watched_source *)source)->inner);
}

static void free_source(struct rls_event_source *source)
{
	struct watched_source *watched = (struct watched_source *)source;

	wipe(watched);
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
	watched->start_ns = rls_monotonic_ns();
	watched->due_ns = watched->start_ns + FIRST_NS;
	return &watched->source;
}
