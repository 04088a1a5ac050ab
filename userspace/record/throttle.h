/* Throttle: keeps what probes cost within the budget, while recording.
 *
 *     records ─▶ cost per thread, use of sites ─▶ budget.h: when ─▶ windows open and close
 *                                              └▶ site_use.h: which sites
 *
 * Each edge of a window is in the trace (RLS_EVENT_WINDOW). One thread.
 */
#ifndef RLS_THROTTLE_H
#define RLS_THROTTLE_H

#include <stddef.h>
#include <stdint.h>

#include "userspace/attach/kernel.h"
#include "userspace/record/places.h"
#include "userspace/record/trace_output.h"

struct rls_throttle;

/* percent: of the time of the most burdened thread. hit_ns: what a hit costs about. */
int rls_throttle_new(struct rls_kernel *kernel, struct rls_places *places,
		     struct rls_trace_output *output, double percent, double hit_ns,
		     struct rls_throttle **out);
void rls_throttle_free(struct rls_throttle *throttle);

void rls_throttle_start(struct rls_throttle *throttle, uint64_t time_ns);

/* Any record of the kernel's. 0 or -ENOMEM. */
int rls_throttle_add(struct rls_throttle *throttle, const struct rls_wire_header *record,
		     size_t size);

/* Opens or closes a window when it is time. sites: ids given so far. 0 or -errno. */
int rls_throttle_tick(struct rls_throttle *throttle, uint64_t time_ns, size_t sites);

/* Recording has ended: puts what was done into the trace. */
int rls_throttle_report(struct rls_throttle *throttle, uint64_t time_ns);

#endif
