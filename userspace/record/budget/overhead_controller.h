/* Overhead controller: keeps what probes cost within the budget, while recording.
 *
 *     records ─▶ cost per thread, use of sites ─▶ token_bucket.h: when ─▶ windows open and close
 *                                              └▶ site_value.h: which sites
 *
 * Each begin and end of a window is in the trace (RLS_EVENT_WINDOW). One thread.
 */
#ifndef RLS_OVERHEAD_CONTROLLER_H
#define RLS_OVERHEAD_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/event/category.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/samples/code_map.h"

/* Category samples of running threads a second, on each CPU: between windows; and while one is open, where the
 * truth stands beside them and time is short (as many as the scheduler ticks, and from 2 % on twice as many
 * more by a timer, until what samples mistake is known well). Odd, so that they do not keep step with timers of
 * the target. */
#define RLS_CATEGORY_SAMPLES_HZ 79
#define RLS_CATEGORY_SAMPLES_OPEN_HZ 499

struct rls_overhead_controller;

/* percent: of the time of the most burdened thread. hit_ns: what a hit costs about. */
int rls_overhead_controller_new(struct rls_kernel *kernel, struct rls_code_map *code_map,
				struct rls_event_output *output, double percent, double hit_ns,
				struct rls_overhead_controller **out);
void rls_overhead_controller_free(struct rls_overhead_controller *controller);

/* The kernel side keeps totals (bpf/totals.bpf.h): costs and calls are read from there, samples go to sampled
 * with what they seem to show instead of into the trace, and no site is given up for good, as what
 * runs on the host changes. Before start. 0 or -ENOMEM. */
int rls_overhead_controller_use_totals(struct rls_overhead_controller *controller,
				       int (*sampled)(void *context,
						      const struct rls_wire_category_sample *sample,
						      enum rls_category inferred),
				       void *context);

/* sites: how many were put on, which has held the targets up already. The trace gets the budget
 * now and whenever sites are sorted. 0 or -errno. */
int rls_overhead_controller_start(struct rls_overhead_controller *controller, uint64_t time_ns,
				  size_t sites);
/* So many are live by now: what those that came later have cost is charged as well. */
void rls_overhead_controller_probed(struct rls_overhead_controller *controller, size_t sites);

/* A process is recorded from now on that was not. */
void rls_overhead_controller_adopt(struct rls_overhead_controller *controller, uint64_t time_ns);

/* Any record of the kernel's. 0 or -ENOMEM. */
int rls_overhead_controller_add(struct rls_overhead_controller *controller,
				const struct rls_wire_header *record, size_t size);

/* Opens or closes a window when it is time. sites: ids given so far. 0 or -errno. */
int rls_overhead_controller_tick(struct rls_overhead_controller *controller, uint64_t time_ns,
				 size_t sites);

/* This may be the first stretch still: what takes long makes the target pay for it. */
bool rls_overhead_controller_is_beginning(const struct rls_overhead_controller *controller,
					  uint64_t time_ns);
/* A window is open that will be over in a moment: nothing that takes long is to be begun. */
bool rls_overhead_controller_is_brief(const struct rls_overhead_controller *controller,
				      uint64_t time_ns);

/* Instead of a tick while there is nobody to trace. */
void rls_overhead_controller_idle(struct rls_overhead_controller *controller, uint64_t time_ns);

/* Recording has ended: puts what was done into the trace, unless everything was traced. */
int rls_overhead_controller_report(struct rls_overhead_controller *controller, uint64_t time_ns);

#endif
