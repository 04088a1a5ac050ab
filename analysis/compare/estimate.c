#include "analysis/compare/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/compare/blocks.h"
#include "analysis/compare/machine_speed.h"

#define UNITS_MIN 7 /* fewer say nothing about variation */
#define BLOCKS_MIN 5
#define TRIM 0.1 /* of the blocks, at either end */
#define TRIM_BLOCKS_MIN 10
#define CORRELATION_MAX 0.8
#define WARMUP_GAIN 0.5
#define COVERED_MIN 0.5 /* of each run's units, for weights that all runs share */
#define NEGLIGIBLE 0.05
#define NS_PER_S 1e9
#define SIGMAS 1.96 /* of a stated half width */

/* --- one stratum -------------------------------------------------------------------- */

static bool has_enough_blocks(const struct rls_series_stratum *stratum, enum rls_series_unit unit)
{
	return stratum->units[unit] >= UNITS_MIN &&
	       rls_blocks_whole(&stratum->blocks[unit]) >= BLOCKS_MIN;
}

/* Blocks at the beginning to leave out: those without which the mean of the operation's whole
 * time is much surer. */
static size_t warmup(const struct rls_series_blocks *blocks, enum rls_compare_metric metric)
{
	size_t count = rls_blocks_whole(blocks), best = 0;
	double sum = 0, squares = 0, all = 0, least = INFINITY;

	for (size_t i = count; i-- > 0;) {
		double x = rls_blocks_time(&blocks->blocks[i].times, metric, RLS_COMPARE_TOTAL);
		double n = (double)(count - i), error;

		sum += x;
		squares += x * x;
		error = fmax(0, squares / n - sum / n * (sum / n)) / n;
		if (n >= BLOCKS_MIN && i <= count / 2 && error <= least) {
			least = error;
			best = i;
		}
		all = error;
	}
	return least < WARMUP_GAIN * all ? best : 0;
}

/* From the outermost values to the innermost that are kept. */
static void winsorise(double *x, size_t count, size_t trim, double *trimmed_mean)
{
	double sorted[RLS_SERIES_BLOCKS], sum = 0;

	memcpy(sorted, x, count * sizeof(*x));
	rls_sort_values(sorted, count);
	for (size_t i = trim; i < count - trim; i++)
		sum += sorted[i];
	*trimmed_mean = sum / (double)(count - 2 * trim);
	for (size_t i = 0; i < count; i++)
		x[i] = fmin(fmax(x[i], sorted[trim]), sorted[count - 1 - trim]);
}

/* Of the Winsorised values' mean, were it not for the trimming. */
static double variance_of_mean(const double *x, size_t count)
{
	double mean = 0, squares = 0, neighbours = 0, before = 0, correlation;

	for (size_t i = 0; i < count; i++)
		mean += x[i] / (double)count;
	for (size_t i = 0; i < count; i++) {
		double rest = x[i] - mean;

		squares += rest * rest;
		neighbours += rest * before;
		before = rest;
	}
	correlation = squares > 0 ? fmax(0, fmin(neighbours / squares, CORRELATION_MAX)) : 0;
	return squares / (double)(count - 1) / (double)count * (1 + correlation) /
	       (1 - correlation);
}

static void estimate_blocks(double *x, size_t count, struct rls_estimate *out)
{
	size_t trim = count >= TRIM_BLOCKS_MIN ? (size_t)(TRIM * (double)count) : 0;
	double mean = 0, kept = 1 - 2 * (double)trim / (double)count;

	for (size_t i = 0; i < count; i++)
		mean += x[i] / (double)count;
	winsorise(x, count, trim, &out->ns);
	out->variance_ns2 = variance_of_mean(x, count) / (kept * kept);
	out->freedom = (double)(count - 2 * trim) - 1;
	/* What is in few blocks only is not trimmed away. */
	if (out->ns < mean / 2) {
		out->ns = mean;
		out->variance_ns2 = INFINITY;
	}
}

/* The blocks of a row in one phase, without those that only warm up. */
struct row_blocks {
	const struct rls_series_blocks *blocks;
	size_t first, count;
	double ns[RLS_SERIES_BLOCKS]; /* per unit */
};

static void read_blocks(const struct rls_series_blocks *blocks, int category,
			enum rls_compare_metric metric, struct row_blocks *out)
{
	out->blocks = blocks;
	out->first = warmup(blocks, metric);
	out->count = rls_blocks_whole(blocks) - out->first;
	for (size_t i = 0; i < out->count; i++)
		out->ns[i] =
			rls_blocks_time(&blocks->blocks[out->first + i].times, metric, category) /
			blocks->units_each;
}

/* Samples that a category's time rests on have one common error, which blocks do not show. */
static double variance_of_samples(const struct rls_series_stratum *stratum, int category,
				  double units)
{
	double error_ns;

	if (category == RLS_COMPARE_TOTAL)
		return 0;
	error_ns = stratum->sampled_error_ns[category] / SIGMAS / units;
	return error_ns * error_ns;
}

/* At the pace that is usual. */
static void estimate_at_pace(struct row_blocks *row, const struct rls_machine_speed *pace,
			     const struct rls_machine_speed_slope *slope, struct rls_estimate *out)
{
	for (size_t i = 0; i < row->count; i++)
		row->ns[i] *= exp(-slope->within * pace->log[row->first + i] -
				  slope->level * pace->level);
	estimate_blocks(row->ns, row->count, out);
}

/* --- phases --------------------------------------------------------------------------- */

static double units_of(const struct rls_series *series, const char *operation,
		       enum rls_series_unit unit)
{
	double units = 0;

	for (size_t i = 0; i < series->count; i++) {
		if (!strcmp(series->strata[i].operation, operation))
			units += series->strata[i].units[unit];
	}
	return units;
}

enum rls_compare_unit rls_estimate_unit(const struct rls_compare_runs *runs, const char *operation)
{
	double least[RLS_SERIES_UNIT_MAX] = {INFINITY, INFINITY};

	for (size_t r = 0; r < runs->count; r++) {
		for (int unit = 0; unit < RLS_SERIES_UNIT_MAX; unit++)
			least[unit] =
				fmin(least[unit], units_of(runs->runs[r].series, operation, unit));
	}
	if (least[RLS_SERIES_CALL] >= UNITS_MIN)
		return RLS_COMPARE_PER_CALL;
	if (least[RLS_SERIES_INNER_CALL] >= UNITS_MIN)
		return RLS_COMPARE_PER_INNER_CALL;
	return least[RLS_SERIES_CALL] > 0 ? RLS_COMPARE_PER_CALL : RLS_COMPARE_PER_SECOND;
}

/* A phase's part in all the runs, 0 unless all of them have enough of it. */
static double common_weight(const struct rls_compare_runs *runs, const char *phase,
			    const char *operation, enum rls_series_unit unit)
{
	double weight = 0;

	for (size_t r = 0; r < runs->count; r++) {
		const struct rls_series *series = runs->runs[r].series;
		const struct rls_series_stratum *stratum =
			rls_blocks_stratum(series, phase, operation);

		if (!stratum || !has_enough_blocks(stratum, unit))
			return 0;
		weight += stratum->units[unit] / units_of(series, operation, unit);
	}
	return weight;
}

/* Whether the phases that all runs have are most of each. */
static bool have_common(const struct rls_compare_runs *runs, const char *operation,
			enum rls_series_unit unit)
{
	for (size_t r = 0; r < runs->count; r++) {
		const struct rls_series *series = runs->runs[r].series;
		double covered = 0;

		for (size_t i = 0; i < series->count; i++) {
			const struct rls_series_stratum *stratum = &series->strata[i];

			if (!strcmp(stratum->operation, operation) &&
			    common_weight(runs, stratum->phase, operation, unit) > 0)
				covered += stratum->units[unit];
		}
		if (covered < COVERED_MIN * units_of(series, operation, unit))
			return false;
	}
	return true;
}

/* A run's mean over its phases, in the making. */
struct phases {
	double weights, left_out;
	double sum, variance, quartic;
};

static void add_phase(struct phases *phases, double weight, const struct rls_estimate *part)
{
	phases->weights += weight;
	phases->sum += weight * part->ns;
	phases->variance += weight * weight * part->variance_ns2;
	phases->quartic += pow(weight * weight * part->variance_ns2, 2) / part->freedom;
}

/* Sure of it only where hardly anything is left out. */
static void finish_phases(const struct phases *phases, struct rls_estimate *out)
{
	double weights = phases->weights, variance = phases->variance;

	if (weights <= 0 || phases->left_out > NEGLIGIBLE * (weights + phases->left_out))
		return;
	out->ns = phases->sum / weights;
	out->variance_ns2 = variance / (weights * weights);
	/* Satterthwaite's */
	out->freedom = isfinite(variance) && phases->quartic > 0
			       ? variance * variance / phases->quartic
			       : BLOCKS_MIN;
}

/* A row of all the runs, while it is estimated. */
struct row_work {
	const struct rls_compare_runs *runs;
	const struct rls_compare_row *row;
	enum rls_compare_metric metric;
	enum rls_series_unit unit;
	const double *common; /* NULL: as it is */
	struct rls_machine_speed *paces; /* of each run */
	struct phases *phases; /* of each run */
};

static void estimate_part(const struct row_work *work, const struct rls_series_stratum *stratum,
			  const struct rls_machine_speed *pace,
			  const struct rls_machine_speed_slope *slope, struct rls_estimate *out)
{
	struct row_blocks blocks;

	read_blocks(&stratum->blocks[work->unit], work->row->category, work->metric, &blocks);
	if (work->common)
		estimate_at_pace(&blocks, pace, slope, out);
	else
		estimate_blocks(blocks.ns, blocks.count, out);
	out->variance_ns2 +=
		variance_of_samples(stratum, work->row->category, stratum->units[work->unit]);
}

static const struct rls_series_stratum *stratum_of(const struct row_work *work, size_t run,
						   const char *phase)
{
	return rls_blocks_stratum(work->runs->runs[run].series, phase, work->row->operation);
}

/* Paces of all runs, and how far the row went along with them. */
static struct rls_machine_speed_slope find_pace(const struct row_work *work, const char *phase)
{
	struct rls_machine_speed_fit fit = {0};
	bool known;

	if (!work->common)
		return (struct rls_machine_speed_slope){0};
	known = rls_machine_speed_find(work->runs, phase, work->row->operation, work->unit,
				       work->metric, work->common, work->paces);
	for (size_t r = 0; r < work->runs->count; r++) {
		struct row_blocks blocks;

		read_blocks(&stratum_of(work, r, phase)->blocks[work->unit], work->row->category,
			    work->metric, &blocks);
		work->paces[r].first = blocks.first;
		rls_machine_speed_fit_add(&fit, &work->paces[r], blocks.ns);
	}
	return rls_machine_speed_fit_slope(&fit, known);
}

/* A phase that all runs have, at the same weight in each. */
static void estimate_common_phase(const struct row_work *work, const char *phase, double weight)
{
	struct rls_machine_speed_slope slope = find_pace(work, phase);

	for (size_t r = 0; r < work->runs->count; r++) {
		struct rls_estimate part = {0};

		estimate_part(work, stratum_of(work, r, phase), &work->paces[r], &slope, &part);
		add_phase(&work->phases[r], weight, &part);
	}
}

/* The runs have hardly a phase in common: each is what it is. */
static void estimate_own_phases(const struct row_work *work, size_t run)
{
	const struct rls_series *series = work->runs->runs[run].series;
	struct rls_machine_speed_fit unseen = {0};
	struct rls_machine_speed_slope slope = rls_machine_speed_fit_slope(&unseen, false);
	struct rls_machine_speed pace = {.level = work->common ? work->common[run] : 0};

	for (size_t i = 0; i < series->count; i++) {
		const struct rls_series_stratum *stratum = &series->strata[i];
		struct rls_estimate part = {0};

		if (strcmp(stratum->operation, work->row->operation))
			continue;
		if (!has_enough_blocks(stratum, work->unit)) {
			work->phases[run].left_out += stratum->units[work->unit];
			continue;
		}
		estimate_part(work, stratum, &pace, &slope, &part);
		add_phase(&work->phases[run], stratum->units[work->unit], &part);
	}
}

static void estimate_phases(const struct row_work *work)
{
	const struct rls_series *first = work->runs->runs[0].series;
	const char *operation = work->row->operation;

	if (!have_common(work->runs, operation, work->unit)) {
		for (size_t r = 0; r < work->runs->count; r++)
			estimate_own_phases(work, r);
		return;
	}
	for (size_t i = 0; i < first->count; i++) {
		const char *phase = first->strata[i].phase;
		double weight;

		if (strcmp(first->strata[i].operation, operation))
			continue;
		weight = common_weight(work->runs, phase, operation, work->unit);
		if (weight > 0)
			estimate_common_phase(work, phase, weight);
	}
}

/* --- a row -------------------------------------------------------------------------- */

/* All of a run's time by all of its units. */
static void estimate_whole_run(const struct rls_series *series, const struct rls_compare_row *row,
			       enum rls_compare_metric metric, struct rls_estimate *out)
{
	double total_ns = 0, traced_ns = 0, wall_ns = 0, corrected_ns = 0;

	*out = (struct rls_estimate){.variance_ns2 = INFINITY, .freedom = 1};
	for (size_t i = 0; i < series->count; i++) {
		const struct rls_series_times *times = &series->strata[i].times;

		traced_ns += rls_blocks_time(times, metric, RLS_COMPARE_TOTAL);
		if (strcmp(series->strata[i].operation, row->operation))
			continue;
		total_ns += rls_blocks_time(times, metric, row->category);
		wall_ns += rls_blocks_time(times, RLS_COMPARE_WALL, row->category);
		corrected_ns += rls_blocks_time(times, RLS_COMPARE_CORRECTED, row->category);
	}
	out->units = row->unit == RLS_COMPARE_PER_SECOND
			     ? (double)series->duration_ns / NS_PER_S
			     : units_of(series, row->operation,
					row->unit == RLS_COMPARE_PER_CALL ? RLS_SERIES_CALL
									  : RLS_SERIES_INNER_CALL);
	if (total_ns <= 0 || out->units <= 0)
		return;
	out->present = true;
	out->ns = total_ns / out->units;
	out->share = total_ns / traced_ns;
	if (metric == RLS_COMPARE_CORRECTED || metric == RLS_COMPARE_CPU)
		out->subtracted_ns = (wall_ns - corrected_ns) / out->units;
}

int rls_estimate_row(const struct rls_compare_runs *runs, const struct rls_compare_row *row,
		     enum rls_compare_metric metric, const double *common, struct rls_estimate *out)
{
	_cleanup_free_ struct rls_machine_speed *paces = calloc(runs->count, sizeof(*paces));
	_cleanup_free_ struct phases *phases = calloc(runs->count, sizeof(*phases));
	struct row_work work = {
		.runs = runs,
		.row = row,
		.metric = metric,
		.unit = row->unit == RLS_COMPARE_PER_CALL ? RLS_SERIES_CALL : RLS_SERIES_INNER_CALL,
		.common = common,
		.paces = paces,
		.phases = phases,
	};

	if (!paces || !phases)
		return -ENOMEM;
	if (row->unit != RLS_COMPARE_PER_SECOND)
		estimate_phases(&work);
	for (size_t r = 0; r < runs->count; r++) {
		estimate_whole_run(runs->runs[r].series, row, metric, &out[r]);
		if (out[r].present)
			finish_phases(&phases[r], &out[r]);
		if (out[r].ns <= 0)
			out[r] = (struct rls_estimate){0};
	}
	return 0;
}
