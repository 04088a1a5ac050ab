/* Tick weight: the running time that a sample at a tick stands for.
 *
 *     ran      ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇     ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
 *     ticks        |     |     |  o     |     |     |             o: none came while the CPU was idle
 *     weight       P     P     P        P     P     P
 *
 * A tick stands for a period, however late it comes. Where none came while the CPU was idle (it is so in some
 * virtual machines), or where the kernel or the machine's host held one back, the time since the one before does
 * not belong to the place that this one meets: after a wait, that is always the same place. What the thread ran for
 * beyond its ticks, or less, is shared among the ticks that follow, so that all in all they stand for what it
 * ran for.
 */
#ifndef RLS_TICK_WEIGHT_H
#define RLS_TICK_WEIGHT_H

#include "bpf/wire/record.h"

#define RLS_OWED_SHARE 32 /* one in so many of what is owed, at each tick */
#define RLS_OWED_PERIODS_MAX 32 /* more is not made up for: it was not observed */

/* *owed_ns: what the thread ran for, less what its ticks stood for; kept from tick to tick, 0 at first. ran_ns: what it
 * ran for since its last tick. period_ns: 1..RLS_TICK_NS_MAX. */
static inline __attribute__((always_inline)) RLS_U64
rls_tick_weight(RLS_S64 *owed_ns, RLS_U64 ran_ns, RLS_U64 period_ns)
{
	RLS_S64 most_ns = RLS_OWED_PERIODS_MAX * (RLS_S64)period_ns, weight_ns;
	RLS_S64 owed = *owed_ns - (RLS_S64)period_ns;

	owed += ran_ns < 2 * (RLS_U64)most_ns ? (RLS_S64)ran_ns : 2 * most_ns;
	if (owed > most_ns)
		owed = most_ns;
	if (owed < -most_ns)
		owed = -most_ns;
	/* BPF divides no signed numbers: this one is made positive first. */
	weight_ns = (RLS_S64)period_ns + (RLS_S64)((RLS_U64)(owed + most_ns) / RLS_OWED_SHARE) -
		    most_ns / RLS_OWED_SHARE;
	if (weight_ns < (RLS_S64)period_ns / 4)
		weight_ns = (RLS_S64)period_ns / 4;
	*owed_ns = owed - (weight_ns - (RLS_S64)period_ns);
	return (RLS_U64)weight_ns;
}

#endif
