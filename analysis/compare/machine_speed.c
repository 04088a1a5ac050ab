#include "analysis/compare/machine_speed.h"

#include <math.h>
#include <string.h>

#include "analysis/compare/blocks.h"

#define PEERS_MAX 16 /* operations that tell the pace */
#define PEERS_MIN 2 /* one alone tells of itself as much as of the machine */
#define PEER_SHARE_MIN 0.05 /* of its operation's time, for a category to be one */
/* What is known of a slope before looking: most work slows down with the rest, more or less. */
#define SLOPE_PRIOR 1
#define SLOPE_PRIOR_VARIANCE (0.3 * 0.3)
#define SLOPE_MAX 2

/* --- how slow it was ---------------------------------------------------------------- */

/* The operations whose blocks lie beside those of another one. */
struct peers {
	const char *names[PEERS_MAX];
	size_t count;
	/* By category: the logarithm of what a call takes usually; NAN where it tells nothing. */
	double usual[PEERS_MAX][RLS_CATEGORY_MAX];
	enum rls_compare_metric metric;
};

/* The peers' blocks in one run. */
struct peer_blocks {
	const struct rls_series_blocks *of[PEERS_MAX]; /* NULL: not beside here */
};

static bool lie_beside(const struct rls_series_blocks *peer, const struct rls_series_blocks *blocks)
{
	size_t count = rls_blocks_whole(blocks), peer_count = rls_blocks_whole(peer);

	return peer->units_each == blocks->units_each && peer_count && peer_count <= count + 1 &&
	       count <= peer_count + 1;
}

/* The operation itself has no say, or its own scatter would pass for the machine's. */
static void find_peers(const struct rls_series *series, const struct rls_series_stratum *stratum,
		       enum rls_series_unit unit, struct peers *peers)
{
	for (size_t s = 0; s < series->count && peers->count < PEERS_MAX; s++) {
		const struct rls_series_stratum *peer = &series->strata[s];

		if (peer != stratum && !strcmp(peer->phase, stratum->phase) &&
		    lie_beside(&peer->blocks[RLS_SERIES_CALL], &stratum->blocks[unit]))
			peers->names[peers->count++] = peer->operation;
	}
}

static struct peer_blocks find_blocks(const struct peers *peers, const struct rls_series *series,
				      const struct rls_series_stratum *stratum,
				      enum rls_series_unit unit)
{
	struct peer_blocks out = {0};

	for (size_t p = 0; p < peers->count; p++) {
		const struct rls_series_stratum *peer =
			rls_blocks_stratum(series, stratum->phase, peers->names[p]);

		if (peer && lie_beside(&peer->blocks[RLS_SERIES_CALL], &stratum->blocks[unit]))
			out.of[p] = &peer->blocks[RLS_SERIES_CALL];
	}
	return out;
}

/* Per call. The operation may have had one block more. */
static double call_ns(const struct peers *peers, const struct rls_series_blocks *blocks,
		      size_t block, int category)
{
	size_t last = rls_blocks_whole(blocks) - 1;

	if (block > last)
		block = last;
	return rls_blocks_time(&blocks->blocks[block].times, peers->metric, category) /
	       blocks->units_each;
}

/* Of a category's median time; NAN where it is too little to tell anything. */
static double usual_log(const struct peers *peers, const struct rls_series_blocks *blocks,
			int category)
{
	double times[RLS_SERIES_BLOCKS], sum = 0, all = 0, median;
	size_t count = rls_blocks_whole(blocks);

	for (size_t i = 0; i < count; i++) {
		times[i] = call_ns(peers, blocks, i, category);
		sum += times[i];
		all += call_ns(peers, blocks, i, RLS_COMPARE_TOTAL);
	}
	median = rls_median(times, count);
	return median > 0 && sum >= PEER_SHARE_MIN * all ? log(median) : NAN;
}

/* The median over every step-th operation and all categories; 0 where there are none. */
static double pace_at(const struct peers *peers, const struct peer_blocks *blocks, size_t block,
		      size_t first, size_t step)
{
	double logs[PEERS_MAX * RLS_CATEGORY_MAX];
	size_t count = 0;

	for (size_t p = first; p < peers->count; p += step) {
		for (int c = 0; c < RLS_CATEGORY_MAX; c++) {
			double ns;

			if (isnan(peers->usual[p][c]))
				continue;
			ns = call_ns(peers, blocks->of[p], block, c);
			logs[count++] = ns > 0 ? log(ns) - peers->usual[p][c] : 0;
		}
	}
	return count ? rls_median(logs, count) : 0;
}

static bool machine_speed_shows(const double usual[static RLS_CATEGORY_MAX])
{
	for (int c = 0; c < RLS_CATEGORY_MAX; c++) {
		if (!isnan(usual[c]))
			return true;
	}
	return false;
}

static void keep_known_peers(struct peers *peers)
{
	size_t kept = 0;

	for (size_t p = 0; p < peers->count; p++) {
		if (!machine_speed_shows(peers->usual[p]))
			continue;
		peers->names[kept] = peers->names[p];
		memmove(peers->usual[kept++], peers->usual[p], sizeof(peers->usual[p]));
	}
	peers->count = kept;
}

static double mean_of(const double *x, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += x[i];
	return count ? sum / (double)count : 0;
}

static void about_mean(double *x, size_t count)
{
	double mean = mean_of(x, count);

	for (size_t i = 0; i < count; i++)
		x[i] -= mean;
}

/* The mean over the runs, each of which must have it. */
static void find_usual(const struct rls_compare_runs *runs, const char *phase,
		       const char *operation, enum rls_series_unit unit, struct peers *peers)
{
	for (size_t r = 0; r < runs->count; r++) {
		const struct rls_series *series = runs->runs[r].series;
		struct peer_blocks blocks = find_blocks(
			peers, series, rls_blocks_stratum(series, phase, operation), unit);

		for (size_t p = 0; p < peers->count; p++) {
			for (int c = 0; c < RLS_CATEGORY_MAX; c++)
				peers->usual[p][c] +=
					(blocks.of[p] ? usual_log(peers, blocks.of[p], c) : NAN) /
					(double)runs->count;
		}
	}
}

bool rls_machine_speed_find(const struct rls_compare_runs *runs, const char *phase,
			    const char *operation, enum rls_series_unit unit,
			    enum rls_compare_metric metric, const double *common,
			    struct rls_machine_speed *paces)
{
	struct peers peers = {.metric = metric};
	bool known;

	find_peers(runs->runs[0].series, rls_blocks_stratum(runs->runs[0].series, phase, operation),
		   unit, &peers);
	find_usual(runs, phase, operation, unit, &peers);
	keep_known_peers(&peers);
	known = peers.count >= PEERS_MIN;
	for (size_t r = 0; r < runs->count; r++) {
		const struct rls_series *series = runs->runs[r].series;
		const struct rls_series_stratum *stratum =
			rls_blocks_stratum(series, phase, operation);
		struct peer_blocks blocks = find_blocks(&peers, series, stratum, unit);
		struct rls_machine_speed *pace = &paces[r];

		pace->count = rls_blocks_whole(&stratum->blocks[unit]);
		for (size_t i = 0; i < pace->count; i++) {
			pace->log[i] = pace_at(&peers, &blocks, i, 0, 1);
			for (size_t h = 0; h < 2; h++)
				pace->halves[h][i] = pace_at(&peers, &blocks, i, h, 2);
		}
		pace->level = known ? mean_of(pace->log, pace->count) : common[r];
		about_mean(pace->log, pace->count);
	}
	return known;
}

/* --- what a row makes of it ----------------------------------------------------------- */

void rls_machine_speed_fit_add(struct rls_machine_speed_fit *fit,
			       const struct rls_machine_speed *pace, const double *row)
{
	size_t first = pace->first, count = pace->count - first;
	double row_mean = mean_of(row, count), pace_mean = mean_of(pace->log + first, count);
	double half_means[2];

	if (row_mean <= 0)
		return;
	for (size_t h = 0; h < 2; h++)
		half_means[h] = mean_of(pace->halves[h] + first, count);
	for (size_t i = 0; i < count; i++) {
		double x = pace->log[first + i] - pace_mean, y = row[i] / row_mean - 1;
		double left = pace->halves[0][first + i] - half_means[0];
		double right = pace->halves[1][first + i] - half_means[1];

		fit->squares += x * x;
		fit->products += x * y;
		fit->row_squares += y * y;
		fit->half_squares[0] += left * left;
		fit->half_squares[1] += right * right;
		fit->half_products += left * right;
	}
	fit->blocks += (double)count;
	fit->runs++;
}

/* What of the pace's variation is the machine's, by how far the halves agree (Spearman 1910,
 * Brown 1910). */
static double reliability(const struct rls_machine_speed_fit *fit)
{
	double squares = fit->half_squares[0] * fit->half_squares[1];
	double correlation = squares > 0 ? fit->half_products / sqrt(squares) : 0;

	return correlation > 0 ? 2 * correlation / (1 + correlation) : 0;
}

/* Of blocks by least squares, which is best at taking out what they share. The pace is itself
 * measured with noise, by which that is too flat (attenuation); for whole runs, whose paces are
 * means, it is made good. What was seen then counts against what was known before by its
 * precision. */
struct rls_machine_speed_slope rls_machine_speed_fit_slope(const struct rls_machine_speed_fit *fit,
							   bool known)
{
	struct rls_machine_speed_slope slope = {0, SLOPE_PRIOR};
	double freedom = fit->blocks - fit->runs - 1, real, rest, precision;

	if (freedom < 1 || fit->squares <= 0)
		return slope;
	slope.within = fit->products / fit->squares;
	rest = (fit->row_squares - slope.within * fit->products) / freedom;
	slope.within = fmin(fmax(slope.within, 0), SLOPE_MAX);
	real = reliability(fit) * fit->squares;
	if (!known || real <= 0 || rest <= 0)
		return slope;
	precision = real * real / (rest * fit->squares);
	slope.level = (precision * fit->products / real + SLOPE_PRIOR / SLOPE_PRIOR_VARIANCE) /
		      (precision + 1 / SLOPE_PRIOR_VARIANCE);
	slope.level = fmin(fmax(slope.level, 0), SLOPE_MAX);
	return slope;
}
