/* Tick phases: whether threads run in step with the scheduler's ticks. Pure.
 *
 * Ticks are a grid in time. A thread that begins to run at any instant is sampled by them as well as
 * by random instants. A thread that begins in step with them, as one paced by deadlines of the same
 * clock may, is sampled at the same places again and again, or never. So the starts of threads that
 * had waited are counted by their position between two ticks. The counts are compared with equal
 * ones (Kuiper's test: the largest distance between two distributions on a circle).
 */
#ifndef RLS_TICK_PHASES_H
#define RLS_TICK_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/record.h"

/* counts: beginnings in each part of the time between two ticks. */
bool rls_tick_phases_in_step(const uint64_t counts[RLS_TICK_PHASES]);

#endif
