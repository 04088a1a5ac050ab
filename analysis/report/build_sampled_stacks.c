/* From the sample totals to stacks: every stack that samples were taken in, with its frames. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "analysis/report/builder.h"

_Static_assert(RLS_STACK_FRAMES_MAX == RLS_FRAME_DEPTH_MAX,
	       "stacks end where lines look no further");

/* The report has the events' frames, without the holes of the totals: place[id] is 1 +
 * index there, 0 for a hole. */
static uint32_t place_of(const struct rls_builder *b, const uint32_t *place, uint32_t id)
{
	return rls_sample_totals_node(&b->timeline->samples, id) ? place[id] : 0;
}

static uint32_t *number_frames(struct rls_builder *b)
{
	const struct rls_sample_totals *totals = &b->timeline->samples;
	uint32_t *place = calloc(totals->frame_room + 1, sizeof(*place));
	size_t count = 0;

	for (uint32_t id = 1; place && id < totals->frame_room; id++)
		place[id] = rls_sample_totals_node(totals, id) ? (uint32_t)++count : 0;
	b->report->stack_frames = calloc(count + 1, sizeof(*b->report->stack_frames));
	if (!place || !b->report->stack_frames)
		b->err = -ENOMEM;
	else
		b->report->stack_frame_count = count;
	return place;
}

static void add_frames(struct rls_builder *b, const uint32_t *place)
{
	const struct rls_sample_totals *totals = &b->timeline->samples;

	for (uint32_t id = 1; !b->err && id < totals->frame_room; id++) {
		const struct rls_frame_node *node = rls_sample_totals_node(totals, id);

		if (!node)
			continue;
		b->report->stack_frames[place[id] - 1] = (struct rls_stack_frame){
			.parent = place_of(b, place, node->parent),
			.line = node->line,
			.function = rls_build_string(b, node->function),
			.file = rls_build_string(b, node->file),
			.native = node->native,
		};
	}
}

void rls_build_sampled_stacks(struct rls_builder *b)
{
	_cleanup_free_ uint32_t *place = NULL;

	if (b->err || !b->timeline->samples.cells)
		return;
	place = number_frames(b);
	add_frames(b, place);
	for (const struct rls_sample_cell *cell = b->timeline->samples.cells; cell && !b->err;
	     cell = cell->next) {
		struct rls_sampled_stack_row *row = rls_build_row(b, RLS_TABLE_SAMPLED_STACKS);

		if (!row)
			return;
		row->pid = cell->process->pid;
		row->phase = rls_build_string(b, cell->scope->phase);
		row->category = cell->category;
		row->kind = cell->kind;
		row->frame = place_of(b, place, cell->frame);
		row->samples = cell->sum.samples;
		row->ns = cell->sum.ns;
		row->operations = rls_build_operations(b, cell->scope->stack, &row->depth);
	}
}
