/* Compare: recordings side by side, normalised so that their lengths do not matter.
 *
 * An operation's time is taken per call of it, by category and in total; of an operation that
 * is hardly ever entered, such as a training loop, per call of the operations directly within.
 * What a call takes in one run and its error come from blocks of calls (compare_estimate.h).
 *
 * A side is one run or several of the same program. Machines differ in speed from run to run and
 * over each run, and so does everything that runs on them: the speed of a side is the median ratio
 * of its figures to the first side's. A change is
 *   - judged against what is common, at the machine's usual pace (compare_pace.h), where both sides
 *     are one run only, where runs of a side differ much less so, or where it is asked for: what
 *     differs from all the rest is told, what is slower with all the rest is not; how far figures
 *     scatter about the common factor is part of the error;
 *   - judged as it is else: how far the runs of a side differ is part of the error, figures with
 *     few runs borrowing from all others (Smyth 2004).
 * The factor is known where enough figures are there to tell what is common.
 *
 * A difference is significant when it is beyond its error at 95 % for all rows together
 * (Bonferroni), larger than the noise that two runs of one program are granted, and of any weight in
 * the whole. Significant rows come first, by weight; then the others, nearest to it first.
 */
#ifndef RLS_COMPARE_H
#define RLS_COMPARE_H

#include <stdio.h>

#include "analysis/compare/series.h"

enum rls_compare_metric {
	RLS_COMPARE_CORRECTED = 0,
	RLS_COMPARE_WALL = 1,
	RLS_COMPARE_CPU = 2,        /* corrected, without waiting */
	RLS_COMPARE_RAN = 3,        /* wall, without waiting: the probes' cost is in it */
	RLS_COMPARE_METRIC_MAX = 4,
};

/* "corrected", "wall", "cpu", "ran" to *out and 0; -EINVAL for another word. */
int rls_compare_metric_parse(const char *name, enum rls_compare_metric *out);
const char *rls_compare_metric_name(enum rls_compare_metric metric);

enum rls_compare_normalise {
	RLS_COMPARE_NORMALISE_AUTO = 0,         /* SPEED for single runs, or where it is steadier */
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
	double calls;               /* mean over the side's runs; 0: the row is not there */
	double ns;                  /* per unit; geometric mean over the runs */
	double error_ns;            /* half width at 95 %, from within the runs alone */
	double share;               /* of the traced time, 0..1; mean over the runs */
};

struct rls_compare_row {
	const char *operation;
	int category;               /* enum rls_category, or RLS_COMPARE_TOTAL */
	enum rls_compare_unit unit;
	struct rls_compare_value a, b;
	bool judged;                /* what follows holds: both sides have the row */
	double change;              /* (b - a) / a */
	double relative;            /* change that is judged: against the common factor, or as it is */
	double error;               /* of relative; half width at 95 %; INFINITY: not to be told */
	bool significant;
	double weight;              /* |relative| as a share of a's time */
};

struct rls_comparison {
	struct rls_compare_row *rows;   /* names are the series' */
	size_t count;
	size_t significant_count;
	bool speed_known;
	double speed;               /* b's times to a's in the common: 1.3 is slower */
	double speed_error;         /* half width at 95 %, a share of speed */
	bool normalised;            /* rows are judged against speed */
};

struct rls_compare_options {
	enum rls_compare_metric metric;
	enum rls_compare_normalise normalise;
	double noise;               /* 0.02: what two runs may differ by anyway */
};

struct rls_compare_run {
	const char *name;           /* of the trace: any bytes */
	const struct rls_series *series;
};

/* Runs of side a, then those of side b. */
struct rls_compare_runs {
	const struct rls_compare_run *runs;
	size_t count;
	size_t a_count;
};

/* Runs must outlive the comparison; of each side there is one or more. 0 and *out, or -ENOMEM. */
int rls_compare(const struct rls_compare_run *a, size_t a_count, const struct rls_compare_run *b,
		size_t b_count, const struct rls_compare_options *options,
		struct rls_comparison *out);
void rls_comparison_free(struct rls_comparison *comparison);

/* "total", "python", ... */
const char *rls_compare_row_category(const struct rls_compare_row *row);

/* --- rules, for use in CI ----------------------------------------------------------- */

/* backpropagation.total > +5%      the operation, dot, category or total; the name may hold
 * *.simulator < -10%               dots and spaces; * is every operation */
struct rls_compare_rule {
	const char *text;           /* borrowed */
	char *operation;            /* NULL: all */
	int category;
	bool above;                 /* > */
	double change;              /* 0.05 */
};

/* 0 and *out, which the caller frees; -EINVAL with a sentence in message; -ENOMEM. */
int rls_compare_rule_parse(const char *text, struct rls_compare_rule *out, char *message,
			   size_t message_bytes);
void rls_compare_rule_free(struct rls_compare_rule *rule);

/* The row that the rule is broken by: beyond its limit, and significant;
 * what is measured is the change that is judged. NULL: none. *known says
 * whether any judged row is what the rule speaks of. */
const struct rls_compare_row *rls_compare_rule_check(const struct rls_compare_rule *rule,
						     const struct rls_comparison *comparison,
						     bool *known);

/* --- what is shown ------------------------------------------------------------------ */

/* Side 0 is what the others are compared with. */
struct rls_compare_side {
	const struct rls_compare_run *runs;
	size_t run_count;
	struct rls_comparison comparison;       /* with side 0; of side 0 empty */
};

/* Failures of the stream are the caller's to notice. */
void rls_compare_write_text(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options);
void rls_compare_write_json(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options);
void rls_compare_write_html(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options);

#endif
