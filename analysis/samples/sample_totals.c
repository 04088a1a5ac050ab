#include "analysis/samples/sample_totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "analysis/event/bounded.h"
#include "analysis/event/sample_kind.h"

void rls_sample_totals_free(struct rls_sample_totals *totals)
{
	while (totals->cells) {
		struct rls_sample_cell *cell = totals->cells;

		totals->cells = cell->next;
		free(cell);
	}
	while (totals->tallies) {
		struct rls_sample_tally *tally = totals->tallies;

		totals->tallies = tally->next;
		free(tally);
	}
	rls_index_map_free(&totals->cell_map);
	rls_index_map_free(&totals->tally_map);
	free(totals->frames);
	*totals = (struct rls_sample_totals){0};
}

int rls_sample_totals_frame(struct rls_sample_totals *totals, const struct rls_event *event)
{
	uint32_t id = event->frame.id;
	int err;

	if (!id || id > RLS_FRAME_ID_MAX) {
		totals->left_out++;
		return 0;
	}
	err = rls_grow_to(&totals->frames, &totals->frame_room, id);
	if (err)
		return err;
	totals->frames[id] = (struct rls_frame_node){
		.parent = event->frame.parent,
		.line = event->frame.line,
		.function = event->frame.function,
		.file = event->frame.file,
		.known = true,
		.native = event->frame.native,
	};
	return 0;
}

const struct rls_frame_node *rls_sample_totals_node(const struct rls_sample_totals *totals,
						    uint32_t id)
{
	return id && id < totals->frame_room && totals->frames[id].known ? &totals->frames[id]
									 : NULL;
}

double rls_sample_variance_ns2(const struct rls_event *event)
{
	double ns = (double)event->sample.ns;

	if (!rls_sample_kind_waits(event->sample.kind))
		return ns * ns;
	return event->sample.every > 1 ? ns * ns * (1 - 1.0 / event->sample.every) : 0;
}

static void sample_totals_add(struct rls_sample_sum *sum, const struct rls_event *event)
{
	sum->samples++;
	rls_add_bounded(&sum->ns, event->sample.ns);
	sum->variance_ns2 += rls_sample_variance_ns2(event);
}

static int cell_of(struct rls_sample_totals *totals, const struct rls_process *process,
		   const struct rls_scope *scope, uint32_t frame, enum rls_category category,
		   enum rls_sample_kind kind, struct rls_sample_cell **out)
{
	uint64_t place = (uint64_t)frame << 16 | (uint64_t)category << 8 | kind;
	struct rls_sample_cell *cell =
		rls_index_map_get(&totals->cell_map, (uintptr_t)scope, place);
	int err;

	if (!cell) {
		cell = calloc(1, sizeof(*cell));
		err = cell ? rls_index_map_put(&totals->cell_map, (uintptr_t)scope, place, cell)
			   : -ENOMEM;
		if (err) {
			free(cell);
			return err;
		}
		cell->process = process;
		cell->scope = scope;
		cell->frame = frame;
		cell->category = category;
		cell->kind = kind;
		cell->next = totals->cells;
		totals->cells = cell;
	}
	*out = cell;
	return 0;
}

static int tally_of(struct rls_sample_totals *totals, const struct rls_process *process,
		    const struct rls_scope *scope, enum rls_category category, bool inferred,
		    const struct rls_event *event, struct rls_sample_tally **out)
{
	enum rls_sample_kind kind = event->sample.kind;
	uint64_t place = (uint64_t)inferred << 24 | (uint64_t)event->sample.code << 16 |
			 (uint64_t)category << 8 | kind;
	struct rls_sample_tally *tally =
		rls_index_map_get(&totals->tally_map, (uintptr_t)scope, place);
	int err;

	if (!tally) {
		tally = calloc(1, sizeof(*tally));
		err = tally ? rls_index_map_put(&totals->tally_map, (uintptr_t)scope, place, tally)
			    : -ENOMEM;
		if (err) {
			free(tally);
			return err;
		}
		tally->process = process;
		tally->scope = scope;
		tally->category = category;
		tally->inferred = inferred;
		tally->kind = kind;
		tally->code = event->sample.code;
		tally->next = totals->tallies;
		totals->tallies = tally;
	}
	*out = tally;
	return 0;
}

int rls_sample_totals_add(struct rls_sample_totals *totals, const struct rls_event *event,
			  const struct rls_process *process, const struct rls_scope *scope,
			  enum rls_category category, bool inferred)
{
	struct rls_sample_tally *tally;
	struct rls_sample_cell *cell;
	int err = cell_of(totals, process, scope, event->sample.frame, category, event->sample.kind,
			  &cell);

	if (!err)
		err = tally_of(totals, process, scope, category, inferred, event, &tally);
	if (err)
		return err;
	sample_totals_add(&cell->sum, event);
	sample_totals_add(&tally->sum, event);
	if (!rls_sample_kind_waits(event->sample.kind)) {
		totals->running_ns += (double)event->sample.ns;
		totals->running_ns2 += rls_sample_variance_ns2(event);
	}
	return 0;
}

double rls_sample_totals_period_ns(const struct rls_sample_totals *totals)
{
	return totals->running_ns > 0 ? totals->running_ns2 / totals->running_ns : 0;
}
