/* From the sample book to stacks: every stack that samples were taken in, with its frames. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "analysis/report/collect.h"

_Static_assert(RLS_STACK_FRAMES_MAX == RLS_FRAME_DEPTH_MAX, "stacks end where lines look no further");

/* The report has the frames that events told of, without the book's holes: place[id] is 1 +
 * index there, 0 for a hole. */
static uint32_t place_of(const struct rls_collector *c, const uint32_t *place, uint32_t id)
{
	return rls_sample_book_node(&c->timeline->samples, id) ? place[id] : 0;
}

static uint32_t *number_frames(struct rls_collector *c)
{
	const struct rls_sample_book *book = &c->timeline->samples;
	uint32_t *place = calloc(book->frame_room + 1, sizeof(*place));
	size_t count = 0;

	for (uint32_t id = 1; place && id < book->frame_room; id++)
		place[id] = rls_sample_book_node(book, id) ? (uint32_t)++count : 0;
	c->report->stack_frames = calloc(count + 1, sizeof(*c->report->stack_frames));
	if (!place || !c->report->stack_frames)
		c->err = -ENOMEM;
	else
		c->report->stack_frame_count = count;
	return place;
}

static void add_frames(struct rls_collector *c, const uint32_t *place)
{
	const struct rls_sample_book *book = &c->timeline->samples;

	for (uint32_t id = 1; !c->err && id < book->frame_room; id++) {
		const struct rls_frame_node *node = rls_sample_book_node(book, id);

		if (!node)
			continue;
		c->report->stack_frames[place[id] - 1] = (struct rls_stack_frame){
			.parent = place_of(c, place, node->parent),
			.line = node->line,
			.function = rls_collect_string(c, node->function),
			.file = rls_collect_string(c, node->file),
			.native = node->native,
		};
	}
}

void rls_collect_sampled_stacks(struct rls_collector *c)
{
	struct rls_report *report = c->report;
	_cleanup_free_ uint32_t *place = NULL;

	if (c->err || !c->timeline->samples.cells)
		return;
	place = number_frames(c);
	add_frames(c, place);
	for (const struct rls_sample_cell *cell = c->timeline->samples.cells; cell && !c->err;
	     cell = cell->next) {
		struct rls_sampled_stack_row *row =
			rls_collect_append(c, &report->sampled_stacks, &c->sampled_stack_capacity,
					   &report->sampled_stack_count);

		if (!row)
			return;
		row->pid = cell->process->pid;
		row->phase = rls_collect_string(c, cell->scope->phase);
		row->category = cell->category;
		row->kind = cell->kind;
		row->frame = place_of(c, place, cell->frame);
		row->samples = cell->sum.samples;
		row->ns = cell->sum.ns;
		row->operations = rls_collect_operations(c, cell->scope->stack, &row->depth);
	}
}
