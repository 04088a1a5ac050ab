/* Pace: how fast the machine was beside each block of a row, told by everything else that ran there.
 *
 * A machine that others use is slow at times, for seconds and for whole recordings, and not for
 * all work alike: what waits for memory suffers most. So the blocks of all runs tell both how
 * slow it was, by the operations that are called as often and lie side by side in time, and by
 * how much of that the row went along (analysis of covariance; Fisher 1932). Where no other
 * operation is called as often, the factor common to the whole run stands for it, and a row is taken to go
 * along with that in full. What it does not is part of how rows scatter (judge.c).
 */
#ifndef RLS_MACHINE_SPEED_H
#define RLS_MACHINE_SPEED_H

#include "analysis/compare/comparison.h"

struct rls_machine_speed {
	double level; /* of the run: a logarithm, 0 being usual for the runs compared */
	size_t first, count; /* of the blocks, those that count: not the first ones */
	double log[RLS_SERIES_BLOCKS]; /* about the level */
	double halves[2][RLS_SERIES_BLOCKS]; /* by half of the other operations each */
};

/* Of an operation's whole blocks in a phase that all runs have, to paces[run], whose
 * first is left alone. common[run] is the
 * level where fewer than two other operations tell it. Returns whether they do. */
bool rls_machine_speed_find(const struct rls_compare_runs *runs, const char *phase,
			    const char *operation, enum rls_series_unit unit,
			    enum rls_compare_metric metric, const double *common,
			    struct rls_machine_speed *paces);

/* What a row's time makes of the pace: 1 goes along with it in full. */
struct rls_machine_speed_slope {
	double within; /* a run: of its blocks */
	double level; /* of whole runs */
};

/* Sums over the blocks of all runs; begin with zeroes. */
struct rls_machine_speed_fit {
	double squares, products; /* of the pace; of pace and row; about each run's means */
	double row_squares;
	double half_squares[2], half_products;
	double blocks, runs;
};

/* A run's row by block, from the pace's first on, in any unit. */
void rls_machine_speed_fit_add(struct rls_machine_speed_fit *fit,
			       const struct rls_machine_speed *pace, const double *row);

/* told: by rls_machine_speed_find. Without, that ups and downs of blocks are alike says little of runs. */
struct rls_machine_speed_slope rls_machine_speed_fit_slope(const struct rls_machine_speed_fit *fit,
							   bool told);

#endif
