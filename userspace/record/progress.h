/* Progress: one line on stderr that is written over, and only on a terminal. */
#ifndef RLS_PROGRESS_H
#define RLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct rls_progress {
	uint64_t start_ns, shown_ns;
	uint64_t events, shown_events;
	bool terminal;
};

void rls_progress_start(struct rls_progress *progress, uint64_t now_ns);
/* Shows the time and the rate of events, once a second. */
void rls_progress_tick(struct rls_progress *progress, uint64_t now_ns);
void rls_progress_end(struct rls_progress *progress);

#endif
