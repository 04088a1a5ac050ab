#include "userspace/attach/tick_phases.h"

#include <math.h>

/* A distance that does no harm: shares by samples may be wrong by about as much. */
#define HARMLESS 0.1
/* Chance makes distances of this over the root of how many there are once in a thousand times
 * (Kuiper's test): it is asked twice a second. */
#define CHANCE 2.3

bool rls_tick_phases_in_step(const uint64_t counts[RLS_TICK_PHASES])
{
	double total = 0, above = 0, below = 0, seen = 0;

	for (int i = 0; i < RLS_TICK_PHASES; i++)
		total += (double)counts[i];
	if (total < 1)
		return false;
	for (int i = 0; i < RLS_TICK_PHASES; i++) {
		double distance;

		seen += (double)counts[i];
		distance = seen / total - (i + 1.0) / RLS_TICK_PHASES;
		above = fmax(above, distance);
		below = fmax(below, -distance);
	}
	return above + below > HARMLESS + CHANCE / sqrt(total);
}
