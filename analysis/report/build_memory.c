/* From memory totals to rows: lines that allocate, processes' memory, and its course. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "analysis/event/bounded.h"
#include "analysis/memory/leak.h"
#include "analysis/memory/reduce_curve.h"
#include "analysis/memory/trend.h"
#include "analysis/report/builder.h"

/* Of a process and device. */
#define TIMELINE_POINTS_MAX 100

/* Growth that is less certain than this is not extrapolated. */
#define GROWS_SHARE 0.95

static int32_t device_of(bool gpu, uint32_t device)
{
	return gpu && device <= INT32_MAX ? (int32_t)device : -1;
}

/* A process may end so long after its last block without that lines are taken to have stopped: it saves
 * its results and is cleaned up. */
#define PAUSE_NS 2000000000ull
#define PAUSE_PART 8

/* Until when curves of lines go. */
static uint64_t end_of_lines(const struct rls_process *process)
{
	const struct rls_process_memory *memory = &process->memory;
	uint64_t pause_ns = process->end_ns - memory->active_ns;

	if (!memory->active_ns || memory->active_ns > process->end_ns)
		return process->end_ns;
	if (pause_ns <= PAUSE_NS || pause_ns <= (process->end_ns - memory->start_ns) / PAUSE_PART)
		return memory->active_ns;
	return process->end_ns;
}

/* --- lines -------------------------------------------------------------------------- */

static void fill_blocks(struct rls_memory_line_row *row, const struct rls_memory_place *place,
			uint64_t end_ns)
{
	row->frees = place->sums.frees;
	row->freed_bytes = place->sums.freed_bytes;
	row->growth_bytes = row->live_bytes = place->live_bytes;
	row->peak_bytes = place->peak_bytes;
	row->bytes_at_process_peak = rls_memory_place_at_peak(place);
	row->temporary_bytes = place->sums.temporary_bytes;
	row->curve = place->curve;
	rls_live_curve_finish(&row->curve, end_ns);
	if (place->ages.count) {
		rls_memory_place_lifetimes(place, &row->lifetimes);
	} else {
		row->ageless_allocs = place->sums.allocs;
		row->ageless_frees = place->sums.frees;
	}
}

static void add_line(struct rls_builder *b, const struct rls_process *process,
		     const struct rls_memory_place *place)
{
	double error = (double)place->sums.error_bytes;
	struct rls_memory_line_row *row;

	/* All that malloc gave there was reported by others. */
	if (place->of.source == RLS_MEMORY_MALLOC && !place->sums.allocs)
		return;
	row = rls_build_row(b, RLS_TABLE_MEMORY_LINES);
	if (!row)
		return;
	row->pid = process->pid;
	row->file = rls_build_string(b, place->of.file);
	row->line = place->of.line;
	row->function = rls_build_string(b, place->of.function);
	row->phase = rls_build_string(b, place->of.phase);
	row->operation = rls_build_string(b, place->of.operation);
	row->source = place->of.source;
	row->device = device_of(place->of.source == RLS_MEMORY_GPU, place->of.device);
	row->allocs = place->sums.allocs;
	row->alloc_bytes = place->sums.alloc_bytes;
	row->variance_bytes2 = error * error;
	row->method = place->method;
	fill_blocks(row, place, end_of_lines(process));
}

/* --- the process -------------------------------------------------------------------- */

static void set_limit(struct rls_memory_row *row, const struct rls_used_memory *use,
		      const struct rls_live_curve *curve)
{
	uint32_t half = curve->count / 2;
	struct rls_trend trend = rls_trend_of(curve->least + curve->count - half, half);

	row->limit_bytes = use->limit_bytes ? use->limit_bytes : RLS_COUNT_UNKNOWN;
	row->limit_in_s = NAN;
	if (use->limit_bytes && rls_normal_share(trend.z) >= GROWS_SHARE)
		row->limit_in_s = rls_limit_in_s(use->used_bytes ? use->used_bytes : use->end_bytes,
						 use->limit_bytes, row->growth_bytes_per_s);
}

static void add_use(struct rls_builder *b, const struct rls_process *process,
		    const struct rls_used_memory *use)
{
	struct rls_memory_row *row = rls_build_row(b, RLS_TABLE_MEMORY);
	struct rls_live_curve curve = use->curve;

	if (!row)
		return;
	rls_live_curve_finish(&curve, process->end_ns);
	row->pid = process->pid;
	row->device = device_of(use->gpu, use->device);
	row->rss_start_bytes = use->start_bytes;
	row->rss_end_bytes = use->end_bytes;
	row->rss_peak_bytes = use->peak_bytes;
	row->peak_time_ns = use->peak_ns;
	row->tracked_growth_bytes = use->live_bytes;
	row->untracked_bytes = (int64_t)use->end_bytes - (int64_t)use->start_bytes;
	/* The sum of lines may be the largest number there is; the difference still is one. */
	if (__builtin_sub_overflow(row->untracked_bytes, (int64_t)use->live_bytes,
				   &row->untracked_bytes))
		row->untracked_bytes = INT64_MIN;
	row->growth_bytes_per_s = rls_growth_bytes_per_s(&curve);
	row->out_of_memory = use->out_of_memory;
	set_limit(row, use, &curve);
}

static void add_timeline(struct rls_builder *b, const struct rls_process *process,
			 const struct rls_used_memory *use)
{
	size_t count = use->points.count;
	_cleanup_free_ struct rls_curve_point *points = calloc(count + 1, sizeof(*points));
	_cleanup_free_ bool *kept = calloc(count + 1, sizeof(*kept));

	if (!b->err && (!points || !kept))
		b->err = -ENOMEM;
	for (size_t i = 0; !b->err && i < count; i++)
		points[i] = use->points.items[i].point;
	if (!b->err)
		b->err = rls_reduce_curve(points, count, TIMELINE_POINTS_MAX, kept);
	for (size_t i = 0; !b->err && i < count; i++) {
		struct rls_memory_timeline_row *row =
			kept[i] ? rls_build_row(b, RLS_TABLE_MEMORY_TIMELINE) : NULL;

		if (!row)
			continue;
		row->pid = process->pid;
		row->device = device_of(use->gpu, use->device);
		row->time_ns = points[i].time_ns;
		row->rss_bytes = points[i].bytes;
		row->live_bytes =
			use->partial ? RLS_COUNT_UNKNOWN : use->points.items[i].live_bytes;
	}
}

/* --- copies ------------------------------------------------------------------------- */

static void note_copies(struct rls_builder *b, struct rls_copies *all,
			const struct rls_memory_line *of, enum rls_copy_kind kind, uint64_t copies,
			uint64_t bytes)
{
	int err = b->err || !copies ? 0 : rls_copies_add(all, of, kind, copies, bytes);

	/* Each of the two that are added up is bounded. */
	if (err && err != -ENOSPC)
		b->err = err;
}

/* What the GPU copied has an operation, but no line. */
static void note_gpu_copies(struct rls_builder *b, const struct rls_process *process,
			    struct rls_copies *all)
{
	for (const struct rls_gpu_copied *c = process->gpu.copied; c; c = c->next) {
		const struct rls_memory_line of = {.phase = c->phase, .operation = c->operation};

		for (int kind = 0; kind < RLS_COPY_KIND_MAX; kind++)
			note_copies(b, all, &of, kind, c->copies[kind], c->bytes[kind]);
	}
}

static void add_copy(struct rls_builder *b, const struct rls_process *process,
		     const struct rls_copy_place *place)
{
	double life_s = (double)(process->end_ns - process->start_ns) / 1e9;
	struct rls_copy_row *row = rls_build_row(b, RLS_TABLE_COPIES);

	if (!row)
		return;
	row->pid = process->pid;
	row->file = rls_build_string(b, place->of.file);
	row->line = place->of.line;
	row->function = rls_build_string(b, place->of.function);
	row->phase = rls_build_string(b, place->of.phase);
	row->operation = rls_build_string(b, place->of.operation);
	row->kind = place->kind;
	row->copies = place->copies;
	row->bytes = place->bytes;
	row->bytes_per_s = life_s > 0 ? (double)place->bytes / life_s : 0;
}

static void add_copies(struct rls_builder *b, const struct rls_process *process)
{
	struct rls_copies all = {0};

	for (const struct rls_copy_place *c = process->memory.copies.places; c; c = c->next)
		note_copies(b, &all, &c->of, c->kind, c->copies, c->bytes);
	note_gpu_copies(b, process, &all);
	for (const struct rls_copy_place *c = all.places; c && !b->err; c = c->next)
		add_copy(b, process, c);
	rls_copies_free(&all);
}

void rls_build_memory(struct rls_builder *b, const struct rls_process *process)
{
	const struct rls_process_memory *memory = &process->memory;

	for (const struct rls_memory_place *p = memory->places; p && !b->err; p = p->next)
		add_line(b, process, p);
	for (const struct rls_used_memory *u = memory->uses; u && !b->err; u = u->next) {
		if (!u->known)
			continue;
		add_use(b, process, u);
		add_timeline(b, process, u);
	}
	add_copies(b, process);
}
