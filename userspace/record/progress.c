#include "userspace/record/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

void rls_progress_start(struct rls_progress *progress, uint64_t now_ns)
{
	progress->start_ns = now_ns;
	progress->shown_ns = now_ns;
	progress->shown_events = progress->events;
	progress->terminal = isatty(STDERR_FILENO);
}

void rls_progress_tick(struct rls_progress *progress, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - progress->shown_ns;

	if (!progress->terminal || passed_ns < 1000000000ULL)
		return;
	fprintf(stderr, "\r%4" PRIu64 " s, %.0f events/s \033[K",
		(now_ns - progress->start_ns) / UINT64_C(1000000000),
		(double)(progress->events - progress->shown_events) * 1e9 / (double)passed_ns);
	progress->shown_ns = now_ns;
	progress->shown_events = progress->events;
}

void rls_progress_end(struct rls_progress *progress)
{
	if (progress->terminal)
		fputs("\r\033[K", stderr);
}
