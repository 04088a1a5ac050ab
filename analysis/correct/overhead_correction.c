#include "analysis/correct/overhead_correction.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SPANS_MIN 16

void rls_span_window_free(struct rls_span_window *window)
{
	free(window->spans);
	*window = (struct rls_span_window){0};
}

void rls_span_window_reset(struct rls_span_window *window, uint64_t start_ns)
{
	window->count = 0;
	window->hits = (struct rls_mark){start_ns, start_ns};
	window->off_cpu = (struct rls_mark){start_ns, start_ns};
	window->waited = (struct rls_noted_wait){0};
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void rls_cell_add(struct rls_cell *into, const struct rls_cell *cell)
{
	for (int part = 0; part < RLS_PART_MAX; part++) {
		into->wall_ns[part] += cell->wall_ns[part];
		into->off_cpu_ns[part] += cell->off_cpu_ns[part];
		into->sampled_ns[part] += cell->sampled_ns[part];
		into->sampled_error_ns[part] += cell->sampled_error_ns[part];
		into->divided_ns[part] += cell->divided_ns[part];
		into->divided_error_ns[part] += cell->divided_error_ns[part];
	}
	into->roleless_ran_ns += cell->roleless_ran_ns;
	into->subtracted_ns += cell->subtracted_ns;
	into->induced_wait_ns += cell->induced_wait_ns;
	into->under_gpu_ns += cell->under_gpu_ns;
}

uint64_t rls_cell_induced_wait_ns(const struct rls_cell *cell)
{
	uint64_t left_ns = cell->wall_ns[RLS_PART_CPU] - cell->subtracted_ns;

	return min_u64(cell->induced_wait_ns, min_u64(left_ns, cell->off_cpu_ns[RLS_PART_CPU]));
}

/* Two spans may become one when no later report can tell them apart but by their order. */
static bool can_merge(const struct rls_span_window *window, const struct rls_span *a,
		      const struct rls_span *b)
{
	return a->cell == b->cell && a->also == b->also && a->layer == b->layer &&
	       (a->start_ns < window->hits.latest_ns) == (b->start_ns < window->hits.latest_ns) &&
	       (a->start_ns < window->off_cpu.latest_ns) ==
		       (b->start_ns < window->off_cpu.latest_ns) &&
	       (a->start_ns < window->waited.until_ns) == (b->start_ns < window->waited.until_ns);
}

static void overhead_correction_merge(struct rls_span *into, const struct rls_span *span)
{
	into->end_ns = span->end_ns;
	into->unsubtracted_ns += span->unsubtracted_ns;
	into->untaken_gpu_ns += span->untaken_gpu_ns;
	for (int part = 0; part < RLS_PART_MAX; part++)
		into->running_ns[part] += span->running_ns[part];
}

/* Merges the older half by cell. Where that wins little (hundreds of rows since the last
 * report) the oldest spans are let go: they keep their time, but no cost can reach them. */
static void compact(struct rls_span_window *window)
{
	size_t half = window->count / 2;
	size_t kept = 0, dropped;

	for (size_t i = 0; i < half; i++) {
		const struct rls_span span = window->spans[i];
		size_t k = 0;

		while (k < kept && !can_merge(window, &window->spans[k], &span))
			k++;
		if (k < kept)
			overhead_correction_merge(&window->spans[k], &span);
		else
			window->spans[kept++] = span;
	}
	dropped = kept > half / 2 ? kept - half / 2 : 0;
	memmove(window->spans, window->spans + dropped, (kept - dropped) * sizeof(*window->spans));
	kept -= dropped;
	memmove(window->spans + kept, window->spans + half,
		(window->count - half) * sizeof(*window->spans));
	window->count = kept + window->count - half;
}

static int make_room(struct rls_span_window *window)
{
	size_t capacity = window->capacity ? 2 * window->capacity : SPANS_MIN;
	struct rls_span *spans;

	if (window->count < window->capacity)
		return 0;
	if (window->capacity >= RLS_SPANS_MAX) {
		compact(window);
		return 0;
	}
	spans = realloc(window->spans, capacity * sizeof(*spans));
	if (!spans)
		return -ENOMEM;
	window->spans = spans;
	window->capacity = capacity;
	return 0;
}

int rls_span_window_push(struct rls_span_window *window, struct rls_span_cells cells,
			 uint64_t start_ns, uint64_t end_ns, uint64_t cpu_gpu_ns)
{
	uint64_t reported_ns = min_u64(window->hits.latest_ns, window->off_cpu.latest_ns);
	uint64_t cpu_ns = end_ns - start_ns - cpu_gpu_ns;
	int err;

	/* Any report from now on is later than both marks, so it begins at them. */
	if (window->count && window->spans[window->count - 1].end_ns <= reported_ns)
		window->count = 0;
	err = make_room(window);
	if (err)
		return err;
	window->spans[window->count++] = (struct rls_span){
		.cell = cells.cell,
		.also = cells.also,
		.layer = cells.layer,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.unsubtracted_ns = cpu_ns,
		.untaken_gpu_ns = cpu_gpu_ns,
		.running_ns = {[RLS_PART_CPU] = cpu_ns, [RLS_PART_CPU_GPU] = cpu_gpu_ns},
	};
	return 0;
}

struct rls_unsubtracted rls_span_window_subtract(struct rls_span_window *window, uint64_t cost_ns)
{
	struct rls_unsubtracted left = {0};
	size_t first = window->count;

	while (first && window->spans[first - 1].start_ns >= window->hits.before_ns)
		first--;
	for (size_t i = window->count; i-- > first && cost_ns;) {
		struct rls_span *span = &window->spans[i];
		uint64_t taken = min_u64(cost_ns, span->unsubtracted_ns);

		span->unsubtracted_ns -= taken;
		span->cell->subtracted_ns += taken;
		if (span->also)
			span->also->subtracted_ns += taken;
		if (span->layer)
			span->layer->subtracted_ns += taken;
		cost_ns -= taken;
	}
	for (size_t i = window->count; i-- > first && cost_ns;) {
		struct rls_span *span = &window->spans[i];
		uint64_t under = min_u64(cost_ns, span->untaken_gpu_ns);

		span->untaken_gpu_ns -= under;
		span->cell->under_gpu_ns += under;
		if (span->also)
			span->also->under_gpu_ns += under;
		if (span->layer)
			span->layer->under_gpu_ns += under;
		left.under_gpu_ns += under;
		cost_ns -= under;
	}
	left.unplaced_ns = cost_ns;
	return left;
}

static void overhead_correction_accept(struct rls_span *span, enum rls_part part, uint64_t ns)
{
	span->running_ns[part] -= ns;
	span->cell->off_cpu_ns[part] += ns;
	if (span->also)
		span->also->off_cpu_ns[part] += ns;
	if (span->layer)
		span->layer->off_cpu_ns[part] += ns;
}

/* From spans that end no later than that. Returns what found no room. */
static uint64_t take_off_cpu_until(struct rls_span_window *window, uint64_t off_ns,
				   uint64_t until_ns)
{
	for (size_t i = window->count; i-- && off_ns;) {
		struct rls_span *span = &window->spans[i];
		uint64_t gpu = span->running_ns[RLS_PART_CPU_GPU];
		uint64_t both = span->running_ns[RLS_PART_CPU] + gpu;
		uint64_t taken = min_u64(off_ns, both);
		uint64_t taken_gpu;

		if (span->start_ns < window->off_cpu.before_ns)
			break;
		if (!both || span->end_ns > until_ns)
			continue;
		/* When within the span it waited is not known: a fair share to each part. */
		taken_gpu = (uint64_t)((unsigned __int128)taken * gpu / both);
		overhead_correction_accept(span, RLS_PART_CPU_GPU, taken_gpu);
		overhead_correction_accept(span, RLS_PART_CPU, taken - taken_gpu);
		off_ns -= taken;
	}
	return off_ns;
}

void rls_span_window_note_wait(struct rls_span_window *window, uint64_t until_ns, uint64_t ns)
{
	if (ns > window->waited.ns)
		window->waited = (struct rls_noted_wait){until_ns, ns};
}

uint64_t rls_span_window_take_off_cpu(struct rls_span_window *window, uint64_t off_ns)
{
	uint64_t waited_ns = min_u64(off_ns, window->waited.ns);
	uint64_t left_ns = take_off_cpu_until(window, waited_ns, window->waited.until_ns);

	window->waited = (struct rls_noted_wait){0};
	return take_off_cpu_until(window, off_ns - waited_ns + left_ns, UINT64_MAX);
}

void rls_span_window_note_others(struct rls_span_window *window, uint64_t cost_ns)
{
	for (size_t i = window->count; i-- && cost_ns;) {
		struct rls_span *span = &window->spans[i];
		uint64_t waited_ns = span->end_ns - span->start_ns -
				     span->running_ns[RLS_PART_CPU] -
				     span->running_ns[RLS_PART_CPU_GPU];
		uint64_t noted = min_u64(cost_ns, waited_ns);

		if (span->start_ns < window->off_cpu.before_ns)
			break;
		span->cell->induced_wait_ns += noted;
		if (span->layer)
			span->layer->induced_wait_ns += noted;
		cost_ns -= noted;
	}
}
