/* Compare: two recordings side by side, normalised so that their lengths do not matter.
 *
 * An operation's time is taken per call of it (per second where no call was seen), by category
 * and in total. A value is the ratio Σx/Σn of time and calls; its error is the ratio
 * estimator's, from how x and n vary over the windows of a series (Cochran, Sampling
 * Techniques, 6.3), widened where neighbouring windows are alike, and from the calibration as
 * far as the two differ in what it subtracted.
 *
 * A difference is significant when it is beyond its error at 95 % for all rows together
 * (Bonferroni), larger than the noise that two runs of one program are granted, and of any
 * weight in the whole. Rows are sorted by weight: what changed most comes first.
 */
#ifndef RLS_COMPARE_H
#define RLS_COMPARE_H

#include <stdio.h>

#include "series.h"

enum rls_compare_metric {
	RLS_COMPARE_CORRECTED = 0,
	RLS_COMPARE_WALL = 1,
	RLS_COMPARE_CPU = 2,        /* corrected, without waiting */
	RLS_COMPARE_METRIC_MAX = 3,
};

/* "corrected", "wall", "cpu" to *out and 0; -EINVAL for another word. */
int rls_compare_metric_parse(const char *name, enum rls_compare_metric *out);
const char *rls_compare_metric_name(enum rls_compare_metric metric);

#define RLS_COMPARE_TOTAL (-1)

struct rls_compare_value {
	double calls;               /* what it was divided by; seconds where per_second */
	double ns;                  /* per call */
	double error_ns;            /* half width at 95 %, of the sampling alone */
	double share;               /* of the recording's traced time, 0..1 */
};

struct rls_compare_row {
	const char *operation;
	int category;               /* enum rls_category, or RLS_COMPARE_TOTAL */
	bool per_second;
	struct rls_compare_value a, b;
	bool judged;                /* change and error hold: both sides have the row */
	double change;              /* (b - a) / a */
	double error;               /* of change; half width at 95 % */
	bool significant;
	double weight;              /* |b - a| per call × a's calls, as a share of a's time */
};

struct rls_comparison {
	struct rls_compare_row *rows;   /* heaviest first; names are the series' */
	size_t count;
	size_t significant_count;
};

struct rls_compare_options {
	enum rls_compare_metric metric;
	double noise;               /* 0.02: what two runs may differ by anyway */
};

/* The series must outlive the comparison. 0 and *out, or -ENOMEM. */
int rls_compare(const struct rls_series *a, const struct rls_series *b,
		const struct rls_compare_options *options, struct rls_comparison *out);
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

/* The row that the rule is broken by: beyond its limit, and significant. NULL: none. *known says
 * whether any judged row is what the rule speaks of. */
const struct rls_compare_row *rls_compare_rule_check(const struct rls_compare_rule *rule,
						     const struct rls_comparison *comparison,
						     bool *known);

/* --- what is shown ------------------------------------------------------------------ */

/* Side 0 is what the others are compared with. */
struct rls_compare_side {
	const char *name;           /* of the trace */
	const struct rls_series *series;
	struct rls_comparison comparison;       /* with side 0; of side 0 empty */
};

/* Failures of the stream are the caller's to notice. */
void rls_compare_write_text(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options);
void rls_compare_write_json(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options);

#endif
