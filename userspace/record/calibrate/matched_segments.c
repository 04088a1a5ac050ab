#include "userspace/record/calibrate/matched_segments.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/base/search.h"
#include "userspace/record/calibrate/off_cpu_queue.h"
#include "userspace/record/calibrate/overhead_factor.h"
#include "userspace/record/cost/hit_cost_model.h"

/* Stretches that are compared with each other; at least two of each kind. */
#define STRETCHES_A_BLOCK 4
#define IN_GROUP_MIN 4
/* What comes more seldom than that in a block is compared over longer times. */
#define IN_GROUP_WANTED 6
/* What is interrupted takes longer, never shorter. */
#define TRIMMED_TOP 0.05

/* Waiting that is not reported by itself may have been on either side of a change. Up to so much
 * of the time is left in: interruptions by other threads, which are trimmed. */
#define WAITED_SHARE 0.03

/* The part that is several operations, or one too many. */
#define MIXED_PART (RLS_PARTS_MAX - 1)

struct rls_segment {
	uint64_t start_ns;
	uint32_t wall_ns, off_cpu_ns;
	uint32_t cost_ns, hits;
	uint64_t label;
};

struct rls_stretch {
	uint64_t from_ns, to_ns;
	bool probed;
};

/* What has happened on a thread since a segment's beginning. */
struct span {
	uint64_t begin_ns; /* 0: none, or something since was lost */
	size_t part, from; /* its operation, and the one before it */
	uint64_t off_cpu_ns, cost_ns, hits;
};

struct thread {
	struct thread *next;
	uint64_t record_ns; /* its last one */
	uint32_t range_hits; /* since its last record: the next will tell of them again */
	uint32_t earlier_hits; /* those of them that came before the last turn */
	uint32_t sequence;
	size_t part;
	struct span piece; /* since its last change of operation */
	struct rls_hit_cost_model model;
	struct rls_edge_queue edges;
	struct rls_off_cpu_queue periods;
};

void rls_matched_segments_clear(struct rls_matched_segments *segments)
{
	for (size_t i = 0; i < segments->threads.capacity; i++) {
		struct thread *thread = segments->threads.entries[i].value;

		if (thread) {
			rls_edge_queue_clear(&thread->edges);
			rls_off_cpu_queue_clear(&thread->periods);
		}
		free(thread);
	}
	rls_index_map_free(&segments->threads);
	free(segments->items);
	free(segments->stretches);
	*segments = (struct rls_matched_segments){0};
}

/* ---- taking records in ---- */

static struct thread *find_thread(struct rls_matched_segments *segments, uint32_t tid)
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

/* The part of the work that an operation is. */
static size_t part_of(struct rls_matched_segments *segments, rls_string_id operation)
{
	if (!segments->part_count) {
		segments->part_count = 1; /* the first: outside any */
		segments->parts[MIXED_PART].mixed = true;
	}
	for (size_t i = 0; i < segments->part_count; i++) {
		if (segments->parts[i].operation == operation)
			return i;
	}
	if (segments->part_count == MIXED_PART)
		return MIXED_PART;
	segments->parts[segments->part_count].operation = operation;
	return segments->part_count++;
}

static uint64_t label_of(size_t part, size_t from, size_t to)
{
	return (uint64_t)part << 16 | from << 8 | to;
}

static size_t label_part(uint64_t label)
{
	return label >> 16;
}

/* What the thread has done in the span, up to end_ns. */
static int matched_segments_add(struct rls_matched_segments *segments, const struct span *span,
				uint64_t end_ns, size_t to)
{
	uint64_t wall_ns = end_ns - span->begin_ns;

	if (!span->begin_ns || end_ns <= span->begin_ns)
		return 0;
	if (wall_ns > UINT32_MAX || span->off_cpu_ns > wall_ns || span->cost_ns > UINT32_MAX ||
	    span->hits > UINT32_MAX || segments->count >= RLS_SEGMENTS_MAX)
		return 0;
	if (rls_grow(&segments->items, &segments->room, segments->count))
		return -ENOMEM;
	segments->items[segments->count++] = (struct rls_segment){
		.start_ns = span->begin_ns,
		.wall_ns = (uint32_t)wall_ns,
		.off_cpu_ns = (uint32_t)span->off_cpu_ns,
		.cost_ns = (uint32_t)span->cost_ns,
		.hits = (uint32_t)span->hits,
		.label = label_of(span->part, span->from, to),
	};
	return 0;
}

/* Takes the edges that come before a record; *any: there are some. Waiting beyond the reported
 * periods may have been on either side of the edges, and so may lost records: then nothing about
 * the segment is certain. */
static int matched_segments_switch(struct rls_matched_segments *segments, struct thread *thread,
				   uint64_t until_ns, bool certain, bool *any)
{
	struct rls_queued_edge edge;
	int r = 0;

	*any = false;
	while (!r && rls_edge_queue_take(&thread->edges, until_ns, &edge)) {
		size_t part = part_of(segments, edge.now);

		*any = true;
		thread->earlier_hits = thread->range_hits;
		thread->range_hits += edge.hit;
		thread->piece.off_cpu_ns += rls_off_cpu_queue_take(&thread->periods, edge.time_ns);
		if (certain && !edge.gap)
			r = matched_segments_add(segments, &thread->piece, edge.time_ns, part);
		thread->piece =
			(struct span){.begin_ns = edge.time_ns, .part = part, .from = thread->part};
		thread->part = part;
	}
	if (*any && !certain)
		thread->piece.begin_ns = 0;
	return r;
}

/* The waits of the thread since its last record are reported, but for so little that it hardly
 * matters. */
static bool waits_are_reported(const struct thread *thread, const struct rls_wire_category *record)
{
	double ns = (double)record->header.time_ns - (double)thread->record_ns;
	double reported_ns =
		(double)rls_off_cpu_queue_sum(&thread->periods, record->header.time_ns);

	return fabs((double)record->hit_totals.off_cpu_ns - reported_ns) <= WAITED_SHARE * ns;
}

/* Hits since the last record, and what they cost; where ranges begin and end amid nothing else, most of those
 * that one tells of came before the last turn. */
static void take_hit_totals(struct thread *thread, const struct rls_wire_hit_totals *hit_totals,
			    bool turned)
{
	uint32_t earlier =
		thread->earlier_hits < hit_totals->hits ? thread->earlier_hits : hit_totals->hits;
	uint64_t away_ns = rls_off_cpu_queue_take(&thread->periods, thread->record_ns);

	thread->piece.hits += hit_totals->hits - earlier;
	thread->piece.cost_ns += hit_totals->cost_ns;
	if (earlier)
		thread->piece.cost_ns -= (uint64_t)hit_totals->cost_ns * earlier / hit_totals->hits;
	thread->piece.off_cpu_ns += turned ? away_ns : hit_totals->off_cpu_ns;
	thread->range_hits = thread->earlier_hits = 0;
}

int rls_matched_segments_add(struct rls_matched_segments *segments,
			     const struct rls_wire_category *record)
{
	struct thread *thread = find_thread(segments, record->header.tid);
	uint64_t time_ns = record->header.time_ns;
	struct rls_wire_hit_totals hit_totals = record->hit_totals;
	bool lost, turned;
	int r;

	if (!thread)
		return -ENOMEM;
	lost = record->header.sequence != thread->sequence + 1;
	if (lost)
		thread->piece.begin_ns = 0;
	r = matched_segments_switch(segments, thread, time_ns,
				    !lost && waits_are_reported(thread, record), &turned);
	hit_totals.cost_ns =
		(uint32_t)fmin(round(rls_hit_cost_model_cost(&thread->model, segments->excess_ns,
							     time_ns, &hit_totals)),
			       UINT32_MAX);
	segments->parts[thread->part].cost_ns += hit_totals.cost_ns;
	thread->sequence = record->header.sequence;
	thread->record_ns = time_ns;
	take_hit_totals(thread, &hit_totals, turned);
	return r;
}

int rls_matched_segments_turned(struct rls_matched_segments *segments, uint32_t tid,
				const struct rls_queued_edge *edge)
{
	struct thread *thread = find_thread(segments, tid);

	return thread ? rls_edge_queue_add(&thread->edges, edge) : -ENOMEM;
}

int rls_matched_segments_away(struct rls_matched_segments *segments,
			      const struct rls_wire_off_cpu *period)
{
	struct thread *thread = find_thread(segments, period->header.tid);

	return thread ? rls_off_cpu_queue_add(&thread->periods, period->header.time_ns,
					      period->away_ns)
		      : -ENOMEM;
}

int rls_matched_segments_stretch(struct rls_matched_segments *segments, uint64_t from_ns,
				 uint64_t to_ns, bool probed)
{
	if (rls_grow(&segments->stretches, &segments->stretch_room, segments->stretch_count))
		return -ENOMEM;
	segments->stretches[segments->stretch_count++] =
		(struct rls_stretch){from_ns, to_ns, probed};
	return 0;
}

/* ---- comparing ---- */

/* A segment that lies within one stretch. */
struct sample {
	uint64_t label;
	uint32_t stretch, block;
	bool probed;
	double ran_ns, cost_ns, hits;
};

struct mean {
	double ran_ns, cost_ns, hits;
};

static size_t count_blocks(const struct rls_matched_segments *segments)
{
	size_t blocks = segments->stretch_count / STRETCHES_A_BLOCK;

	return blocks < RLS_BLOCKS_MAX ? blocks : RLS_BLOCKS_MAX;
}

/* The index of the last stretch that begins no later; the count when there is none. */
static size_t find_stretch(const struct rls_matched_segments *segments, uint64_t time_ns)
{
	size_t low = rls_first_not(segments->stretch_count, i,
				   segments->stretches[i].from_ns <= time_ns);

	return low ? low - 1 : segments->stretch_count;
}

static size_t take_samples(const struct rls_matched_segments *segments, struct sample *out)
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
			.label = segment->label,
			.stretch = (uint32_t)k,
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

static int by_label(const void *left, const void *right)
{
	const struct sample *a = left, *b = right;

	return (a->label > b->label) - (a->label < b->label);
}

/* Gives the samples of one label their blocks. Where they are few, neighbouring blocks are one for
 * them, that in the middle. */
static void give_blocks(struct sample *samples, size_t count, size_t stretches, size_t blocks)
{
	size_t kinds[2] = {0}, rounds;

	for (size_t i = 0; i < count; i++)
		kinds[samples[i].probed]++;
	rounds = (kinds[0] < kinds[1] ? kinds[0] : kinds[1]) / IN_GROUP_WANTED;
	if (rounds > blocks)
		rounds = blocks;
	if (!rounds)
		rounds = 1;
	for (size_t i = 0; i < count; i++) {
		size_t round = samples[i].stretch * rounds / stretches;

		samples[i].block = (uint32_t)((2 * round + 1) * blocks / (2 * rounds));
	}
}

static void give_all_blocks(struct sample *samples, size_t count, size_t stretches, size_t blocks)
{
	size_t end;

	qsort(samples, count, sizeof(*samples), by_label);
	for (size_t i = 0; i < count; i = end) {
		for (end = i; end < count && samples[end].label == samples[i].label; end++)
			;
		give_blocks(samples + i, end - i, stretches, blocks);
	}
}

static int compare_samples(const void *left, const void *right)
{
	const struct sample *a = left, *b = right;

	if (a->block != b->block)
		return compare_numbers(a->block, b->block);
	if (a->label != b->label)
		return by_label(left, right);
	if (a->probed != b->probed)
		return compare_numbers(a->probed, b->probed);
	return compare_numbers(a->ran_ns, b->ran_ns);
}

/* Of samples in order; the longest are left out. */
static struct mean trimmed_mean(const struct sample *samples, size_t count)
{
	size_t kept = count - (size_t)(TRIMMED_TOP * (double)count);
	struct mean mean = {0};

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

/* Of samples in order, all of one group, the first of them without probes: but for ranges' hits, which are on both
 * sides. */
static struct rls_overhead_factor compare_group(const struct sample *samples, size_t plain,
						size_t count)
{
	struct mean without = trimmed_mean(samples, plain);
	struct mean with = trimmed_mean(samples + plain, count - plain);

	return (struct rls_overhead_factor){
		.block = samples->block,
		.label = samples->label,
		.part = (uint32_t)label_part(samples->label),
		.count = (double)count,
		.plain_ns = without.ran_ns,
		.delta_ns = with.ran_ns - without.ran_ns,
		.cost_ns = fmax(with.cost_ns - without.cost_ns, 0),
		.hits = fmax(with.hits - without.hits, 0),
	};
}

/* samples in order. Returns how many differences there are. */
static size_t take_differences(const struct sample *samples, size_t count,
			       struct rls_overhead_factor *out)
{
	size_t differences = 0, end;

	for (size_t i = 0; i < count; i = end) {
		size_t plain = 0;

		for (end = i; end < count && same_group(&samples[i], &samples[end]); end++)
			plain += !samples[end].probed;
		if (plain < IN_GROUP_MIN || end - i - plain < IN_GROUP_MIN)
			continue;
		out[differences++] = compare_group(samples + i, plain, end - i);
	}
	return differences;
}

int rls_matched_segments_conclude(const struct rls_matched_segments *segments,
				  struct rls_delta_in_vivo *out)
{
	_cleanup_free_ struct sample *samples = calloc(segments->count + 1, sizeof(*samples));
	_cleanup_free_ struct rls_overhead_factor *differences =
		calloc(segments->count / (2 * IN_GROUP_MIN) + 1, sizeof(*differences));
	size_t blocks = count_blocks(segments), count;

	if (!samples || !differences)
		return -ENOMEM;
	if (blocks < RLS_BLOCKS_MIN)
		return -ENODATA;
	count = take_samples(segments, samples);
	give_all_blocks(samples, count, segments->stretch_count, blocks);
	qsort(samples, count, sizeof(*samples), compare_samples);
	count = take_differences(samples, count, differences);
	return rls_overhead_factors_conclude(differences, count, segments->parts, RLS_PARTS_MAX,
					     out);
}
