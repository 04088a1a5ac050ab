/* Figures: what a workload's hits cost, by its own calibration, in the trace.
 *
 * Each has two errors: that of a recording of a moment, which may be one of the machine's ups and downs, and
 * that of one which goes through all of them. They are in the trace as for a moment while nobody knows how
 * long it will be, and anew in the end.
 */
#ifndef RLS_CALIBRATION_EVENTS_H
#define RLS_CALIBRATION_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "userspace/record/events/event_output.h"

struct rls_figure;

/* Zeroed: none. */
struct rls_figures {
	struct rls_figure *items;       /* one a name */
	size_t count, room;
};

void rls_figures_clear(struct rls_figures *figures);

/* Into the trace, and kept. lasting_error_ns: of a long recording, error_ns at most. 0, -ENOMEM or what
 * writing gives. */
int rls_figures_add(struct rls_figures *figures, struct rls_trace_output *output, const char *name, double ns,
		    double error_ns, double lasting_error_ns, uint64_t time_ns);

/* All of them as a recording through so many spells (spells.h) knows them. */
int rls_figures_settle(const struct rls_figures *figures, struct rls_trace_output *output, double spells,
		       uint64_t time_ns);

#endif
