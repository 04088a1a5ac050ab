#include "analysis/compare_estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNITS_MIN 7             /* fewer say nothing about variation */
#define BLOCKS_MIN 5
#define TRIM 0.1                /* of the blocks, at either end */
#define TRIM_BLOCKS_MIN 10
#define CORRELATION_MAX 0.8
#define WARMUP_GAIN 0.5
#define COVERED_MIN 0.5         /* of each run's units, for weights that all runs share */
#define NEGLIGIBLE 0.05
#define PEERS_MAX 16            /* operations that tell the speed */
#define PEER_CELLS_MIN 2        /* operations by category */
#define PEER_SHARE_MIN 0.05     /* of its operation's time, for a category to be one */
#define NS_PER_S 1e9
#define SIGMAS 1.96             /* of a stated half width */

/* --- distributions ------------------------------------------------------------------ */

/* z with P(|Z| < z) = confidence. */
static double normal_quantile(double confidence)
{
	double low = 0, high = 40;

	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (erf(middle / sqrt(2)) < confidence)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* By Fisher's expansion, good to a per cent from 3 degrees on; exactly for 1 and 2, the lower
 * of which is taken for anything below 3. */
double rls_student_quantile(double confidence, double freedom)
{
	double z, z3, z5, z7;

	if (freedom < 2)
		return tan(M_PI / 2 * confidence);
	if (freedom < 3)
		return confidence * sqrt(2 / (1 - confidence * confidence));
	z = normal_quantile(confidence);
	z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
	return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom) +
	       (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom * freedom * freedom);
}

static int by_size(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

double rls_median(double *values, size_t count)
{
	if (!count)
		return NAN;
	qsort(values, count, sizeof(*values), by_size);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* --- one stratum -------------------------------------------------------------------- */

static double time_of(const struct rls_series_times *times, enum rls_compare_metric metric,
		      int category)
{
	const double *const values[] = {
		[RLS_COMPARE_CORRECTED] = times->corrected_ns,
		[RLS_COMPARE_WALL] = times->wall_ns,
		[RLS_COMPARE_CPU] = times->cpu_ns,
		[RLS_COMPARE_RAN] = times->ran_ns,
	};
	double sum = 0;

	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		if (category == RLS_COMPARE_TOTAL || category == i)
			sum += values[metric][i];
	}
	return sum;
}

static size_t whole_blocks(const struct rls_series_blocks *blocks)
{
	bool begun = blocks->count && blocks->blocks[blocks->count - 1].units < blocks->units_each;

	return blocks->count - begun;
}

static bool can_tell(const struct rls_series_stratum *stratum, enum rls_series_unit unit)
{
	return stratum->units[unit] >= UNITS_MIN &&
	       whole_blocks(&stratum->blocks[unit]) >= BLOCKS_MIN;
}

/* Blocks at the beginning to leave out: those without which the mean of the operation's whole
 * time is much surer. */
static size_t warmup(const struct rls_series_blocks *blocks, enum rls_compare_metric metric)
{
	size_t count = whole_blocks(blocks), best = 0;
	double sum = 0, squares = 0, all = 0, least = INFINITY;

	for (size_t i = count; i-- > 0;) {
		double x = time_of(&blocks->blocks[i].times, metric, RLS_COMPARE_TOTAL);
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
	qsort(sorted, count, sizeof(*sorted), by_size);
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
	return squares / (double)(count - 1) / (double)count * (1 + correlation) / (1 - correlation);
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

static void estimate_stratum(const struct rls_series_blocks *blocks, int category,
			     enum rls_compare_metric metric, const double *speeds,
			     struct rls_estimate *out)
{
	size_t first = warmup(blocks, metric), count = whole_blocks(blocks) - first;
	double x[RLS_SERIES_BLOCKS], steady[RLS_SERIES_BLOCKS];
	struct rls_estimate other;

	for (size_t i = 0; i < count; i++) {
		x[i] = time_of(&blocks->blocks[first + i].times, metric, category) /
		       blocks->units_each;
		steady[i] = x[i] / speeds[first + i];
	}
	estimate_blocks(x, count, out);
	other = *out;
	estimate_blocks(steady, count, &other);
	/* Where the others were not at work at the same time, they tell nothing. */
	if (other.variance_ns2 < out->variance_ns2)
		*out = other;
}

/* Looks that a category's time rests on are in doubt together: blocks cannot tell how far. */
static double variance_of_looks(const struct rls_series_stratum *stratum, int category, double units)
{
	double error_ns;

	if (category == RLS_COMPARE_TOTAL)
		return 0;
	error_ns = stratum->looked_error_ns[category] / SIGMAS / units;
	return error_ns * error_ns;
}

/* --- the machine's speed over a run -------------------------------------------------- */

/* A category's time in each block against its median. false: it is too little. */
static bool read_cell(const struct rls_series_blocks *blocks, int category,
		      enum rls_compare_metric metric, size_t count, double *out)
{
	double sorted[RLS_SERIES_BLOCKS], sum = 0, all = 0, median;

	for (size_t i = 0; i < count; i++) {
		sorted[i] = out[i] = time_of(&blocks->blocks[i].times, metric, category);
		sum += out[i];
		all += time_of(&blocks->blocks[i].times, metric, RLS_COMPARE_TOTAL);
	}
	median = rls_median(sorted, count);
	if (median <= 0 || sum < PEER_SHARE_MIN * all)
		return false;
	for (size_t i = 0; i < count; i++)
		out[i] /= median;
	return true;
}

/* How long everything else took in each block, 1 being usual: the median over the operations
 * of the phase that are called as often as this one, so that their blocks lie side by side. The
 * operation itself has no say, or its own scatter would pass for the machine's. */
static void find_speeds(const struct rls_series *series, const struct rls_series_stratum *stratum,
			enum rls_series_unit unit, enum rls_compare_metric metric, double *speeds)
{
	const struct rls_series_blocks *blocks = &stratum->blocks[unit];
	double cells[PEERS_MAX * RLS_CATEGORY_MAX][RLS_SERIES_BLOCKS];
	double values[PEERS_MAX * RLS_CATEGORY_MAX];
	size_t count = whole_blocks(blocks), peers = 0, n = 0;

	for (size_t s = 0; s < series->count && peers < PEERS_MAX; s++) {
		const struct rls_series_blocks *peer = &series->strata[s].blocks[RLS_SERIES_CALL];

		if (&series->strata[s] == stratum ||
		    strcmp(series->strata[s].phase, stratum->phase) ||
		    peer->units_each != blocks->units_each || whole_blocks(peer) < count ||
		    whole_blocks(peer) > count + 1)
			continue;
		peers++;
		for (int c = 0; c < RLS_CATEGORY_MAX; c++)
			n += read_cell(peer, c, metric, count, cells[n]);
	}
	for (size_t i = 0; i < count && n >= PEER_CELLS_MIN; i++) {
		double speed;

		for (size_t k = 0; k < n; k++)
			values[k] = cells[k][i];
		speed = rls_median(values, n);
		speeds[i] = speed > 0 ? speed : 1;
	}
}

/* --- one run ------------------------------------------------------------------------ */

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
			least[unit] = fmin(least[unit],
					   units_of(runs->runs[r].series, operation, unit));
	}
	if (least[RLS_SERIES_CALL] >= UNITS_MIN)
		return RLS_COMPARE_PER_CALL;
	if (least[RLS_SERIES_INNER_CALL] >= UNITS_MIN)
		return RLS_COMPARE_PER_INNER_CALL;
	return least[RLS_SERIES_CALL] > 0 ? RLS_COMPARE_PER_CALL : RLS_COMPARE_PER_SECOND;
}

static const struct rls_series_stratum *find_stratum(const struct rls_series *series,
						     const char *phase, const char *operation)
{
	for (size_t i = 0; i < series->count; i++) {
		if (!strcmp(series->strata[i].operation, operation) &&
		    !strcmp(series->strata[i].phase, phase))
			return &series->strata[i];
	}
	return NULL;
}

/* A phase's part in all the runs, 0 unless all of them have enough of it. */
static double common_weight(const struct rls_compare_runs *runs, const char *phase,
			    const char *operation, enum rls_series_unit unit)
{
	double weight = 0;

	for (size_t r = 0; r < runs->count; r++) {
		const struct rls_series *series = runs->runs[r].series;
		const struct rls_series_stratum *stratum = find_stratum(series, phase, operation);

		if (!stratum || !can_tell(stratum, unit))
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

/* The mean over the phases; sure of it only where hardly anything is left out. */
static void estimate_phases(const struct rls_compare_runs *runs, size_t run,
			    const struct rls_compare_row *row, enum rls_compare_metric metric,
			    bool steady, struct rls_estimate *out)
{
	const struct rls_series *series = runs->runs[run].series;
	enum rls_series_unit unit = row->unit == RLS_COMPARE_PER_CALL ? RLS_SERIES_CALL
								      : RLS_SERIES_INNER_CALL;
	bool common = have_common(runs, row->operation, unit);
	double weights = 0, left_out = 0, sum = 0, variance = 0, quartic = 0;

	for (size_t i = 0; i < series->count; i++) {
		const struct rls_series_stratum *stratum = &series->strata[i];
		double weight, speeds[RLS_SERIES_BLOCKS];
		struct rls_estimate part = {0};

		if (strcmp(stratum->operation, row->operation))
			continue;
		weight = common ? common_weight(runs, stratum->phase, row->operation, unit)
				: stratum->units[unit];
		if (!common && !can_tell(stratum, unit))
			left_out += weight;
		if (weight <= 0 || !can_tell(stratum, unit))
			continue;
		for (size_t b = 0; b < RLS_SERIES_BLOCKS; b++)
			speeds[b] = 1;
		if (steady)
			find_speeds(series, stratum, unit, metric, speeds);
		estimate_stratum(&stratum->blocks[unit], row->category, metric, speeds, &part);
		part.variance_ns2 +=
			variance_of_looks(stratum, row->category, stratum->units[unit]);
		weights += weight;
		sum += weight * part.ns;
		variance += weight * weight * part.variance_ns2;
		quartic += pow(weight * weight * part.variance_ns2, 2) / part.freedom;
	}
	if (weights <= 0 || left_out > NEGLIGIBLE * (weights + left_out))
		return;
	out->ns = sum / weights;
	out->variance_ns2 = variance / (weights * weights);
	/* Satterthwaite's */
	out->freedom = isfinite(variance) && quartic > 0 ? variance * variance / quartic : BLOCKS_MIN;
}

void rls_estimate(const struct rls_compare_runs *runs, size_t run,
		  const struct rls_compare_row *row, enum rls_compare_metric metric, bool steady,
		  struct rls_estimate *out)
{
	const struct rls_series *series = runs->runs[run].series;
	double total_ns = 0, traced_ns = 0, wall_ns = 0, corrected_ns = 0;

	*out = (struct rls_estimate){.variance_ns2 = INFINITY, .freedom = 1};
	for (size_t i = 0; i < series->count; i++) {
		const struct rls_series_times *times = &series->strata[i].times;

		traced_ns += time_of(times, metric, RLS_COMPARE_TOTAL);
		if (strcmp(series->strata[i].operation, row->operation))
			continue;
		total_ns += time_of(times, metric, row->category);
		wall_ns += time_of(times, RLS_COMPARE_WALL, row->category);
		corrected_ns += time_of(times, RLS_COMPARE_CORRECTED, row->category);
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
	if (row->unit != RLS_COMPARE_PER_SECOND)
		estimate_phases(runs, run, row, metric, steady, out);
	if (out->ns <= 0)
		*out = (struct rls_estimate){0};
}
