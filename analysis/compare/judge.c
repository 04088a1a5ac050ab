#include "analysis/compare/judge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/student.h"
#include "analysis/compare/blocks.h"

#define CONFIDENCE 0.95
#define WEIGHT_MIN 0.001
#define COMMON_SHARE_MIN 0.01 /* of a run's time, for a row to speak of the common factor */
#define COMMON_ROWS_MIN 5
#define PRIOR_FREEDOM 4 /* what all rows' variances together weigh against one row's */
#define MADN 1.4826 /* median absolute deviation to a normal's standard deviation */
#define UNEVEN 0.1 /* of the factor: what single rows may make of it beyond their scatter */
#define STEADIER                                                                                   \
	0.25 /* by so much less runs of a side differ at a common pace, for that to count */
#define MEDIAN_ERROR 1.2533 /* a normal's median's error to its mean's */
/* What a calibration may be wrong by when the trace has none; as trace_metadata.h. */
#define CALIBRATION_ERROR_UNKNOWN 0.25

struct judge {
	const struct rls_compare_runs *runs;
	const struct rls_compare_options *options;
	struct rls_comparison *comparison;
	const struct rls_compare_estimates *estimates;
	const double *common; /* logarithm, of each run to the first; 0 where not known */
	double *scratch; /* a value for each row */
	size_t common_count; /* rows that speak of the common factor */
	double centre; /* of the rows' differences at the usual pace */
	double scatter2; /* about the common factor, beyond what is in the runs */
	double prior_variance; /* between runs of a side */
	size_t family; /* rows that may be significant */
	double systematic; /* share of a figure that losses make uncertain */
	double calibration_error;
};

/* Logarithms: a factor is a difference, an error a share. */
struct difference {
	double value;
	double within2; /* variance, from within the runs */
	double within_freedom;
	double between2; /* of one run about its side's mean */
	double between_freedom;
};

static const struct rls_estimate *estimate_of(const struct judge *judge, size_t row, size_t run)
{
	return &judge->estimates->as_is[row * judge->runs->count + run];
}

static const struct rls_estimate *judged_of(const struct judge *judge, size_t row, size_t run,
					    bool at_pace)
{
	return at_pace ? &judge->estimates->at_pace[row * judge->runs->count + run]
		       : estimate_of(judge, row, run);
}

static bool is_b(const struct judge *judge, size_t run)
{
	return run >= judge->runs->a_count;
}

static double side_count(const struct judge *judge, bool b)
{
	return (double)(b ? judge->runs->count - judge->runs->a_count : judge->runs->a_count);
}

static bool is_complete(const struct judge *judge, size_t row)
{
	for (size_t r = 0; r < judge->runs->count; r++) {
		if (!estimate_of(judge, row, r)->present)
			return false;
	}
	return true;
}

/* A total repeats its categories and says nothing more. */
static bool is_common(const struct judge *judge, size_t row)
{
	if (judge->comparison->rows[row].category == RLS_COMPARE_TOTAL)
		return false;
	for (size_t r = 0; r < judge->runs->count; r++) {
		const struct rls_estimate *estimate = estimate_of(judge, row, r);

		if (!estimate->present || estimate->share < COMMON_SHARE_MIN ||
		    !isfinite(estimate->variance_ns2))
			return false;
	}
	return true;
}

static double relative_variance(const struct rls_estimate *estimate)
{
	return estimate->variance_ns2 / (estimate->ns * estimate->ns);
}

/* Of a row that all runs have. */
static struct difference judge_measure(const struct judge *judge, size_t row, bool at_pace)
{
	struct difference d = {.between_freedom = (double)judge->runs->count - 2};
	double means[2] = {0}, quartic = 0;

	for (size_t r = 0; r < judge->runs->count; r++) {
		const struct rls_estimate *e = judged_of(judge, row, r, at_pace);
		double n = side_count(judge, is_b(judge, r)), part = relative_variance(e) / (n * n);

		means[is_b(judge, r)] += log(e->ns) / n;
		d.within2 += part;
		quartic += part * part / e->freedom;
	}
	d.value = means[1] - means[0] - (at_pace ? judge->centre : 0);
	d.within_freedom = isfinite(d.within2) && quartic > 0 ? d.within2 * d.within2 / quartic : 1;
	if (d.between_freedom < 1)
		return d;
	for (size_t r = 0; r < judge->runs->count; r++) {
		double rest = log(judged_of(judge, row, r, at_pace)->ns) - means[is_b(judge, r)];

		d.between2 += rest * rest / d.between_freedom;
	}
	return d;
}

/* --- what is common ----------------------------------------------------------------- */

int rls_compare_judge_common(const struct rls_compare_runs *runs, const struct rls_estimate *as_is,
			     struct rls_comparison *out, double *common)
{
	_cleanup_free_ double *ratios = calloc(out->count + 1, sizeof(*ratios));
	struct rls_compare_estimates estimates = {.as_is = (struct rls_estimate *)as_is};
	struct judge judge = {.runs = runs, .comparison = out, .estimates = &estimates};

	if (!ratios)
		return -ENOMEM;
	for (size_t r = 0; r < runs->count; r++) {
		size_t n = 0;

		for (size_t i = 0; i < out->count; i++) {
			if (is_common(&judge, i))
				ratios[n++] = log(estimate_of(&judge, i, r)->ns /
						  estimate_of(&judge, i, 0)->ns);
		}
		out->speed_known = n >= COMMON_ROWS_MIN;
		common[r] = out->speed_known ? rls_median(ratios, n) : 0;
	}
	return 0;
}

/* The machine speed beside each row comes from the other rows: what is left in the middle is
 * caused by no row. */
static double centre_of(struct judge *judge)
{
	size_t n = 0;

	for (size_t i = 0; i < judge->comparison->count; i++) {
		if (is_common(judge, i))
			judge->scratch[n++] = judge_measure(judge, i, true).value;
	}
	return rls_median(judge->scratch, n);
}

/* Standard deviation of the rows about the common factor, robustly. */
static double scatter_of(struct judge *judge)
{
	size_t n = 0;

	for (size_t i = 0; i < judge->comparison->count; i++) {
		if (is_common(judge, i))
			judge->scratch[n++] = fabs(judge_measure(judge, i, true).value);
	}
	return MADN * rls_median(judge->scratch, n);
}

static void find_speed(struct judge *judge)
{
	struct rls_comparison *comparison = judge->comparison;
	double factor = 0, scatter, within2, n;
	size_t rows = 0;

	comparison->speed = 1;
	if (!comparison->speed_known)
		return;
	for (size_t r = 0; r < judge->runs->count; r++)
		factor += (is_b(judge, r) ? 1 : -1) * judge->common[r] /
			  side_count(judge, is_b(judge, r));
	judge->centre = centre_of(judge);
	scatter = scatter_of(judge);
	for (size_t i = 0; i < comparison->count; i++) {
		if (is_common(judge, i))
			judge->scratch[rows++] = judge_measure(judge, i, true).within2;
	}
	n = (double)rows;
	within2 = rls_median(judge->scratch, rows);
	judge->common_count = rows;
	judge->scatter2 = fmax(0, scatter * scatter - within2) + pow(UNEVEN * factor, 2);
	comparison->speed = exp(factor);
	comparison->speed_error = MEDIAN_ERROR * fmax(scatter, sqrt(within2)) / sqrt(n) *
				  rls_student_quantile(CONFIDENCE, n - 1);
}

/* How far runs of a side differ, usually; 0 where there is one only. */
static double prior_of(struct judge *judge, bool at_pace)
{
	size_t n = 0;

	for (size_t i = 0; i < judge->comparison->count; i++) {
		if (is_common(judge, i))
			judge->scratch[n++] = judge_measure(judge, i, at_pace).between2;
	}
	return n >= COMMON_ROWS_MIN ? rls_median(judge->scratch, n) : 0;
}

/* Several runs tell by themselves whether the machine's pace is what they differ by. */
static void judge_choose(struct judge *judge)
{
	struct rls_comparison *comparison = judge->comparison;
	enum rls_compare_normalise normalise = judge->options->normalise;
	double as_is = prior_of(judge, false);
	double at_pace = comparison->speed_known ? prior_of(judge, true) : as_is;
	bool relative = normalise == RLS_COMPARE_NORMALISE_SPEED ||
			(normalise == RLS_COMPARE_NORMALISE_AUTO &&
			 (judge->runs->count == 2 || at_pace < STEADIER * as_is));

	comparison->normalised = relative && comparison->speed_known;
	judge->prior_variance = comparison->normalised ? at_pace : as_is;
}

/* --- what may be wrong in all of a run ------------------------------------------------ */

static double calibration_error(const struct rls_report *report)
{
	const struct rls_overhead *overhead = &report->overhead;
	double worst = 0;

	if (!overhead->calibration_count)
		return CALIBRATION_ERROR_UNKNOWN;
	for (size_t i = 0; i < overhead->calibration_count; i++) {
		const struct rls_calibration_entry *entry = &overhead->calibration[i];

		if (entry->value_ns > 0)
			worst = fmax(worst, entry->error_ns / entry->value_ns);
	}
	return fmin(worst, 1);
}

/* A lost event makes its thread uncertain on either side. */
static double lost_share(const struct rls_report *report)
{
	double lost = 0;

	for (size_t i = 0; i < report->loss_count; i++)
		lost += (double)report->losses[i].dropped;
	return lost > 0 ? lost / (lost + (double)report->overhead.events) : 0;
}

static void find_systematic_errors(struct judge *judge)
{
	for (size_t r = 0; r < judge->runs->count; r++) {
		const struct rls_report *report = judge->runs->runs[r].series->report;

		judge->systematic += lost_share(report) / side_count(judge, is_b(judge, r));
		judge->calibration_error =
			fmax(judge->calibration_error, calibration_error(report));
	}
}

/* One machine's calibration errs the same way in both: what counts is the difference between
 * what was taken out of the sides. */
static double row_calibration_error(const struct judge *judge, size_t row)
{
	double subtracted[2] = {0};

	for (size_t r = 0; r < judge->runs->count; r++) {
		const struct rls_estimate *estimate = estimate_of(judge, row, r);

		subtracted[is_b(judge, r)] +=
			estimate->subtracted_ns / estimate->ns / side_count(judge, is_b(judge, r));
	}
	return judge->calibration_error * fabs(subtracted[1] - subtracted[0]);
}

/* --- rows --------------------------------------------------------------------------- */

static void fill_value(const struct judge *judge, size_t row, bool b,
		       struct rls_compare_value *value)
{
	double n = 0, logarithms = 0, variance = 0, freedom = INFINITY;

	*value = (struct rls_compare_value){0};
	for (size_t r = 0; r < judge->runs->count; r++) {
		const struct rls_estimate *estimate = estimate_of(judge, row, r);

		if (is_b(judge, r) != b || !estimate->present)
			continue;
		n++;
		value->calls += estimate->units;
		value->share += estimate->share;
		logarithms += log(estimate->ns);
		variance += relative_variance(estimate);
		freedom = fmin(freedom, estimate->freedom);
	}
	if (n == 0)
		return;
	value->calls /= n;
	value->share /= n;
	value->ns = exp(logarithms / n);
	value->error_ns =
		value->ns * sqrt(variance) / n * rls_student_quantile(CONFIDENCE, freedom);
}

/* Standard error and degrees of freedom of a difference. */
static double error_of(const struct judge *judge, const struct difference *d, double *freedom)
{
	const struct rls_comparison *comparison = judge->comparison;
	double each = 1 / side_count(judge, false) + 1 / side_count(judge, true);
	double prior = judge->prior_variance > 0 ? PRIOR_FREEDOM : 0, between2;

	*freedom = d->within_freedom;
	if (d->between_freedom < 1) {
		double common = (double)judge->common_count;

		if (!comparison->normalised)
			return sqrt(d->within2);
		*freedom = fmin(*freedom, common - 1);
		return sqrt(d->within2 + judge->scatter2 * (1 + M_PI / 2 / common));
	}
	between2 = (d->between2 * d->between_freedom + judge->prior_variance * prior) /
		   (d->between_freedom + prior) * each;
	if (isfinite(d->within2) && between2 < d->within2)
		return sqrt(d->within2);
	*freedom = d->between_freedom + prior;
	return sqrt(between2);
}

static void judge_row(const struct judge *judge, size_t index)
{
	struct rls_compare_row *row = &judge->comparison->rows[index];
	struct difference as_is = judge_measure(judge, index, false);
	struct difference d = judge_measure(judge, index, judge->comparison->normalised);
	double freedom, error = error_of(judge, &d, &freedom);
	double lasting = judge->systematic + row_calibration_error(judge, index);
	double strict = rls_student_quantile(1 - (1 - CONFIDENCE) / (double)judge->family, freedom);
	double share = fmax(row->a.share, row->b.share);

	row->judged = true;
	row->change = expm1(as_is.value);
	row->relative = expm1(d.value);
	row->error = (error * rls_student_quantile(CONFIDENCE, freedom) + lasting) * exp(d.value);
	row->weight = fabs(row->relative) * row->a.share;
	row->significant = fabs(d.value) > error * strict + lasting &&
			   fabs(row->relative) > judge->options->noise &&
			   row->weight >= WEIGHT_MIN && share >= WEIGHT_MIN;
}

static void judge_rows(struct judge *judge)
{
	struct rls_comparison *comparison = judge->comparison;

	for (size_t i = 0; i < comparison->count; i++) {
		struct rls_compare_row *row = &comparison->rows[i];

		fill_value(judge, i, false, &row->a);
		fill_value(judge, i, true, &row->b);
		if (is_complete(judge, i))
			judge->family += fmax(row->a.share, row->b.share) >= WEIGHT_MIN;
	}
	if (!judge->family)
		judge->family = 1;
	for (size_t i = 0; i < comparison->count; i++) {
		if (!is_complete(judge, i))
			continue;
		judge_row(judge, i);
		comparison->significant_count += comparison->rows[i].significant;
	}
}

int rls_compare_judge(const struct rls_compare_runs *runs,
		      const struct rls_compare_estimates *estimates, const double *common,
		      const struct rls_compare_options *options, struct rls_comparison *out)
{
	_cleanup_free_ double *scratch = calloc(out->count + 1, sizeof(*scratch));
	struct judge judge = {.runs = runs,
			      .options = options,
			      .comparison = out,
			      .estimates = estimates,
			      .common = common,
			      .scratch = scratch};

	if (!scratch)
		return -ENOMEM;
	find_speed(&judge);
	judge_choose(&judge);
	find_systematic_errors(&judge);
	judge_rows(&judge);
	return 0;
}
