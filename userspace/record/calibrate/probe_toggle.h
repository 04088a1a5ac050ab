/* Probe toggle: measures in a running job what its own hits cost, by enabling and disabling
 * probes.
 *
 *     all on for a moment ─▶ off ─▶ on ─▶ off ─▶ …, at random instants
 *     records ────────────────────▶ matched_segments.h ─▶ factor and error
 *
 * Where a job has no ranges but PyTorch's own, their probes are toggled too. One thread.
 */
#ifndef RLS_PROBE_TOGGLE_H
#define RLS_PROBE_TOGGLE_H

#include <stddef.h>
#include <stdint.h>

#include "userspace/attach/calibration/calibrate.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/calibrate/matched_segments.h"

struct rls_probe_toggle;

/* hit: the calibration's mean one. 0 or -ENOMEM. */
int rls_probe_toggle_new(struct rls_kernel *kernel, struct rls_calibrated hit,
			 struct rls_probe_toggle **out);
void rls_probe_toggle_free(struct rls_probe_toggle *toggle);

void rls_probe_toggle_start(struct rls_probe_toggle *toggle, uint64_t time_ns);

/* Any record of the kernel's. 0 or -ENOMEM. */
int rls_probe_toggle_add(struct rls_probe_toggle *toggle, const struct rls_wire_header *record,
			 size_t size);

/* A thread's operation changes (translate.h). 0 or -ENOMEM. */
int rls_probe_toggle_turned(struct rls_probe_toggle *toggle, uint32_t tid,
			    const struct rls_queued_edge *edge);

/* Turns probes on or off when it is time. sites: ids given so far. 0 or -errno. */
int rls_probe_toggle_tick(struct rls_probe_toggle *toggle, uint64_t time_ns, size_t sites);

/* As rls_matched_segments_conclude. */
int rls_probe_toggle_conclude(const struct rls_probe_toggle *toggle, struct rls_delta_in_vivo *out);

#endif
