/* Comparison: the runs that are compared, what is asked, and the rows that come out (compare.h).
 */
#ifndef RLS_COMPARISON_H
#define RLS_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/compare/series.h"

enum rls_compare_metric {
	RLS_COMPARE_CORRECTED = 0,
	RLS_COMPARE_WALL = 1,
	RLS_COMPARE_CPU = 2, /* corrected, without waiting */
	RLS_COMPARE_RAN = 3, /* wall, without waiting: the probes' cost is in it */
	RLS_COMPARE_METRIC_MAX = 4,
};

/* "corrected", "wall", "cpu", "ran" to *out and 0; -EINVAL for another word. */
int rls_compare_metric_parse(const char *name, enum rls_compare_metric *out);
const char *rls_compare_metric_name(enum rls_compare_metric metric);

enum rls_compare_normalise {
	RLS_COMPARE_NORMALISE_AUTO = 0, /* SPEED for single runs, or where it is steadier */
	RLS_COMPARE_NORMALISE_SPEED = 1,
	RLS_COMPARE_NORMALISE_NONE = 2,
	RLS_COMPARE_NORMALISE_MAX = 3,
};

/* "auto", "speed", "none" to *out and 0; -EINVAL for another word. */
int rls_compare_normalise_parse(const char *name, enum rls_compare_normalise *out);

/* What a row's times are divided by. */
enum rls_compare_unit {
	RLS_COMPARE_PER_CALL = 0,
	RLS_COMPARE_PER_INNER_CALL = 1,
	RLS_COMPARE_PER_SECOND = 2, /* neither was seen */
	RLS_COMPARE_UNIT_MAX = 3,
};

/* "call", "inner call", "second" */
const char *rls_compare_unit_name(enum rls_compare_unit unit);

#define RLS_COMPARE_TOTAL (-1)

struct rls_compare_value {
	double calls; /* mean over the side's runs; 0: the row is not there */
	double ns; /* per unit; geometric mean over the runs */
	double error_ns; /* half width at 95 %, from within the runs alone */
	double share; /* of the traced time, 0..1; mean over the runs */
};

struct rls_compare_row {
	const char *operation;
	int category; /* enum rls_category, or RLS_COMPARE_TOTAL */
	enum rls_compare_unit unit;
	struct rls_compare_value a, b;
	bool judged; /* what follows holds: both sides have the row */
	double change; /* (b - a) / a */
	double relative; /* change that is judged: against the common factor, or as it is */
	double error; /* of relative; half width at 95 %; INFINITY: unknown */
	bool significant;
	double weight; /* |relative| as a share of a's time */
};

struct rls_comparison {
	struct rls_compare_row *rows; /* names are the series' */
	size_t count;
	size_t significant_count;
	bool speed_known;
	double speed; /* b's times to a's in the common: 1.3 is slower */
	double speed_error; /* half width at 95 %, a share of speed */
	bool normalised; /* rows are judged against speed */
};

struct rls_compare_options {
	enum rls_compare_metric metric;
	enum rls_compare_normalise normalise;
	double noise; /* 0.02: what two runs may differ by anyway */
};

struct rls_compare_run {
	const char *name; /* of the trace: any bytes */
	const struct rls_series *series;
};

/* Runs of side a, then those of side b. */
struct rls_compare_runs {
	const struct rls_compare_run *runs;
	size_t count;
	size_t a_count;
};

void rls_comparison_free(struct rls_comparison *comparison);

/* "total", "python", ... */
const char *rls_compare_row_category(const struct rls_compare_row *row);

#endif
