#include "userspace/record/calibrate/overhead_factor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/base/student.h"

/* Of the blocks, on either side. */
#define TRIMMED_BLOCKS 0.2
#define CONFIDENCE 0.95
#define BLOCKS_OF_SPREAD 3
#define BLOCKS_OF_PART 3
/* Labels whose own factor is known better than that count equally. */
#define CLEAR_NOISE 0.1
/* Of the factor: the spread where one label alone shows none. Eight training jobs had
 * 0.005 to 0.28, half of them more than 0.08. */
#define UNKNOWN_SPREAD 0.1
/* What parts are taken to lie apart before any is compared, as if there were one more, known so well. */
#define PART_SPREAD 0.1
#define PRIOR_PARTS 0.5
/* One that is hit less than that, of how much all are in the mean, has no factor of its own: what it
 * takes longer is nearly all others'. (Training jobs: 0.00 and 0.01, or more than 0.3.) */
#define SPARED_DENSITY 0.1
/* No part's hits cost less than that, nor more. */
#define FACTOR_MIN 0.05
#define FACTOR_MAX 20.0
/* Nor do they take more than that for parts that are not compared. */
#define SCALE_MAX 1.2

struct sums {
	double count, delta_ns, cost_ns, hits, plain_ns;
};

static void overhead_factor_add(struct sums *sums, const struct rls_overhead_factor *difference)
{
	sums->count += difference->count;
	sums->delta_ns += difference->count * difference->delta_ns;
	sums->cost_ns += difference->count * difference->cost_ns;
	sums->hits += difference->count * difference->hits;
	sums->plain_ns += difference->count * difference->plain_ns;
}

/* Of a ratio of sums over blocks: by what is left of each block's difference. */
static double ratio_error(const struct sums *blocks, size_t count, double ratio, double of)
{
	double squares = 0;
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		double off = blocks[i].delta_ns - ratio * blocks[i].cost_ns;

		used += blocks[i].count > 0;
		squares += off * off;
	}
	if (used < 2)
		return INFINITY;
	return rls_student_quantile(CONFIDENCE, (double)used - 1) *
	       sqrt(squares * (double)used / (double)(used - 1)) / of;
}

static int compare_numbers(double a, double b)
{
	return (a > b) - (a < b);
}

static int by_label(const void *left, const void *right)
{
	const struct rls_overhead_factor *a = left, *b = right;

	if (a->label != b->label)
		return a->label > b->label ? 1 : -1;
	return compare_numbers(a->block, b->block);
}

/* How far the labels' own factors are from the whole's beyond what their noise explains: those
 * of much cost and little noise count most. Sorts by label. */
static double find_spread(struct rls_overhead_factor *differences, size_t count, double factor,
			  size_t *labels)
{
	double weighted = 0, weights = 0;
	size_t used_labels = 0, end;

	qsort(differences, count, sizeof(*differences), by_label);
	*labels = 0;
	for (size_t i = 0; i < count; i = end) {
		struct sums blocks[RLS_BLOCKS_MAX] = {0}, whole = {0};
		size_t used = 0;
		double noise, off, weight;

		for (end = i; end < count && differences[end].label == differences[i].label;
		     end++) {
			overhead_factor_add(&blocks[used++], &differences[end]);
			overhead_factor_add(&whole, &differences[end]);
		}
		++*labels;
		if (used < BLOCKS_OF_SPREAD || !(whole.cost_ns > 0))
			continue;
		off = whole.delta_ns / whole.cost_ns - factor;
		noise = ratio_error(blocks, used, factor + off, whole.cost_ns) /
			rls_student_quantile(CONFIDENCE, (double)used - 1);
		weight = whole.cost_ns / (noise * noise + CLEAR_NOISE * CLEAR_NOISE);
		weighted += weight * (off * off - noise * noise);
		weights += weight;
		used_labels++;
	}
	if (used_labels < 2)
		return UNKNOWN_SPREAD * factor;
	return weights > 0 && weighted > 0 ? 2 * sqrt(weighted / weights) : 0;
}

struct interval {
	double middle, half; /* 95 % */
};

struct ratio {
	double value, weight;
};

static int by_value(const void *left, const void *right)
{
	return compare_numbers(((const struct ratio *)left)->value,
			       ((const struct ratio *)right)->value);
}

static double overhead_factor_clip(const struct ratio *ratios, size_t i, size_t low, size_t high)
{
	return ratios[i < low ? low : i > high ? high : i].value;
}

/* Half width of where 95 % of single blocks lie, known by so many. */
static double deviation(double half, size_t blocks)
{
	return half * sqrt(1 + (double)blocks);
}

/* The blocks' ratios without the farthest of either side, which somebody else's bursts have
 * spoilt: their trimmed mean, and its interval by Yuen's winsorized variance. Returns how many
 * blocks there are; it takes at least so many. */
static size_t combine(const struct sums blocks[RLS_BLOCKS_MAX], size_t least, struct interval *out)
{
	struct ratio ratios[RLS_BLOCKS_MAX];
	double weights = 0, sum = 0, middle = 0, squares = 0, n;
	size_t count = 0, cut, i;

	for (i = 0; i < RLS_BLOCKS_MAX; i++) {
		if (blocks[i].cost_ns > 0)
			ratios[count++] = (struct ratio){blocks[i].delta_ns / blocks[i].cost_ns,
							 blocks[i].cost_ns};
	}
	if (count < least)
		return count;
	qsort(ratios, count, sizeof(*ratios), by_value);
	n = (double)count;
	cut = (size_t)(TRIMMED_BLOCKS * n);
	for (i = cut; i < count - cut; i++) {
		sum += ratios[i].weight * ratios[i].value;
		weights += ratios[i].weight;
	}
	out->middle = sum / weights;
	for (i = 0; i < count; i++)
		middle += overhead_factor_clip(ratios, i, cut, count - cut - 1) / n;
	for (i = 0; i < count; i++) {
		double off = overhead_factor_clip(ratios, i, cut, count - cut - 1) - middle;

		squares += off * off;
	}
	out->half = rls_student_quantile(CONFIDENCE, n - 2 * (double)cut - 1) *
		    sqrt(squares / (n - 1) / n) / (1 - 2 * (double)cut / n);
	return count;
}

/* ---- parts ---- */

struct part {
	bool compared;
	double factor, noise; /* its own, and how well it is known: one sigma */
	double cost_ns; /* of the hits compared */
};

static void compare_parts(const struct rls_overhead_factor *differences, size_t count,
			  struct part parts[RLS_PARTS_MAX])
{
	for (size_t i = 0; i < RLS_PARTS_MAX; i++) {
		struct sums blocks[RLS_BLOCKS_MAX] = {0};
		struct interval own = {0};

		for (size_t k = 0; k < count; k++) {
			if (differences[k].part != i)
				continue;
			overhead_factor_add(&blocks[differences[k].block], &differences[k]);
			parts[i].cost_ns += differences[k].count * differences[k].cost_ns;
		}
		parts[i].compared = combine(blocks, BLOCKS_OF_PART, &own) >= BLOCKS_OF_PART;
		parts[i].factor = own.middle;
		parts[i].noise = own.half / 2;
	}
}

/* How far parts lie from the whole beyond their noise, squared. All count alike, however little they are
 * hit, but for how well they are known; one that is most of the whole cannot lie far from it. */
static double find_variance(const struct part parts[RLS_PARTS_MAX], size_t count,
			    const struct part *all, double whole)
{
	double weights = PRIOR_PARTS / (CLEAR_NOISE * CLEAR_NOISE);
	double weighted = weights * PART_SPREAD * PART_SPREAD;

	for (size_t i = 0; i < count; i++) {
		double off = parts[i].factor - whole, noise = parts[i].noise * parts[i].noise;
		double others, weight;

		if (!parts[i].compared)
			continue;
		others = 1 - parts[i].cost_ns / all->cost_ns;
		weight = others / (noise + CLEAR_NOISE * CLEAR_NOISE);
		weighted += weight * (off * off - others * noise);
		weights += weight;
	}
	return fmax(weighted, 0) / weights;
}

/* What was compared of all parts together; the factor is the mean of theirs. */
static struct part sum_parts(const struct part parts[RLS_PARTS_MAX], size_t count)
{
	struct part all = {0};
	double weighted = 0;

	for (size_t i = 0; i < count; i++) {
		if (!parts[i].compared)
			continue;
		all.cost_ns += parts[i].cost_ns;
		weighted += parts[i].cost_ns * parts[i].factor;
	}
	all.factor = all.cost_ns > 0 ? weighted / all.cost_ns : 0;
	return all;
}

/* By so much the compared parts have to take more, to take together what the whole took longer: others are too
 * little known for that (those that are hardly hit are not among them). */
static double find_scale(const struct part *all, double whole)
{
	return all->factor > 0 ? fmin(fmax(whole / all->factor, 1 / SCALE_MAX), SCALE_MAX) : 1;
}

static double clamp(double factor)
{
	return fmin(fmax(factor, FACTOR_MIN), FACTOR_MAX);
}

/* The factors of parts, and the whole's by them. */
static void conclude_parts(const struct rls_overhead_factor *differences, size_t count,
			   const struct rls_part *costs, size_t part_count,
			   struct rls_delta_in_vivo *result)
{
	struct part parts[RLS_PARTS_MAX] = {0};
	double whole = result->factor, weighted = 0, weights = 0, between, scale;
	struct part all;
	size_t compared = 0;

	compare_parts(differences, count, parts);
	all = sum_parts(parts, part_count);
	between = find_variance(parts, part_count, &all, whole);
	scale = find_scale(&all, whole);
	for (size_t i = 0; i < part_count; i++) {
		double noise = parts[i].noise * parts[i].noise;
		double factor = whole, share = 0;

		if (parts[i].compared) {
			share = between > 0 ? between / (between + noise) : 0;
			factor = clamp(whole + share * (scale * parts[i].factor - whole));
			compared++;
		}
		weighted += costs[i].cost_ns * factor;
		weights += costs[i].cost_ns;
		if (parts[i].compared && !costs[i].mixed) {
			/* It may be as far from the whole as it seems. */
			double own = hypot(2 * sqrt(share * noise),
					   (1 - share) * (parts[i].factor - whole));

			result->parts[result->part_count++] = (struct rls_part_cost){
				.operation = costs[i].operation,
				.factor = factor,
				.error = hypot(own, result->deviation * factor / whole),
			};
		}
	}
	if (compared < 2)
		result->part_count = 0;
	else
		result->factor = weighted / weights;
}

/* Puts the differences of parts that are hardly hit behind all others. Returns how many others there are. */
static size_t separate_spared(struct rls_overhead_factor *differences, size_t count)
{
	struct sums parts[RLS_PARTS_MAX] = {0}, whole = {0};
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		overhead_factor_add(&parts[differences[i].part], &differences[i]);
		overhead_factor_add(&whole, &differences[i]);
	}
	for (size_t i = 0; i < count; i++) {
		const struct rls_overhead_factor difference = differences[i];
		const struct sums *part = &parts[difference.part];

		if (part->cost_ns * whole.plain_ns <
		    SPARED_DENSITY * whole.cost_ns * part->plain_ns)
			continue;
		differences[i] = differences[kept];
		differences[kept++] = difference;
	}
	return kept;
}

int rls_overhead_factors_conclude(struct rls_overhead_factor *differences, size_t count,
				  const struct rls_part *parts, size_t part_count,
				  struct rls_delta_in_vivo *out)
{
	size_t hit = separate_spared(differences, count);
	struct sums blocks[RLS_BLOCKS_MAX] = {0}, whole = {0};
	struct rls_delta_in_vivo result = {0};
	struct interval interval;

	for (size_t i = 0; i < count; i++) {
		overhead_factor_add(&blocks[differences[i].block], &differences[i]);
		overhead_factor_add(&whole, &differences[i]);
	}
	result.blocks = combine(blocks, RLS_BLOCKS_MIN, &interval);
	if (result.blocks < RLS_BLOCKS_MIN || !(whole.plain_ns > 0))
		return -ENODATA;
	result.factor = interval.middle;
	result.error = interval.half;
	result.deviation = deviation(interval.half, result.blocks);
	result.spread = find_spread(differences, hit, result.factor, &result.labels);
	if (result.factor > 0)
		conclude_parts(differences, hit, parts, part_count, &result);
	result.hit_ns = result.factor * whole.cost_ns / whole.hits;
	result.inflation = 1 + whole.delta_ns / whole.plain_ns;
	result.segments = (size_t)whole.count;
	*out = result;
	return 0;
}
