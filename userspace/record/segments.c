#include "userspace/record/segments.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cleanup.h"
#include "analysis/grow.h"
#include "analysis/student.h"

/* Stretches that are compared with each other; at least two of each kind. */
#define STRETCHES_A_BLOCK 4
#define BLOCKS_MIN 5
#define BLOCKS_MAX 64
#define BLOCKS_OF_SPREAD 3
#define IN_GROUP_MIN 4
/* Labels whose own factor is known better than that tell equally well. */
#define CLEAR_NOISE 0.1
/* Of the factor: the spread where one label alone cannot tell of any. Eight training jobs had
 * 0.005 to 0.28, half of them more than 0.08. */
#define UNKNOWN_SPREAD 0.1
/* What is interrupted takes longer, never shorter. */
#define TRIMMED_TOP 0.1
/* Of the blocks, on either side. */
#define TRIMMED_BLOCKS 0.2
#define CONFIDENCE 0.95

struct rls_segment {
	uint64_t start_ns;
	uint32_t wall_ns, off_cpu_ns;
	uint32_t cost_ns, hits;
	uint32_t label;
};

struct rls_stretch {
	uint64_t from_ns, to_ns;
	bool probed;
};

/* What has happened on a thread since its last mark. */
struct thread {
	struct thread *next;
	uint64_t mark_ns;       /* 0: none, or something since was lost */
	uint64_t off_cpu_ns, cost_ns, hits;
	uint32_t site, sequence;
	uint16_t depth;
};

void rls_segments_clear(struct rls_segments *segments)
{
	for (size_t i = 0; i < segments->threads.capacity; i++)
		free(segments->threads.entries[i].value);
	rls_index_map_free(&segments->threads);
	free(segments->items);
	free(segments->stretches);
	*segments = (struct rls_segments){ 0 };
}

/* ---- taking records in ---- */

static struct thread *find_thread(struct rls_segments *segments, uint32_t tid)
{
	struct thread *thread = rls_index_map_get(&segments->threads, tid, 0);

	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (thread && rls_index_map_put(&segments->threads, tid, 0, thread)) {
		free(thread);
		return NULL;
	}
	return thread;
}

static int put(struct rls_segments *segments, const struct thread *thread, uint64_t end_ns,
	       uint32_t site)
{
	uint64_t wall_ns = end_ns - thread->mark_ns;

	if (wall_ns > UINT32_MAX || thread->off_cpu_ns > wall_ns || thread->cost_ns > UINT32_MAX ||
	    thread->hits > UINT32_MAX || segments->count >= RLS_SEGMENTS_MAX)
		return 0;
	if (rls_grow(&segments->items, &segments->room, segments->count))
		return -ENOMEM;
	segments->items[segments->count++] = (struct rls_segment){
		.start_ns = thread->mark_ns,
		.wall_ns = (uint32_t)wall_ns,
		.off_cpu_ns = (uint32_t)thread->off_cpu_ns,
		.cost_ns = (uint32_t)thread->cost_ns,
		.hits = (uint32_t)thread->hits,
		.label = thread->site << 16 | site,
	};
	return 0;
}

int rls_segments_add(struct rls_segments *segments, const struct rls_wire_category *record,
		     bool is_mark)
{
	struct thread *thread = find_thread(segments, record->header.tid);
	uint64_t time_ns = record->header.time_ns;
	bool entry;
	int r = 0;

	if (!thread)
		return -ENOMEM;
	if (record->header.sequence != thread->sequence + 1)
		thread->mark_ns = 0;
	entry = record->depth > thread->depth;
	thread->sequence = record->header.sequence;
	thread->depth = record->depth;
	thread->off_cpu_ns += record->pile.off_cpu_ns;
	thread->cost_ns += record->pile.cost_ns;
	thread->hits += record->pile.hits;
	if (!is_mark || !entry || record->site >= RLS_MARK_SITES)
		return 0;
	if (thread->mark_ns && time_ns > thread->mark_ns)
		r = put(segments, thread, time_ns, record->site);
	thread->mark_ns = time_ns;
	thread->site = record->site;
	thread->off_cpu_ns = thread->cost_ns = thread->hits = 0;
	return r;
}

int rls_segments_stretch(struct rls_segments *segments, uint64_t from_ns, uint64_t to_ns,
			 bool probed)
{
	if (rls_grow(&segments->stretches, &segments->stretch_room, segments->stretch_count))
		return -ENOMEM;
	segments->stretches[segments->stretch_count++] =
		(struct rls_stretch){ from_ns, to_ns, probed };
	return 0;
}

/* ---- comparing ---- */

/* A segment that lies within one stretch. */
struct sample {
	uint32_t block, label;
	bool probed;
	double ran_ns, cost_ns, hits;
};

struct mean {
	double ran_ns, cost_ns, hits;
	size_t count;
};

/* What the segments of one label in one block took longer with probes. */
struct difference {
	uint32_t block, label;
	double count;                   /* of segments, both kinds */
	double plain_ns;                /* mean without probes */
	double delta_ns, cost_ns, hits; /* means: with, less without */
};

static size_t count_blocks(const struct rls_segments *segments)
{
	size_t blocks = segments->stretch_count / STRETCHES_A_BLOCK;

	return blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX;
}

/* The index of the last stretch that begins no later; the count when there is none. */
static size_t find_stretch(const struct rls_segments *segments, uint64_t time_ns)
{
	size_t low = 0, high = segments->stretch_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (segments->stretches[middle].from_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : segments->stretch_count;
}

static size_t take_samples(const struct rls_segments *segments, size_t blocks, struct sample *out)
{
	size_t count = 0;

	for (size_t i = 0; i < segments->count; i++) {
		const struct rls_segment *segment = &segments->items[i];
		size_t k = find_stretch(segments, segment->start_ns);
		const struct rls_stretch *stretch = &segments->stretches[k];

		if (k == segments->stretch_count ||
		    segment->start_ns + segment->wall_ns > stretch->to_ns)
			continue;
		out[count++] = (struct sample){
			.block = (uint32_t)(k * blocks / segments->stretch_count),
			.label = segment->label,
			.probed = stretch->probed,
			.ran_ns = (double)segment->wall_ns - segment->off_cpu_ns,
			.cost_ns = segment->cost_ns,
			.hits = segment->hits,
		};
	}
	return count;
}

static int compare_numbers(double a, double b)
{
	return (a > b) - (a < b);
}

static int compare_samples(const void *left, const void *right)
{
	const struct sample *a = left, *b = right;

	if (a->block != b->block)
		return compare_numbers(a->block, b->block);
	if (a->label != b->label)
		return compare_numbers(a->label, b->label);
	if (a->probed != b->probed)
		return compare_numbers(a->probed, b->probed);
	return compare_numbers(a->ran_ns, b->ran_ns);
}

/* Of samples in order; the longest are left out. */
static struct mean trimmed_mean(const struct sample *samples, size_t count)
{
	size_t kept = count - (size_t)(TRIMMED_TOP * (double)count);
	struct mean mean = { .count = count };

	for (size_t i = 0; i < kept; i++) {
		mean.ran_ns += samples[i].ran_ns / (double)kept;
		mean.cost_ns += samples[i].cost_ns / (double)kept;
		mean.hits += samples[i].hits / (double)kept;
	}
	return mean;
}

static bool same_group(const struct sample *a, const struct sample *b)
{
	return a->block == b->block && a->label == b->label;
}

/* samples in order. Returns how many differences there are. */
static size_t take_differences(const struct sample *samples, size_t count, struct difference *out)
{
	size_t differences = 0, end;

	for (size_t i = 0; i < count; i = end) {
		size_t plain = 0;
		struct mean without, with;

		for (end = i; end < count && same_group(&samples[i], &samples[end]); end++)
			plain += !samples[end].probed;
		if (plain < IN_GROUP_MIN || end - i - plain < IN_GROUP_MIN)
			continue;
		without = trimmed_mean(samples + i, plain);
		with = trimmed_mean(samples + i + plain, end - i - plain);
		out[differences++] = (struct difference){
			.block = samples[i].block,
			.label = samples[i].label,
			.count = (double)(end - i),
			.plain_ns = without.ran_ns,
			.delta_ns = with.ran_ns - without.ran_ns,
			.cost_ns = with.cost_ns - without.cost_ns,
			.hits = with.hits - without.hits,
		};
	}
	return differences;
}

/* ---- concluding ---- */

struct sums {
	double count, delta_ns, cost_ns, hits, plain_ns;
};

static void add(struct sums *sums, const struct difference *difference)
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

static int by_label(const void *left, const void *right)
{
	const struct difference *a = left, *b = right;

	if (a->label != b->label)
		return compare_numbers(a->label, b->label);
	return compare_numbers(a->block, b->block);
}

/* How far the labels' own factors are from the whole's beyond what their noise explains: those
 * of much cost and little noise tell most. Sorts by label. */
static double find_spread(struct difference *differences, size_t count, double factor,
			  size_t *labels)
{
	double weighted = 0, weights = 0;
	size_t telling = 0, end;

	qsort(differences, count, sizeof(*differences), by_label);
	*labels = 0;
	for (size_t i = 0; i < count; i = end) {
		struct sums blocks[BLOCKS_MAX] = { 0 }, whole = { 0 };
		size_t used = 0;
		double noise, off, weight;

		for (end = i; end < count && differences[end].label == differences[i].label; end++) {
			add(&blocks[used++], &differences[end]);
			add(&whole, &differences[end]);
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
		telling++;
	}
	if (telling < 2)
		return UNKNOWN_SPREAD * factor;
	return weights > 0 && weighted > 0 ? 2 * sqrt(weighted / weights) : 0;
}

struct ratio {
	double value, weight;
};

static int by_value(const void *left, const void *right)
{
	return compare_numbers(((const struct ratio *)left)->value,
			       ((const struct ratio *)right)->value);
}

static double clip(const struct ratio *ratios, size_t i, size_t low, size_t high)
{
	return ratios[i < low ? low : i > high ? high : i].value;
}

/* The blocks' ratios without the farthest of either side, which somebody else's bursts have
 * spoilt: their trimmed mean, and its interval by Yuen's winsorized variance. */
static void combine(const struct sums blocks[BLOCKS_MAX], struct rls_delta_in_vivo *out)
{
	struct ratio ratios[BLOCKS_MAX];
	double weights = 0, sum = 0, middle = 0, squares = 0, n;
	size_t count = 0, cut, i;

	for (i = 0; i < BLOCKS_MAX; i++) {
		if (blocks[i].cost_ns > 0)
			ratios[count++] = (struct ratio){ blocks[i].delta_ns / blocks[i].cost_ns,
							  blocks[i].cost_ns };
	}
	out->blocks = count;
	if (count < BLOCKS_MIN)
		return;
	qsort(ratios, count, sizeof(*ratios), by_value);
	n = (double)count;
	cut = (size_t)(TRIMMED_BLOCKS * n);
	for (i = cut; i < count - cut; i++) {
		sum += ratios[i].weight * ratios[i].value;
		weights += ratios[i].weight;
	}
	out->factor = sum / weights;
	for (i = 0; i < count; i++)
		middle += clip(ratios, i, cut, count - cut - 1) / n;
	for (i = 0; i < count; i++) {
		double off = clip(ratios, i, cut, count - cut - 1) - middle;

		squares += off * off;
	}
	out->error = rls_student_quantile(CONFIDENCE, n - 2 * (double)cut - 1) *
		     sqrt(squares / (n - 1) / n) / (1 - 2 * (double)cut / n);
	out->deviation = out->error * sqrt(1 + n);
}

static int conclude(struct difference *differences, size_t count, struct rls_delta_in_vivo *out)
{
	struct sums blocks[BLOCKS_MAX] = { 0 }, whole = { 0 };
	struct rls_delta_in_vivo result = { 0 };

	for (size_t i = 0; i < count; i++) {
		add(&blocks[differences[i].block], &differences[i]);
		add(&whole, &differences[i]);
	}
	combine(blocks, &result);
	if (result.blocks < BLOCKS_MIN)
		return -ENODATA;
	result.spread = find_spread(differences, count, result.factor, &result.labels);
	result.hit_ns = result.factor * whole.cost_ns / whole.hits;
	result.inflation = 1 + whole.delta_ns / whole.plain_ns;
	result.segments = (size_t)whole.count;
	*out = result;
	return 0;
}

int rls_segments_conclude(const struct rls_segments *segments, struct rls_delta_in_vivo *out)
{
	_cleanup_free_ struct sample *samples = calloc(segments->count + 1, sizeof(*samples));
	_cleanup_free_ struct difference *differences =
		calloc(segments->count / (2 * IN_GROUP_MIN) + 1, sizeof(*differences));
	size_t blocks = count_blocks(segments), count;

	if (!samples || !differences)
		return -ENOMEM;
	if (blocks < BLOCKS_MIN)
		return -ENODATA;
	count = take_samples(segments, blocks, samples);
	qsort(samples, count, sizeof(*samples), compare_samples);
	count = take_differences(samples, count, differences);
	return conclude(differences, count, out);
}
