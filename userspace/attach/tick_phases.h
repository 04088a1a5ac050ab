/* Tick phases: whether threads keep step with the scheduler's ticks. Pure.
 *
 * Ticks are a grid in time. Who begins to run at any instant is met by them as often as by a clock of
 * random instants; who begins in step with them, as one paced by deadlines of the same clock may, is
 * met at the same places again and again, or never. So of those that were waiting it is counted where
 * between two ticks they begin, and the counts held against equal ones (Kolmogorov and Smirnov's
 * greatest distance between two distributions, on a circle Kuiper's).
 */
#ifndef RLS_TICK_PHASES_H
#define RLS_TICK_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"

/* counts: beginnings in each part of the time between two ticks. */
bool rls_tick_phases_in_step(const uint64_t counts[RLS_TICK_PHASES]);

#endif
