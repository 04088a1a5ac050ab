/* Machine speed: how fast the machine was beside each block of a row, measured by all other rows.
 *
 * A machine that others use is slow at times, for seconds or for whole recordings. It does not
 * slow down all work alike: work that waits for memory suffers most. So the blocks of all runs
 * yield two figures. One is how slow the machine was, from the operations that are called as often
 * and lie side by side in time. The other is how much of that slowness the row shared (analysis of
 * covariance; Fisher 1932). If no other operation is called as often, the common factor of the
 * whole run is used, and the row is assumed to share it in full. The part that it does not share
 * belongs to the scatter of rows (judge.c).
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

/* known: rls_machine_speed_find found the speed. Otherwise similar changes of blocks say little
 * about runs. */
struct rls_machine_speed_slope rls_machine_speed_fit_slope(const struct rls_machine_speed_fit *fit,
							   bool known);

#endif
